// Many requests, one model: a bounded queue, one thread that runs the model for all of them
// together, and the means to follow, slow down or give up each of them. The answer of a request is
// the same bits alone or among others. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/task_thread.h"
#include "service/prepared_request.h"
#include "service/request_run.h"
#include "service/request_sink.h"

namespace locket::service {

struct DispatcherOptions {
  std::size_t max_running = 256;  // choices that the model works on at once
  std::size_t max_queued = 1024;  // requests that wait; one more is refused
  std::size_t max_per_owner = 0;  // requests of one owner, running and queued; 0: no limit
  std::size_t prompt_tokens_per_step = 512;
  // A step with prompt tokens takes at most about this many times a step without, while others are
  // generating; 0: no limit but the one above.
  std::size_t most_step_stretch = 4;
};

struct DispatcherLoad {
  std::size_t queued = 0;
  std::size_t running = 0;
  std::size_t paused = 0;           // of the running ones
  std::uint64_t steps = 0;          // steps of the model so far
  double seconds_since_step = 0;    // since the last one ended; 0: nothing to do
  std::uint64_t prompt_tokens = 0;  // computed so far, since the start
  std::uint64_t hit_tokens = 0;     // not computed, because they were remembered
  std::uint64_t generated_tokens = 0;
  std::uint64_t preemptions = 0;  // sequences that gave their memory up and went on later
};

class Dispatcher {
 public:
  using RequestId = std::uint64_t;

  // `loaded` must outlive it.
  Dispatcher(const LoadedModel& loaded, const DispatcherOptions& options);
  Dispatcher(const Dispatcher&) = delete;
  Dispatcher& operator=(const Dispatcher&) = delete;
  // Gives up what is left, and tells its owners; what was read stays in the memory.
  ~Dispatcher();

  // Queues it. kOverloaded, saying what is full, if it cannot wait. The sink is told the end in any
  // case after this has succeeded.
  [[nodiscard]] Result<RequestId> submit(PreparedRequest request,
                                         std::shared_ptr<RequestSink> sink);
  // Its owner has no more use for it; it ends with kCancelled, within one step. Unknown ids are
  // ignored.
  void cancel(RequestId id);
  // A reader that cannot follow: it is left out of steps until resume().
  void pause(RequestId id);
  void resume(RequestId id);

  // No new requests from now on (kOverloaded); returns at once.
  void stop_admitting();
  // Whether nothing runs and nothing waits.
  bool is_idle() const;
  // Ends everything now: owners are told kCancelled.
  void cancel_all();

  DispatcherLoad load() const;
  std::vector<RequestProgress> progress() const;

 private:
  struct State;
  enum class Order { kCancel, kPause, kResume, kCount };
  void send(RequestId id, Order order);

  std::unique_ptr<State> state_;
  std::unique_ptr<TaskThread> thread_;  // must go before state_
};

}  // namespace locket::service
