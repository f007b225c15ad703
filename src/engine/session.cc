#include "engine/session.h"

#include <algorithm>
#include <fmt/format.h>
#include <set>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "cache/snapshot_policy.h"

namespace locket::engine {
namespace {

// Tries over stored memory before a prompt is read without it; each try drops what was damaged.
constexpr std::size_t kMostRetries = 16;

}  // namespace

Session::Session(const model::LanguageModel& model, cache::PagePool& pool, WorkerPool& workers,
                 const SessionOptions& options)
    : model_(&model),
      options_(options),
      memory_(model.layout(), pool),
      state_(model.make_state()),
      context_(model.make_context(workers)) {
  LOCKET_CHECK(options.slice_tokens >= 1);
  context_.observer = options.observer;
}

Status Session::check_room(std::size_t token_count) const {
  const auto limit = static_cast<std::size_t>(model_->shape().max_positions);
  if (token_count <= limit) return {};
  return fail(ErrorCode::kContextTooLong,
              fmt::format("{} tokens are more than the {} that the model takes "
                          "(max_position_embeddings)",
                          token_count, limit));
}

Status Session::check_ids(std::span<const TokenId> ids) const {
  const auto vocabulary = static_cast<TokenId>(model_->shape().vocabulary_size);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || ids[i] >= vocabulary) {
      return fail(ErrorCode::kBadRequest, fmt::format("token {} is id {}; the model knows 0 to {}",
                                                      tokens_.size() + i, ids[i], vocabulary - 1));
    }
  }
  return {};
}

Status Session::prefill(std::span<const TokenId> prompt, const std::stop_token& stop,
                        const std::function<void(std::size_t)>& on_slice,
                        const PromptLengths& lengths) {
  LOCKET_TRY_STATUS(begin(prompt, lengths));
  while (is_reading()) {
    if (stop.stop_requested()) {
      return fail(ErrorCode::kCancelled,
                  fmt::format("stopped after {} of {} prompt tokens", fed_, tokens_.size()));
    }
    stage_slice(options_.slice_tokens);
    LOCKET_TRY_STATUS(run_alone());
    if (on_slice) on_slice(fed_);
  }
  return {};
}

Status Session::begin(std::span<const TokenId> prompt, const PromptLengths& lengths) {
  LOCKET_CHECK(tokens_.empty() && lengths.prompt_tokens <= prompt.size());
  if (prompt.empty()) return fail(ErrorCode::kBadRequest, "the prompt has no tokens");
  LOCKET_TRY_STATUS(check_ids(prompt));
  LOCKET_TRY_STATUS(check_room(prompt.size()));
  lengths_ = lengths;
  if (lengths_.prompt_tokens == 0) lengths_.prompt_tokens = prompt.size();
  tokens_.assign(prompt.begin(), prompt.end());
  reading_end_ = tokens_.size();
  Status opened = open();
  if (!opened) tokens_.clear();
  return opened;
}

Status Session::open() {
  while (true) {
    Status status = try_open();
    if (status || !is_worth_another_try(status.error())) return status;
    start_over();
  }
}

Status Session::try_open() {
  LOCKET_TRY_STATUS(open_memory());
  LOCKET_TRY_STATUS(make_plan());
  use_.replayed_tokens = lease_ ? static_cast<std::size_t>(plan_.replayed_tokens()) : 0;
  boundaries_ = cache::stored_boundaries(turn_lengths());
  fed_ = staged_ = static_cast<std::size_t>(plan_.start);
  return {};
}

// Damaged bytes are found while they are used, and what looks sound may still lead a run astray:
// then what was restored is forgotten and the run begins anew, in the end without memory.
bool Session::is_worth_another_try(const Error& error) {
  const bool is_damaged = error.code == ErrorCode::kBadMemory;
  const bool has_restored = lease_ && lease_->found().disk_tokens > 0;
  if (!lease_ || !(is_damaged || (has_restored && error.code == ErrorCode::kInternal)))
    return false;
  if (!is_damaged) lease_->drop_restored();
  use_.retries += 1;
  trusts_memory_ = use_.retries < kMostRetries;
  return true;
}

void Session::start_over() {
  lease_.reset();
  memory_.clear();
  state_ = model_->make_state();
  fed_ = staged_ = 0;
  use_ = {.retries = use_.retries};
}

Status Session::open_memory() {
  const auto room = static_cast<std::int64_t>(std::max(tokens_.size(), lengths_.room_tokens));
  if (options_.memory == nullptr || !trusts_memory_) return memory_.reserve_tokens(room);
  // Nothing is evicted for what can never fit.
  LOCKET_TRY_STATUS(memory_.check_budget(room));
  const double start = monotonic_seconds();
  LOCKET_TRY(cache::PrefixLease lease, options_.memory->open(options_.tenant, tokens_, memory_));
  lease_.emplace(std::move(lease));
  use_.hit_tokens = static_cast<std::size_t>(lease_->found().tokens);
  use_.disk_tokens = static_cast<std::size_t>(lease_->found().disk_tokens);
  use_.restore_seconds = monotonic_seconds() - start;
  return memory_.reserve_tokens(room);
}

Status Session::make_plan() {
  const model::ModelShape& shape = model_->shape();
  const auto prompt = static_cast<std::int64_t>(lengths_.prompt_tokens);
  const cache::ReplayGeometry geometry = {.window = shape.window,
                                          .encoder_layers = shape.boundary,
                                          .group = model_->layout().largest_tokens_per_row()};
  cache::ReplayRequest request = {
      .prompt_tokens = prompt,
      .stored_tokens = lease_ ? lease_->found().tokens : 0,
      .decoder_tokens = replay_length(
          options_.replay, prompt,
          {.window = shape.window, .decoder_layers = shape.layer_count - shape.boundary}),
      .snapshots = {}};
  plan_ = cache::make_replay_plan(request, geometry);
  while (lease_) {
    const std::int64_t snapshot = lease_->find_snapshot(plan_.start, plan_.exact_from);
    if (snapshot == 0 || !lease_->restore_rings(snapshot, memory_)) {
      if (snapshot == 0) return {};
      continue;
    }
    request.snapshots = {&snapshot, 1};
    plan_ = cache::make_replay_plan(request, geometry);
    return {};
  }
  return {};
}

void Session::stage_slice(std::size_t most) {
  LOCKET_CHECK(is_reading() && most >= 1);
  staged_ = std::min(fed_ + most, reading_end_);
  if (!lease_) return;
  staged_ = static_cast<std::size_t>(cache::next_stop(
      static_cast<std::int64_t>(fed_), static_cast<std::int64_t>(staged_), boundaries_));
}

Status Session::stage_token(TokenId token) {
  LOCKET_CHECK(!tokens_.empty() && !is_reading());
  LOCKET_TRY_STATUS(check_ids({&token, 1}));
  LOCKET_TRY_STATUS(check_room(fed_ + 1));
  LOCKET_TRY_STATUS(memory_.reserve_tokens(static_cast<std::int64_t>(fed_) + 1));
  tokens_.push_back(token);
  staged_ = tokens_.size();
  return {};
}

Status Session::append(TokenId token) {
  LOCKET_TRY_STATUS(stage_token(token));
  return run_alone();
}

Status Session::run_alone() {
  Session* const self = this;
  return std::move(run_staged(*model_, context_, {&self, 1}).front());
}

Status Session::settle(Status run) {
  const bool was_reading = is_reading();
  if (run) run = accept();
  if (run) return run;
  // Tokens whose run failed have no rows: they must not be remembered.
  if (was_reading && is_worth_another_try(run.error())) {
    start_over();
    return open();
  }
  if (!was_reading) tokens_.resize(fed_);
  staged_ = fed_;
  return run;
}

// New pages become known, and rings where they are exact.
Status Session::accept() {
  const bool ends_reading = is_reading() && staged_ == reading_end_;
  const auto position = static_cast<std::int64_t>(staged_);
  if (lease_) {
    LOCKET_TRY_STATUS(lease_->publish(std::span(tokens_).first(staged_), memory_));
    const bool is_boundary = position > 0 && position % cache::kTokensPerPage == 0;
    if (is_boundary && position >= plan_.exact_from) {
      const auto keep = boundaries_.contains(position) && is_reading()
                            ? cache::PrefixLease::Keep::kStored
                            : cache::PrefixLease::Keep::kLive;
      lease_->keep_snapshot(position, keep, memory_);
    }
  }
  fed_ = staged_;
  const bool has_restored = use_.disk_tokens > 0;
  if (ends_reading && has_restored && options_.after_restored_run) {
    return options_.after_restored_run();
  }
  return {};
}

cache::TurnLengths Session::turn_lengths() const {
  return {.prompt_tokens = static_cast<std::int64_t>(lengths_.prompt_tokens),
          .system_tokens = static_cast<std::int64_t>(lengths_.system_tokens),
          .total_tokens = static_cast<std::int64_t>(std::max(lengths_.prompt_tokens, fed_)),
          .window = model_->shape().window};
}

void Session::end_turn() {
  if (!lease_ || fed_ == 0) return;
  const Status status = lease_->end_turn(tokens(), turn_lengths(), memory_);
  if (!status) log_warning("this turn is not remembered: " + status.error().message);
}

MemoryUse Session::memory_use() const {
  MemoryUse use = use_;
  if (lease_) use.restore_seconds = std::max(use.restore_seconds, lease_->restore_seconds());
  return use;
}

}  // namespace locket::engine
