#include "service/request_run.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"

namespace locket::service {

using Pace = engine::Scheduler::Pace;
using Stage = RequestProgress::Stage;

RequestRun::RequestRun(std::uint64_t id, PreparedRequest request, std::shared_ptr<RequestSink> sink)
    : id_(id),
      request_(std::move(request)),
      sink_(std::move(sink)),
      arrived_(monotonic_seconds()),
      has_started_others_(request_.choice_count == 1) {
  result_.choices.resize(request_.choice_count);
  result_.usage.prompt_tokens = request_.generation.prompt.size();
}

void RequestRun::start(const LoadedModel& loaded, engine::Scheduler& scheduler) {
  add_choice(loaded, scheduler, 0);
}

void RequestRun::start_others(const LoadedModel& loaded, engine::Scheduler& scheduler) {
  has_started_others_ = true;
  for (std::size_t choice = 1; choice < request_.choice_count; ++choice) {
    add_choice(loaded, scheduler, choice);
  }
}

void RequestRun::add_choice(const LoadedModel& loaded, engine::Scheduler& scheduler,
                            std::size_t choice) {
  ChoiceHooks hooks;
  if (choice == 0) {
    hooks.on_admitted = [this](const engine::MemoryUse& memory) { on_admitted(memory); };
    hooks.on_prompt = [this](std::size_t done, std::size_t total) { on_prompt(done, total); };
  }
  hooks.on_update = [this](const ChoiceUpdate& update) { on_update(update); };
  hooks.on_end = [this, choice](ChoiceResult result, const engine::GenerationEnd& end) {
    on_choice_end(choice, std::move(result), end);
  };
  const auto answer = std::make_shared<ChoiceAnswer>(loaded, request_, choice, std::move(hooks));
  choice_ids_.push_back(scheduler.add(generation_of(request_, choice), answer));
  if (is_cancelled_) scheduler.cancel(choice_ids_.back());
  if (pace_ == Pace::kPause) scheduler.set_pace(choice_ids_.back(), pace_);
}

void RequestRun::cancel(engine::Scheduler& scheduler) {
  is_cancelled_ = true;
  for (const engine::Scheduler::Id id : choice_ids_) scheduler.cancel(id);
}

void RequestRun::set_pace(engine::Scheduler& scheduler, Pace pace) {
  pace_ = pace;
  is_paused_ = pace == Pace::kPause;
  for (const engine::Scheduler::Id id : choice_ids_) scheduler.set_pace(id, pace);
}

void RequestRun::give_up(const Error& error) {
  result_.error = error;
  tell_end();
}

void RequestRun::on_admitted(const engine::MemoryUse& memory) {
  if (admitted_ > 0) return;  // it had been preempted
  admitted_ = monotonic_seconds();
  stage_ = Stage::kReading;
  hit_tokens_ = std::min(memory.hit_tokens, result_.usage.prompt_tokens);
  sink_->on_started();
}

void RequestRun::on_prompt(std::size_t done, std::size_t total) {
  read_tokens_ = done;
  sink_->on_prompt(done, total);
  if (done < total) return;
  has_read_ = true;
  read_ = monotonic_seconds();
  stage_ = Stage::kGenerating;
}

void RequestRun::on_update(const ChoiceUpdate& update) {
  if (first_token_ == 0) first_token_ = monotonic_seconds();
  completion_tokens_.fetch_add(update.new_tokens, std::memory_order_relaxed);
  sink_->on_update(update);
}

void RequestRun::on_choice_end(std::size_t choice, ChoiceResult result,
                               const engine::GenerationEnd& end) {
  RequestUsage& usage = result_.usage;
  usage.completion_tokens += result.completion_tokens;
  usage.reasoning_tokens += result.reasoning_tokens;
  if (choice == 0) {
    usage.hit_tokens = std::min(end.memory.hit_tokens, usage.prompt_tokens);
    usage.disk_tokens = std::min(end.memory.disk_tokens, usage.hit_tokens);
    usage.replayed_tokens = end.memory.replayed_tokens;
    result_.times.restore_seconds = end.memory.restore_seconds;
  }
  result_.choices[choice] = std::move(result);
  if (end.reason == engine::EndReason::kFailed && !result_.error) result_.error = end.error;
  if (end.reason == engine::EndReason::kCancelled && !result_.error) {
    result_.error = Error{ErrorCode::kCancelled, "the request was given up"};
  }
  ++ended_choices_;
  // What never started is not waited for once the first one has failed.
  const std::size_t awaited = has_started_others_ || !result_.error ? request_.choice_count : 1;
  if (ended_choices_ == awaited) tell_end();
}

void RequestRun::tell_end() {
  const double now = monotonic_seconds();
  RequestTimes& times = result_.times;
  times.queue_seconds = (admitted_ > 0 ? admitted_ : now) - arrived_;
  if (admitted_ > 0) times.prompt_seconds = (read_ > 0 ? read_ : now) - admitted_;
  if (read_ > 0) times.decode_seconds = now - read_;
  if (first_token_ > 0) times.first_token_seconds = first_token_ - arrived_;
  has_ended_ = true;
  sink_->on_end(result_);
}

RequestProgress RequestRun::progress() const {
  return {.id = id_,
          .label = request_.label,
          .stage = is_paused_ ? Stage::kPaused : stage_.load(),
          .prompt_tokens = request_.generation.prompt.size(),
          .read_tokens = read_tokens_,
          .hit_tokens = hit_tokens_,
          .completion_tokens = completion_tokens_,
          .age_seconds = monotonic_seconds() - arrived_};
}

}  // namespace locket::service
