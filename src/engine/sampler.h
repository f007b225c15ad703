// The next token from logits. The stages, in this order:
//   1. masks (TokenFilter), logit bias, then the repetition, frequency and presence penalties
//   2. temperature; 0 is greedy: the largest logit wins and nothing is drawn
//   3. top-k    the k first tokens
//   4. top-p    of those, the shortest run of first tokens that holds top_p of their probability
//   5. min-p    of those, the tokens with at least min_p times the probability of the first one
//   6. a draw in proportion to the probabilities that are left
// "First" means by descending logit after stage 1, equal logits by ascending id.
//
// A token whose logit is minus infinity is masked and never chosen. A NaN or plus infinity is
// broken: it is left out like a masked token and counted, so that the caller can warn once. Without
// a single finite logit the call is an error.
//
// The result is a function of the arguments alone, on every machine: all arithmetic is in double
// with portable_exp(); sums over all tokens run by ascending id, sums over sorted tokens in sort
// order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "engine/counter_random.h"

namespace locket::engine {

using TokenId = std::int32_t;

struct LogitBias {
  TokenId token = 0;
  double bias = 0.0;
};

struct SamplingConfig {
  double temperature = 1.0;         // 0 or more; 0: greedy
  std::int64_t top_k = 0;           // 0: off
  double top_p = 1.0;               // 0 to 1; 1: off; the first token always stays
  double min_p = 0.0;               // 0 to 1; 0: off
  double frequency_penalty = 0.0;   // subtracted once per occurrence in the output
  double presence_penalty = 0.0;    // subtracted if the output has the token
  double repetition_penalty = 1.0;  // divides positive and multiplies other logits of tokens that
                                    // prompt or output have; 1: off
  std::vector<LogitBias> logit_bias = {};  // added; a token named twice gets both
};

// Which tokens may be chosen at all, whatever their logits.
struct TokenFilter {
  std::span<const std::uint64_t> allowed = {};  // a bit per id; empty: every token
  std::span<const TokenId> banned = {};         // not even if allowed, unless nothing else is left
};

// What the penalties count. Ids outside of the vocabulary are skipped.
struct TokenHistory {
  std::span<const TokenId> prompt = {};
  std::span<const TokenId> output = {};
};

// kBadRequest names the field, the value found and the values allowed.
[[nodiscard]] Status check_sampling_config(const SamplingConfig& config,
                                           std::size_t vocabulary_size);

// Whether sample() needs no logit but the largest, for a token that no filter speaks of.
bool takes_largest(const SamplingConfig& config);

// What sample() fails with if no logit is finite.
Error no_finite_logit(std::size_t logit_count, std::size_t broken_count);

// Keeps only working memory between calls: results do not depend on earlier ones. Not thread-safe.
class Sampler {
 public:
  // `logits` [vocabulary]. kBadRequest as check_sampling_config(); kInternal if no logit is finite.
  [[nodiscard]] Result<TokenId> sample(std::span<const float> logits, const SamplingConfig& config,
                                       const DrawKey& key, const TokenHistory& history = {},
                                       const TokenFilter& filter = {});

  // How many logits of the last call were NaN or plus infinity.
  std::size_t broken_logit_count() const { return broken_logit_count_; }

 private:
  void load(std::span<const float> logits);
  void apply_filter(const TokenFilter& filter);
  void apply_penalties(const SamplingConfig& config, const TokenHistory& history);
  void count(std::span<const TokenId> tokens);

  std::size_t broken_logit_count_ = 0;
  std::vector<double> values_;         // [vocabulary], logits after stage 1
  std::vector<std::uint32_t> counts_;  // [vocabulary]
  std::vector<TokenId> order_;         // [candidates]
  std::vector<double> weights_;        // [candidates that were looked at]
};

}  // namespace locket::engine
