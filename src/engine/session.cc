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

// The rows of `rows` from position `first` on.
model::ResidualRows rows_from(const model::ResidualRows& rows, std::int64_t first) {
  const auto skip =
      static_cast<std::size_t>(std::max<std::int64_t>(0, first - rows.first_position));
  model::ResidualRows rest = {
      .first_position = rows.first_position + static_cast<std::int64_t>(skip),
      .streams = {rows.count() - skip, rows.streams.columns()},
      .pre = {rows.count() - skip, rows.pre.columns()}};
  for (std::size_t i = 0; i < rest.count(); ++i) {
    std::ranges::copy(rows.streams.row(skip + i), rest.streams.row(i).begin());
    std::ranges::copy(rows.pre.row(skip + i), rest.pre.row(i).begin());
  }
  return rest;
}

}  // namespace

Session::Session(const model::V41Model& model, cache::PagePool& pool, WorkerPool& workers,
                 const SessionOptions& options)
    : model_(&model),
      options_(options),
      memory_(model.memory().layout, pool),
      state_(model.make_state()),
      context_(model.make_context(workers)) {
  LOCKET_CHECK(options.slice_tokens >= 1);
  context_.observer = options.observer;
}

Status Session::check_room(std::size_t token_count) const {
  const auto limit = static_cast<std::size_t>(model_->config().max_positions);
  if (token_count <= limit) return {};
  return fail(ErrorCode::kContextTooLong,
              fmt::format("{} tokens are more than the {} that the model takes "
                          "(max_position_embeddings)",
                          token_count, limit));
}

Status Session::check_ids(std::span<const TokenId> ids) const {
  const auto vocabulary = static_cast<TokenId>(model_->config().vocabulary_size);
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
  LOCKET_CHECK(tokens_.empty() && lengths.prompt_tokens <= prompt.size());
  if (prompt.empty()) return fail(ErrorCode::kBadRequest, "the prompt has no tokens");
  LOCKET_TRY_STATUS(check_ids(prompt));
  LOCKET_TRY_STATUS(check_room(prompt.size()));
  lengths_ = lengths;
  if (lengths_.prompt_tokens == 0) lengths_.prompt_tokens = prompt.size();
  while (true) {
    Status status = read({.tokens = prompt, .stop = stop, .on_slice = on_slice});
    if (status || !is_worth_another_try(status.error())) return status;
    start_over();
  }
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
  tokens_.clear();
  use_ = {.retries = use_.retries};
}

Status Session::open_memory(std::span<const TokenId> tokens) {
  const auto room = static_cast<std::int64_t>(std::max(tokens.size(), lengths_.room_tokens));
  if (options_.memory == nullptr || !trusts_memory_) return memory_.reserve_tokens(room);
  // Nothing is evicted for what can never fit.
  LOCKET_TRY_STATUS(memory_.check_budget(room));
  const double start = monotonic_seconds();
  LOCKET_TRY(cache::PrefixLease lease, options_.memory->open(options_.tenant, tokens, memory_));
  lease_.emplace(std::move(lease));
  use_.hit_tokens = static_cast<std::size_t>(lease_->found().tokens);
  use_.disk_tokens = static_cast<std::size_t>(lease_->found().disk_tokens);
  use_.restore_seconds = monotonic_seconds() - start;
  return memory_.reserve_tokens(room);
}

Status Session::make_plan() {
  const model::V41Config& config = model_->config();
  const auto prompt = static_cast<std::int64_t>(lengths_.prompt_tokens);
  const std::int64_t decoder_layers = config.layer_count - config.boundary;
  const cache::ReplayGeometry geometry = {
      .window = config.sliding_window,
      .encoder_layers = config.boundary,
      .group = model_->memory().layout.largest_tokens_per_row()};
  cache::ReplayRequest request = {
      .prompt_tokens = prompt,
      .stored_tokens = lease_ ? lease_->found().tokens : 0,
      .decoder_tokens =
          replay_length(options_.replay, prompt,
                        {.window = config.sliding_window, .decoder_layers = decoder_layers}),
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

Status Session::read(const Reading& reading) {
  LOCKET_TRY_STATUS(open_memory(reading.tokens));
  LOCKET_TRY_STATUS(make_plan());
  use_.replayed_tokens = lease_ ? static_cast<std::size_t>(plan_.replayed_tokens()) : 0;
  const auto total = static_cast<std::int64_t>(reading.tokens.size());
  const std::set<std::int64_t> boundaries = cache::stored_boundaries(turn_lengths());
  const auto start = static_cast<std::ptrdiff_t>(plan_.start);
  tokens_.assign(reading.tokens.begin(), reading.tokens.begin() + start);
  while (tokens_.size() < reading.tokens.size()) {
    if (reading.stop.stop_requested()) {
      return fail(ErrorCode::kCancelled, fmt::format("stopped after {} of {} prompt tokens",
                                                     tokens_.size(), reading.tokens.size()));
    }
    const std::size_t first = tokens_.size();
    std::size_t end = std::min(first + options_.slice_tokens, reading.tokens.size());
    if (lease_) {
      end = static_cast<std::size_t>(cache::next_stop(static_cast<std::int64_t>(first),
                                                      static_cast<std::int64_t>(end), boundaries));
    }
    const auto part = reading.tokens.subspan(first, end - first);
    tokens_.insert(tokens_.end(), part.begin(), part.end());
    LOCKET_TRY_STATUS(run_newest(first));
    LOCKET_TRY_STATUS(remember(boundaries.contains(static_cast<std::int64_t>(end))
                                   ? cache::PrefixLease::Keep::kStored
                                   : cache::PrefixLease::Keep::kLive));
    if (reading.on_slice) reading.on_slice(tokens_.size());
  }
  LOCKET_CHECK(static_cast<std::int64_t>(tokens_.size()) == total);
  const bool has_restored = use_.disk_tokens > 0;
  if (has_restored && options_.after_restored_run) return options_.after_restored_run();
  return {};
}

// New pages become known, and rings where they are exact.
Status Session::remember(cache::PrefixLease::Keep keep) {
  if (!lease_) return {};
  LOCKET_TRY_STATUS(lease_->publish(tokens_, memory_));
  const auto position = static_cast<std::int64_t>(tokens_.size());
  const bool is_boundary = position > 0 && position % cache::kTokensPerPage == 0;
  if (is_boundary && position >= plan_.exact_from) lease_->keep_snapshot(position, keep, memory_);
  return {};
}

cache::TurnLengths Session::turn_lengths() const {
  return {
      .prompt_tokens = static_cast<std::int64_t>(lengths_.prompt_tokens),
      .system_tokens = static_cast<std::int64_t>(lengths_.system_tokens),
      .total_tokens = static_cast<std::int64_t>(std::max(lengths_.prompt_tokens, tokens_.size())),
      .window = model_->config().sliding_window};
}

void Session::end_turn() {
  if (!lease_ || tokens_.empty()) return;
  const Status status = lease_->end_turn(tokens_, turn_lengths(), memory_);
  if (!status) log_warning("this turn is not remembered: " + status.error().message);
}

MemoryUse Session::memory_use() const {
  MemoryUse use = use_;
  if (lease_) use.restore_seconds = std::max(use.restore_seconds, lease_->restore_seconds());
  return use;
}

Status Session::append(TokenId token) {
  LOCKET_CHECK(lengths_.prompt_tokens > 0 && tokens_.size() >= lengths_.prompt_tokens);
  LOCKET_TRY_STATUS(check_ids({&token, 1}));
  LOCKET_TRY_STATUS(check_room(tokens_.size() + 1));
  LOCKET_TRY_STATUS(memory_.reserve_tokens(static_cast<std::int64_t>(tokens_.size()) + 1));
  tokens_.push_back(token);
  LOCKET_TRY_STATUS(run_newest(tokens_.size() - 1));
  return remember(cache::PrefixLease::Keep::kLive);
}

// Tokens whose run failed have no rows: they must not be remembered.
Status Session::run_newest(std::size_t first) {
  Status status = run(first);
  if (!status) tokens_.resize(first);
  return status;
}

Status Session::run(std::size_t first) {
  const cache::KvView view = memory_.view();
  LOCKET_TRY(model::ResidualRows encoded,
             model_->encode(context_, view, state_,
                            {.tokens = tokens_,
                             .first_position = static_cast<std::int64_t>(first),
                             .window_start = plan_.window_start(),
                             .write_from = plan_.write_from}));
  const auto end = static_cast<std::int64_t>(tokens_.size());
  const std::int64_t segment_start = plan_.decoder_start;
  if (end <= segment_start) return {};
  model::ResidualRows rows = rows_from(encoded, segment_start);
  LOCKET_TRY_STATUS(model_->decode(context_, view, tokens_, segment_start, rows));
  const bool is_last = tokens_.size() >= lengths_.prompt_tokens;
  if (options_.observer == nullptr && !is_last) return {};
  const std::size_t skip = options_.observer != nullptr ? 0 : rows.count() - 1;
  const tensor::FloatMatrix logits = model_->logits(context_, rows, skip);
  if (options_.observer != nullptr) {
    options_.observer->on_floats(
        {.name = "logits", .first_position = rows.first_position, .width = logits.columns()},
        logits.values());
  }
  const auto newest = logits.row(logits.rows() - 1);
  logits_.assign(newest.begin(), newest.end());
  return {};
}

}  // namespace locket::engine
