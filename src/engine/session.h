// One timeline of tokens with its memory: a prompt, then tokens one at a time. The logits are the
// same bits whatever the slice length, the number of threads and the pages' places in the pool. Not
// thread-safe; model, pool and workers must outlive it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
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
#include "model/language_model.h"

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

// What a session gives after its newest token.
enum class HeadWish {
  kLogits,
  kLargest,  // only the largest, if that takes less time; else logits
  kCount
};

class Session {
 public:
  Session(const model::LanguageModel& model, cache::PagePool& pool, WorkerPool& workers,
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
  // REQUIRES: the prompt has been read.
  [[nodiscard]] Status append(TokenId token);

  // The same in pieces, for who runs several sessions together (run_staged()). begin() looks the
  // prompt up in the memory and takes room; errors as prefill(), before any work. Then, while
  // is_reading(), the next slice of the prompt is staged, at least one token and at most `most`;
  // afterwards one token at a time.
  [[nodiscard]] Status begin(std::span<const TokenId> prompt, const PromptLengths& lengths = {});
  bool is_reading() const { return fed_ < reading_end_; }
  void stage_slice(std::size_t most);
  [[nodiscard]] Status stage_token(TokenId token);
  std::size_t staged_tokens() const { return staged_ - fed_; }
  // Of the prompt, still to be read.
  std::size_t tokens_left() const { return reading_end_ - fed_; }
  // What is staged can run without waiting for rows from disk.
  bool is_ready() const { return memory_.has_all_rows(); }

  // The turn is over: everything fed so far is remembered, and queued for the disk.
  void end_turn();

  // Of what runs next, and after.
  void set_head_wish(HeadWish wish) { head_wish_ = wish; }
  // Logits [vocabulary] of the newest token, once the prompt has been read; empty if there is
  // largest_logit() in their place.
  std::span<const float> logits() const { return logits_; }
  const std::optional<model::LargestLogit>& largest_logit() const { return largest_logit_; }
  // Every token fed so far.
  std::span<const TokenId> tokens() const { return std::span(tokens_).first(fed_); }
  std::size_t prompt_tokens() const { return lengths_.prompt_tokens; }
  // First position of the decoder's segment.
  std::int64_t segment_start() const { return plan_.decoder_start; }

  cache::SequenceMemory& memory() { return memory_; }
  MemoryUse memory_use() const;
  const model::WorkCount& work() const { return context_.work; }

 private:
  friend class StagedRun;

  [[nodiscard]] Status check_room(std::size_t token_count) const;
  [[nodiscard]] Status check_ids(std::span<const TokenId> ids) const;

  // Memory and plan, tried again over what is sound.
  [[nodiscard]] Status open();
  [[nodiscard]] Status try_open();
  [[nodiscard]] Status open_memory();
  [[nodiscard]] Status make_plan();
  // Whether a failed try may be followed by another one.
  bool is_worth_another_try(const Error& error);
  void start_over();
  cache::TurnLengths turn_lengths() const;
  // What is staged has run, or has failed: then it is taken back, or the prompt begins anew.
  [[nodiscard]] Status settle(Status run);
  [[nodiscard]] Status accept();
  [[nodiscard]] Status run_alone();

  const model::LanguageModel* model_;
  SessionOptions options_;
  cache::SequenceMemory memory_;
  std::optional<cache::PrefixLease> lease_;  // must go before memory_
  cache::ReplayPlan plan_;
  std::set<std::int64_t> boundaries_;  // of the prompt, where rings are stored
  model::SequenceState state_;
  model::ForwardContext context_;
  std::vector<TokenId> tokens_;  // the prompt, then what was appended
  std::size_t reading_end_ = 0;  // of tokens_: those that begin() took
  std::size_t fed_ = 0;          // of tokens_: those that have run
  std::size_t staged_ = 0;       // of tokens_: the end of what runs next
  PromptLengths lengths_;
  MemoryUse use_;
  bool trusts_memory_ = true;
  HeadWish head_wish_ = HeadWish::kLogits;
  std::vector<float> logits_;
  std::optional<model::LargestLogit> largest_logit_;
};

// Runs what the sessions have staged in one pass, so that every weight is read once for all of
// them. A session gets the same bits as alone; one that fails gets its error, and the others notice
// nothing. `context` counts the work. REQUIRES: every session has something staged, none stands
// twice; one with an observer runs alone.
std::vector<Status> run_staged(const model::LanguageModel& model, model::ForwardContext& context,
                               std::span<Session* const> sessions);

}  // namespace locket::engine
