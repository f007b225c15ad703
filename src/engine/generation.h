// One completion as the engine sees it: token ids in, token ids out, one at a time, to a client who
// says when it is enough. Plain data and an interface.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/sampler.h"
#include "engine/session.h"

namespace locket::engine {

struct GenerationRequest {
  std::vector<TokenId> prompt;
  std::size_t system_tokens = 0;  // as PromptLengths
  std::size_t answer_room = 0;    // generated tokens that there must be room for before any work
  std::string tenant;             // whose memory it uses
  SamplingConfig sampling;
  std::uint64_t seed = 0;
  std::uint64_t choice = 0;              // which of a request's completions
  std::size_t max_tokens = 1;            // at least 1
  std::size_t min_tokens = 0;            // end tokens are not drawn before
  std::vector<TokenId> end_tokens = {};  // end the completion, and are not part of it
  bool wants_logprobs = false;
  std::size_t top_logprobs = 0;
};

// The natural log probability of a token under the model's own distribution, before temperature,
// penalties and filters.
struct TokenLogprob {
  TokenId token = 0;
  double logprob = 0;
};

struct GeneratedToken {
  TokenId token = 0;
  double logprob = 0;                  // if wanted
  std::vector<TokenLogprob> top = {};  // most probable first; equal ones by ascending id
  std::size_t broken_logits = 0;       // NaN or infinite: left out
};

enum class EndReason {
  kEndToken,   // the model ended it
  kLength,     // max_tokens, or no memory is left for one more
  kEnough,     // the client has heard enough
  kCancelled,  // cancel()
  kFailed,
  kCount
};

struct GenerationEnd {
  EndReason reason = EndReason::kCount;
  Error error = {};        // of kFailed
  TokenId end_token = -1;  // of kEndToken
  MemoryUse memory = {};   // what was remembered of the prompt
};

// Follows one completion. Called by the thread that steps the scheduler, and must not call it.
class GenerationClient {
 public:
  GenerationClient() = default;
  GenerationClient(const GenerationClient&) = delete;
  GenerationClient& operator=(const GenerationClient&) = delete;
  virtual ~GenerationClient() = default;

  // Its turn has come; `memory` is what was found of its prompt. Also after a preemption.
  virtual void on_admitted(const MemoryUse& /*memory*/) {}
  // Prompt tokens read so far, those remembered included; `done` = `total` comes last.
  virtual void on_prompt(std::size_t /*done*/, std::size_t /*total*/) {}
  // Which tokens may come next: a bit per id; empty: all. Called once before each token, from any
  // thread, but for one token at a time. Valid until the next call of the client.
  virtual std::span<const std::uint64_t> allowed_tokens() { return {}; }
  // Whether that may ever be other than all. A client that says no lets greedy decoding take a
  // shorter way. The same for a whole completion.
  virtual bool constrains() const { return true; }
  enum class Verdict { kGoOn, kEnough, kCount };
  // A token of the completion; the last one of max_tokens, too.
  virtual Verdict on_token(const GeneratedToken& token) = 0;
  // Exactly once, and last.
  virtual void on_end(const GenerationEnd& end) = 0;
};

// Log probabilities of `token` and of the `top_count` most probable ones. REQUIRES: token is an
// index of `logits`.
GeneratedToken with_logprobs(std::span<const float> logits, TokenId token, std::size_t top_count);

}  // namespace locket::engine
