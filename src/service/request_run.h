// One request on its way: its choices, what they have said so far, and what its owner is told.
// Everything but progress() belongs to the thread that runs the model.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/scheduler.h"
#include "service/choice_answer.h"
#include "service/prepared_request.h"
#include "service/request_sink.h"

namespace locket::service {

// How far a request has got, for pages and metrics.
struct RequestProgress {
  std::uint64_t id = 0;
  std::string label;  // the owner's: never prompt text
  enum class Stage { kQueued, kReading, kGenerating, kPaused, kCount } stage = Stage::kQueued;
  std::size_t prompt_tokens = 0;
  std::size_t read_tokens = 0;
  std::size_t hit_tokens = 0;
  std::size_t completion_tokens = 0;
  double age_seconds = 0;
};

class RequestRun {
 public:
  RequestRun(std::uint64_t id, PreparedRequest request, std::shared_ptr<RequestSink> sink);
  RequestRun(const RequestRun&) = delete;
  RequestRun& operator=(const RequestRun&) = delete;

  std::uint64_t id() const { return id_; }
  const std::string& owner() const { return request_.owner; }
  std::size_t choice_count() const { return request_.choice_count; }

  // Hands the first choice to the scheduler; the others follow with start_others(), when it has
  // read the prompt that all of them share. REQUIRES: outlives the choices. Both once.
  void start(const LoadedModel& loaded, engine::Scheduler& scheduler);
  bool wants_others() const { return has_read_ && !has_started_others_; }
  void start_others(const LoadedModel& loaded, engine::Scheduler& scheduler);
  bool is_started() const { return !choice_ids_.empty(); }

  void cancel(engine::Scheduler& scheduler);
  void set_pace(engine::Scheduler& scheduler, engine::Scheduler::Pace pace);
  // It never began: tells its owner the end.
  void give_up(const Error& error);
  // The owner has been told the end.
  bool has_ended() const { return has_ended_; }

  // From any thread.
  RequestProgress progress() const;

 private:
  void add_choice(const LoadedModel& loaded, engine::Scheduler& scheduler, std::size_t choice);
  void on_admitted(const engine::MemoryUse& memory);
  void on_prompt(std::size_t done, std::size_t total);
  void on_update(const ChoiceUpdate& update);
  void on_choice_end(std::size_t choice, ChoiceResult result, const engine::GenerationEnd& end);
  void tell_end();

  std::uint64_t id_;
  PreparedRequest request_;
  std::shared_ptr<RequestSink> sink_;
  double arrived_;
  double admitted_ = 0;  // 0: not yet
  double read_ = 0;
  double first_token_ = 0;
  std::vector<engine::Scheduler::Id> choice_ids_;
  std::size_t ended_choices_ = 0;
  bool has_read_ = false;
  bool has_started_others_ = false;
  bool is_cancelled_ = false;
  bool has_ended_ = false;
  engine::Scheduler::Pace pace_ = engine::Scheduler::Pace::kRun;
  RequestResult result_;

  std::atomic<RequestProgress::Stage> stage_ = RequestProgress::Stage::kQueued;
  std::atomic<bool> is_paused_ = false;
  std::atomic<std::size_t> read_tokens_ = 0;
  std::atomic<std::size_t> hit_tokens_ = 0;
  std::atomic<std::size_t> completion_tokens_ = 0;
};

}  // namespace locket::service
