// One timeline of tokens with its memory: a prompt, then tokens one at a time. The logits are the
// same bits whatever the slice length, the number of threads and the pages' places in the pool. Not
// thread-safe; model, pool and workers must outlive it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/worker_pool.h"
#include "cache/page_pool.h"
#include "cache/prefix_memory.h"
#include "cache/replay_plan.h"
#include "cache/sequence_memory.h"
#include "engine/replay.h"
#include "engine/sampler.h"
#include "model/generations/v41.h"

namespace locket::engine {

struct SessionOptions {
  ReplayMode replay = ReplayMode::kBounded;
  // Where prefixes are found and kept; null: everything is computed, nothing is kept.
  cache::PrefixMemory* memory = nullptr;
  std::string tenant = {};         // whose memory it is
  std::size_t slice_tokens = 512;  // prompt tokens per forward call; at least 1
  // Watches the forward pass; with it, logits of every position that the decoder ran are given to
  // it as "logits". May be null.
  model::ForwardObserver* observer = nullptr;
  // For tests: what a run over restored memory gives in place of its own success. May be empty.
  std::function<Status()> after_restored_run = {};
};

// Lengths within the tokens that prefill() reads.
struct PromptLengths {
  // Tokens of the prompt; those after it were generated before and are read again (a completion
  // that was interrupted keeps its decoder segment). 0: all are the prompt.
  std::size_t prompt_tokens = 0;
  std::size_t system_tokens = 0;  // instructions and tools at the beginning; 0: not known
  // Tokens that there must be room for before any work begins: the answer's, too. 0: those given.
  std::size_t room_tokens = 0;
};

// What the memory did for a prompt.
struct MemoryUse {
  std::size_t hit_tokens = 0;       // rows that were there
  std::size_t disk_tokens = 0;      // of them, from disk; the others from memory
  std::size_t replayed_tokens = 0;  // computed although their rows were there
  std::size_t retries = 0;          // runs that were begun anew because stored bytes were damaged
  double restore_seconds = 0;       // until the last stored byte was in memory
};

class Session {
 public:
  Session(const model::V41Model& model, cache::PagePool& pool, WorkerPool& workers,
          const SessionOptions& options);

  // Reads the prompt, as far as it is not remembered; afterwards logits() belong to its last token.
  // `on_slice` (may be empty) is called with the tokens read so far. kBadRequest for an empty
  // prompt or unknown ids, kContextTooLong, kOverBudget before any work; kCancelled between slices
  // once `stop` is requested: what is finished stays in the memory. REQUIRES: called once, before
  // append().
  [[nodiscard]] Status prefill(std::span<const TokenId> prompt, const std::stop_token& stop = {},
                               const std::function<void(std::size_t)>& on_slice = {},
                               const PromptLengths& lengths = {});

  // Feeds one more token. kContextTooLong, kOverBudget: nothing has changed.
  // REQUIRES: prefill() has succeeded.
  [[nodiscard]] Status append(TokenId token);

  // The turn is over: everything fed so far is remembered, and queued for the disk.
  void end_turn();

  // Logits [vocabulary] of the newest token.
  std::span<const float> logits() const { return logits_; }
  // Every token fed so far.
  std::span<const TokenId> tokens() const { return tokens_; }
  std::size_t prompt_tokens() const { return lengths_.prompt_tokens; }
  // First position of the decoder's segment.
  std::int64_t segment_start() const { return plan_.decoder_start; }

  cache::SequenceMemory& memory() { return memory_; }
  MemoryUse memory_use() const;
  const model::WorkCount& work() const { return context_.work; }

 private:
  // What every try of prefill() takes.
  struct Reading {
    std::span<const TokenId> tokens;
    const std::stop_token& stop;
    const std::function<void(std::size_t)>& on_slice;
  };

  [[nodiscard]] Status check_room(std::size_t token_count) const;
  [[nodiscard]] Status check_ids(std::span<const TokenId> ids) const;

  [[nodiscard]] Status open_memory(std::span<const TokenId> tokens);
  [[nodiscard]] Status make_plan();
  [[nodiscard]] Status read(const Reading& reading);
  // Whether a failed try may be followed by another one.
  bool is_worth_another_try(const Error& error);
  void start_over();
  cache::TurnLengths turn_lengths() const;
  // Runs the tokens from `first` on, which are the newest of tokens_; takes them back if it fails.
  [[nodiscard]] Status run_newest(std::size_t first);
  [[nodiscard]] Status run(std::size_t first);
  [[nodiscard]] Status remember(cache::PrefixLease::Keep keep);

  const model::V41Model* model_;
  SessionOptions options_;
  cache::SequenceMemory memory_;
  std::optional<cache::PrefixLease> lease_;  // must go before memory_
  cache::ReplayPlan plan_;
  model::V41SequenceState state_;
  model::ForwardContext context_;
  std::vector<TokenId> tokens_;
  PromptLengths lengths_;
  MemoryUse use_;
  bool trusts_memory_ = true;
  std::vector<float> logits_;
};

}  // namespace locket::engine
