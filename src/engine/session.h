// One timeline of tokens with its memory: a prompt, then tokens one at a time. The logits are the
// same bits whatever the slice length, the number of threads and the pages' places in the pool. Not
// thread-safe; model, pool and workers must outlive it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <stop_token>
#include <vector>

#include "base/result.h"
#include "base/worker_pool.h"
#include "cache/page_pool.h"
#include "cache/sequence_memory.h"
#include "engine/replay.h"
#include "engine/sampler.h"
#include "model/generations/v41.h"

namespace locket::engine {

struct SessionOptions {
  ReplayMode replay = ReplayMode::kBounded;
  std::size_t slice_tokens = 512;  // prompt tokens per forward call; at least 1
  // Watches the forward pass; with it, logits of every position that the decoder ran are given to
  // it as "logits". May be null.
  model::ForwardObserver* observer = nullptr;
};

class Session {
 public:
  Session(const model::V41Model& model, cache::PagePool& pool, WorkerPool& workers,
          const SessionOptions& options);

  // Reads the prompt; afterwards logits() belong to its last token. `on_slice` (may be empty) is
  // called with the tokens read so far. kBadRequest for an empty prompt or unknown ids,
  // kContextTooLong, kOverBudget before any work; kCancelled between slices once `stop` is
  // requested. REQUIRES: called once, before append().
  [[nodiscard]] Status prefill(std::span<const TokenId> prompt, const std::stop_token& stop = {},
                               const std::function<void(std::size_t)>& on_slice = {});

  // Feeds one more token. kContextTooLong, kOverBudget: nothing has changed.
  // REQUIRES: prefill() has succeeded.
  [[nodiscard]] Status append(TokenId token);

  // Logits [vocabulary] of the newest token.
  std::span<const float> logits() const { return logits_; }
  // Every token fed so far.
  std::span<const TokenId> tokens() const { return tokens_; }
  std::size_t prompt_tokens() const { return prompt_tokens_; }
  // First position of the decoder's segment.
  std::int64_t segment_start() const { return segment_start_; }

  cache::SequenceMemory& memory() { return memory_; }
  const model::WorkCount& work() const { return context_.work; }

 private:
  [[nodiscard]] Status check_room(std::size_t token_count) const;
  [[nodiscard]] Status check_ids(std::span<const TokenId> ids) const;
  // Runs the tokens from `first` on, which are the newest of tokens_.
  [[nodiscard]] Status run(std::size_t first);

  const model::V41Model* model_;
  SessionOptions options_;
  cache::SequenceMemory memory_;
  model::V41SequenceState state_;
  model::ForwardContext context_;
  std::vector<TokenId> tokens_;
  std::size_t prompt_tokens_ = 0;
  std::int64_t segment_start_ = 0;
  std::vector<float> logits_;
};

}  // namespace locket::engine
