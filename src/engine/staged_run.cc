// One pass of the model over what several sessions have staged.
#include <algorithm>
#include <utility>

#include "base/check.h"
#include "engine/session.h"

namespace locket::engine {

// The sessions' shares of one pass; lives as long as it.
class StagedRun {
 public:
  StagedRun(const model::LanguageModel& model, model::ForwardContext& context,
            std::span<Session* const> sessions)
      : model_(model), context_(context), sessions_(sessions) {
    views_.reserve(sessions.size());
    for (Session* session : sessions) {
      LOCKET_CHECK(session->staged_ > session->fed_);
      LOCKET_CHECK(session->options_.observer == nullptr || sessions.size() == 1);
      views_.push_back(session->memory_.view());
      states_.push_back(&session->state_);
    }
  }

  std::vector<Status> run() {
    model::Step step = model_.make_step(encoder_parts());
    const model::ResidualRows encoded = model_.encode(context_, step, states_);
    std::vector<Status> statuses;
    for (model::StepPart& part : step.parts) statuses.push_back(std::move(part.status));
    decode(encoded, step, statuses);
    for (std::size_t i = 0; i < sessions_.size(); ++i) {
      statuses[i] = sessions_[i]->settle(std::move(statuses[i]));
    }
    return statuses;
  }

 private:
  static std::int64_t position(std::size_t index) { return static_cast<std::int64_t>(index); }

  std::vector<model::StepPart> encoder_parts() const {
    std::vector<model::StepPart> parts;
    for (std::size_t i = 0; i < sessions_.size(); ++i) {
      const Session& session = *sessions_[i];
      parts.push_back({.memory = &views_[i],
                       .tokens = std::span(session.tokens_).first(session.staged_),
                       .first_position = position(session.fed_),
                       .count = session.staged_ - session.fed_,
                       .segment_start = session.plan_.window_start(),
                       .write_from = session.plan_.write_from});
    }
    return parts;
  }

  // The rows of the decoder's segments go on through the decoder, and those whose logits are wanted
  // through the head.
  void decode(const model::ResidualRows& encoded, const model::Step& step,
              std::vector<Status>& statuses) {
    std::vector<model::StepPart> parts;
    std::vector<std::size_t> owners;   // [parts]
    std::vector<std::size_t> numbers;  // rows of the encoder's step
    for (std::size_t i = 0; i < sessions_.size(); ++i) {
      const Session& session = *sessions_[i];
      const std::int64_t segment_start = session.plan_.decoder_start;
      if (!statuses[i] || position(session.staged_) <= segment_start) continue;
      model::StepPart part = step.parts[i];
      const std::int64_t first = std::max(part.first_position, segment_start);
      const auto skip = static_cast<std::size_t>(first - part.first_position);
      for (std::size_t row = skip; row < part.count; ++row) {
        numbers.push_back(part.first_row + row);
      }
      part.first_position = first;
      part.count -= skip;
      part.segment_start = segment_start;
      part.status = {};
      parts.push_back(std::move(part));
      owners.push_back(i);
    }
    if (parts.empty()) return;
    model::Step decoder = model_.make_step(std::move(parts));
    model::ResidualRows rows = pick_rows(encoded, numbers);
    model_.decode(context_, decoder, rows);
    for (std::size_t part = 0; part < owners.size(); ++part) {
      statuses[owners[part]] = std::move(decoder.parts[part].status);
    }
    give_logits(rows, decoder, owners);
  }

  void give_logits(const model::ResidualRows& rows, const model::Step& decoder,
                   const std::vector<std::size_t>& owners) {
    if (sessions_.front()->options_.observer != nullptr) return give_observed(rows, decoder);
    std::vector<std::size_t> wanted;
    std::vector<Session*> takers;
    for (std::size_t part = 0; part < owners.size(); ++part) {
      Session* session = sessions_[owners[part]];
      if (session->staged_ < session->reading_end_) continue;
      wanted.push_back(decoder.parts[part].first_row + decoder.parts[part].count - 1);
      takers.push_back(session);
    }
    if (wanted.empty()) return;
    const model::ResidualRows picked = pick_rows(rows, wanted);
    if (give_largest(picked, takers)) return;
    const tensor::FloatMatrix logits = model_.logits(context_, picked);
    for (std::size_t i = 0; i < takers.size(); ++i) {
      takers[i]->logits_.assign(logits.row(i).begin(), logits.row(i).end());
      takers[i]->largest_logit_.reset();
    }
  }

  // Where nobody wants more. One who does has the whole head read, and the others take from that.
  bool give_largest(const model::ResidualRows& rows, std::span<Session* const> takers) {
    const auto is_content = [](const Session* session) {
      return session->head_wish_ == HeadWish::kLargest;
    };
    if (!std::ranges::all_of(takers, is_content)) return false;
    const std::vector<model::LargestLogit> largest = model_.largest_logits(context_, rows);
    if (largest.empty()) return false;
    for (std::size_t i = 0; i < takers.size(); ++i) {
      takers[i]->logits_.clear();
      takers[i]->largest_logit_ = largest[i];
    }
    return true;
  }

  // Somebody watches: he gets the logits of every row.
  void give_observed(const model::ResidualRows& rows, const model::Step& decoder) {
    Session& session = *sessions_.front();
    const tensor::FloatMatrix logits = model_.logits(context_, rows);
    session.options_.observer->on_floats(
        {.name = "logits", .first_position = decoder.first_position(), .width = logits.columns()},
        logits.values());
    const auto newest = logits.row(logits.rows() - 1);
    session.logits_.assign(newest.begin(), newest.end());
  }

  const model::LanguageModel& model_;
  model::ForwardContext& context_;
  std::span<Session* const> sessions_;
  std::vector<cache::KvView> views_;           // [sessions]
  std::vector<model::SequenceState*> states_;  // [sessions]
};

std::vector<Status> run_staged(const model::LanguageModel& model, model::ForwardContext& context,
                               std::span<Session* const> sessions) {
  return StagedRun(model, context, sessions).run();
}

}  // namespace locket::engine
