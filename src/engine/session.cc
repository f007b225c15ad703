#include "engine/session.h"

#include <algorithm>
#include <fmt/format.h>

#include "base/check.h"

namespace locket::engine {
namespace {

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
                        const std::function<void(std::size_t)>& on_slice) {
  LOCKET_CHECK(tokens_.empty());
  if (prompt.empty()) return fail(ErrorCode::kBadRequest, "the prompt has no tokens");
  LOCKET_TRY_STATUS(check_ids(prompt));
  LOCKET_TRY_STATUS(check_room(prompt.size()));
  LOCKET_TRY_STATUS(memory_.reserve_tokens(static_cast<std::int64_t>(prompt.size())));
  const auto count = static_cast<std::int64_t>(prompt.size());
  const model::V41Config& config = model_->config();
  prompt_tokens_ = prompt.size();
  segment_start_ = count - replay_length(options_.replay, count,
                                         {.window = config.sliding_window,
                                          .decoder_layers = config.layer_count - config.boundary});
  while (tokens_.size() < prompt.size()) {
    if (stop.stop_requested()) {
      return fail(ErrorCode::kCancelled, fmt::format("stopped after {} of {} prompt tokens",
                                                     tokens_.size(), prompt.size()));
    }
    const std::size_t first = tokens_.size();
    const std::size_t slice = std::min(options_.slice_tokens, prompt.size() - first);
    const auto part = prompt.subspan(first, slice);
    tokens_.insert(tokens_.end(), part.begin(), part.end());
    LOCKET_TRY_STATUS(run(first));
    if (on_slice) on_slice(tokens_.size());
  }
  return {};
}

Status Session::append(TokenId token) {
  LOCKET_CHECK(prompt_tokens_ > 0 && tokens_.size() >= prompt_tokens_);
  LOCKET_TRY_STATUS(check_ids({&token, 1}));
  LOCKET_TRY_STATUS(check_room(tokens_.size() + 1));
  LOCKET_TRY_STATUS(memory_.reserve_tokens(static_cast<std::int64_t>(tokens_.size()) + 1));
  tokens_.push_back(token);
  return run(tokens_.size() - 1);
}

Status Session::run(std::size_t first) {
  const cache::KvView view = memory_.view();
  LOCKET_TRY(
      model::ResidualRows encoded,
      model_->encode(context_, view, state_,
                     {.tokens = tokens_, .first_position = static_cast<std::int64_t>(first)}));
  const auto end = static_cast<std::int64_t>(tokens_.size());
  if (end <= segment_start_) return {};
  model::ResidualRows rows = rows_from(encoded, segment_start_);
  LOCKET_TRY_STATUS(model_->decode(context_, view, tokens_, segment_start_, rows));
  const bool is_last = tokens_.size() >= prompt_tokens_;
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
