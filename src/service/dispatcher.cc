#include "service/dispatcher.h"

#include <algorithm>
#include <condition_variable>
#include <fmt/format.h>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "base/clock.h"
#include "engine/scheduler.h"
#include "service/waiting_requests.h"

namespace locket::service {
namespace {

using RunPtr = std::shared_ptr<RequestRun>;

}  // namespace

struct Dispatcher::State {
  // What another thread has asked for.
  struct Command {
    Order order = Order::kCancel;
    RequestId id = 0;
  };

  State(const LoadedModel& loaded_model, const DispatcherOptions& dispatcher_options)
      : loaded(loaded_model),
        options(dispatcher_options),
        scheduler(loaded_model.engine(),
                  {.max_running = dispatcher_options.max_running,
                   .pacer = {.most_prompt_tokens = dispatcher_options.prompt_tokens_per_step,
                             .most_stretch = dispatcher_options.most_step_stretch}}) {}

  // The model's thread.
  void run();
  bool take_commands();
  void apply(const Command& command);
  void start_requests();
  void start_choices();
  void forget_ended();
  void note_step();
  Status check_room(const std::string& owner) const;

  const LoadedModel& loaded;
  DispatcherOptions options;

  mutable std::mutex mutex;
  std::condition_variable changed;
  std::vector<Command> commands;
  WaitingRequests waiting;
  std::unordered_map<RequestId, RunPtr> runs;  // waiting and at work
  RequestId next_id = 1;
  bool is_admitting = true;
  bool cancels_all = false;
  bool is_stopping = false;
  bool has_arrivals = false;
  bool has_work = false;  // the last step got on with something
  double busy_since = 0;  // when the last step ended, while there is something to do; 0: idle
  DispatcherLoad load;    // without the scheduler's counts

  // The model's thread only, but for its counts.
  engine::Scheduler scheduler;
  std::vector<RunPtr> working;
};

Dispatcher::Dispatcher(const LoadedModel& loaded, const DispatcherOptions& options)
    : state_(std::make_unique<State>(loaded, options)), thread_(std::make_unique<TaskThread>()) {
  thread_->post([this] { state_->run(); });
}

Dispatcher::~Dispatcher() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->is_admitting = false;
    state_->cancels_all = true;
    state_->is_stopping = true;
  }
  state_->changed.notify_all();
  thread_.reset();
}

Status Dispatcher::State::check_room(const std::string& owner) const {
  if (!is_admitting) {
    return fail(ErrorCode::kOverloaded, "the server is shutting down; ask again later");
  }
  if (waiting.size() >= options.max_queued) {
    return fail(ErrorCode::kOverloaded,
                fmt::format("{} requests wait already, which is the limit; try again later",
                            waiting.size()));
  }
  const std::size_t own = waiting.count_of(owner);
  if (options.max_per_owner > 0 && own >= options.max_per_owner) {
    return fail(ErrorCode::kOverloaded,
                fmt::format("{} requests of this key are at work or waiting, which is the limit; "
                            "try again when one has ended",
                            own));
  }
  return {};
}

Result<Dispatcher::RequestId> Dispatcher::submit(PreparedRequest request,
                                                 std::shared_ptr<RequestSink> sink) {
  RequestId id = 0;
  {
    const std::lock_guard lock(state_->mutex);
    LOCKET_TRY_STATUS(state_->check_room(request.owner));
    id = state_->next_id++;
    auto run = std::make_shared<RequestRun>(id, std::move(request), std::move(sink));
    state_->runs.emplace(id, run);
    state_->waiting.push(std::move(run));
    state_->has_arrivals = true;
    if (state_->busy_since == 0) state_->busy_since = monotonic_seconds();
  }
  state_->changed.notify_all();
  return id;
}

void Dispatcher::send(RequestId id, Order order) {
  {
    const std::lock_guard lock(state_->mutex);
    state_->commands.push_back({.order = order, .id = id});
  }
  state_->changed.notify_all();
}

void Dispatcher::cancel(RequestId id) { send(id, Order::kCancel); }
void Dispatcher::pause(RequestId id) { send(id, Order::kPause); }
void Dispatcher::resume(RequestId id) { send(id, Order::kResume); }

void Dispatcher::stop_admitting() {
  const std::lock_guard lock(state_->mutex);
  state_->is_admitting = false;
}

bool Dispatcher::is_idle() const {
  const std::lock_guard lock(state_->mutex);
  return state_->runs.empty();
}

void Dispatcher::cancel_all() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->cancels_all = true;
  }
  state_->changed.notify_all();
}

DispatcherLoad Dispatcher::load() const {
  // The scheduler's own counts, not those of the step that ended last: who has an answer and asks
  // for the counts finds its tokens in them.
  const engine::SchedulerCounts counts = state_->scheduler.counts();
  const std::lock_guard lock(state_->mutex);
  DispatcherLoad load = state_->load;
  load.steps = counts.steps;
  load.prompt_tokens = counts.prompt_tokens;
  load.hit_tokens = counts.hit_tokens;
  load.generated_tokens = counts.generated_tokens;
  load.preemptions = counts.preemptions;
  load.queued = state_->waiting.size();
  if (state_->busy_since > 0) load.seconds_since_step = monotonic_seconds() - state_->busy_since;
  return load;
}

std::vector<RequestProgress> Dispatcher::progress() const {
  std::vector<RunPtr> runs;
  {
    const std::lock_guard lock(state_->mutex);
    for (const auto& [id, run] : state_->runs) runs.push_back(run);
  }
  std::ranges::sort(runs, {}, [](const RunPtr& run) { return run->id(); });
  std::vector<RequestProgress> progress;
  progress.reserve(runs.size());
  for (const RunPtr& run : runs) progress.push_back(run->progress());
  return progress;
}

void Dispatcher::State::run() {
  while (take_commands()) {
    start_requests();
    has_work = scheduler.step();
    start_choices();
    forget_ended();
    note_step();
  }
}

// Waits until there is something to do. False: it is over.
bool Dispatcher::State::take_commands() {
  std::vector<Command> taken;
  {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] {
      return has_work || has_arrivals || !commands.empty() || cancels_all || is_stopping;
    });
    taken.swap(commands);
    if (cancels_all) {
      for (const auto& [id, run] : runs) taken.push_back({.order = Order::kCancel, .id = id});
      cancels_all = false;
    }
    if (is_stopping && runs.empty()) return false;
  }
  for (const Command& command : taken) apply(command);
  return true;
}

void Dispatcher::State::apply(const Command& command) {
  RunPtr run;
  RunPtr waited;
  {
    const std::lock_guard lock(mutex);
    const auto found = runs.find(command.id);
    if (found == runs.end()) return;
    run = found->second;
    if (command.order == Order::kCancel) waited = waiting.remove(command.id);
    if (waited != nullptr) runs.erase(found);
  }
  if (waited != nullptr) {
    return waited->give_up({ErrorCode::kCancelled, "the request was given up while it waited"});
  }
  has_work = true;  // what was paused may run again
  switch (command.order) {
    case Order::kCancel:
      return run->cancel(scheduler);
    case Order::kPause:
      return run->set_pace(scheduler, engine::Scheduler::Pace::kPause);
    case Order::kResume:
      return run->set_pace(scheduler, engine::Scheduler::Pace::kRun);
    case Order::kCount:
      break;
  }
}

void Dispatcher::State::start_requests() {
  while (true) {
    RunPtr run;
    {
      const std::lock_guard lock(mutex);
      has_arrivals = false;  // what cannot start now can when somebody has ended
      if (waiting.is_empty()) return;
      const std::size_t at_work = scheduler.running() + scheduler.waiting();
      const std::size_t after = at_work + waiting.next().choice_count();
      if (at_work > 0 && after > options.max_running) return;
      run = waiting.start_next();
    }
    run->start(loaded, scheduler);
    working.push_back(std::move(run));
  }
}

void Dispatcher::State::start_choices() {
  for (const RunPtr& run : working) {
    if (run->wants_others()) run->start_others(loaded, scheduler);
  }
}

void Dispatcher::State::forget_ended() {
  std::vector<RunPtr> ended;
  std::erase_if(working, [&](const RunPtr& run) {
    if (run->has_ended()) ended.push_back(run);
    return run->has_ended();
  });
  if (ended.empty()) return;
  const std::lock_guard lock(mutex);
  for (const RunPtr& run : ended) {
    waiting.forget(*run);
    runs.erase(run->id());
  }
}

void Dispatcher::State::note_step() {
  const std::lock_guard lock(mutex);
  load.running = scheduler.running() + scheduler.waiting();
  load.paused = scheduler.paused();
  const bool is_busy = has_work || (!runs.empty() && load.paused < load.running);
  busy_since = is_busy ? monotonic_seconds() : 0;
}

}  // namespace locket::service
