#include "base/worker_pool.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "base/check.h"
#include "base/clock.h"

namespace locket {
namespace {

// Multiply-adds that take about as long as handing a part to another thread.
constexpr std::size_t kWorthAThread = std::size_t{1} << 18;

// Seconds for which a thread looks for work before it sleeps: about what it costs to wake one.
constexpr double kLongLook = 50e-6;
// Where that is in vain again and again, because other work has the processors, a thread sleeps
// nearly at once, and looks long only now and then, to notice that they are free again.
constexpr unsigned kPatience = 8;
constexpr unsigned kLongLookEvery = 64;
constexpr int kLooksPerClock = 16;

constexpr std::size_t kCacheLine = 64;

struct Part {
  std::size_t begin = 0;
  std::size_t end = 0;
};

// Part `index` of `parts` of [0, count), cut at multiples of `grain`.
Part part_of(std::size_t count, std::size_t grain, std::size_t parts, std::size_t index) {
  const std::size_t grains = (count + grain - 1) / grain;
  const auto cut = [&](std::size_t part) { return std::min(count, grains * part / parts * grain); };
  return {cut(index), cut(index + 1)};
}

// One thread waits here until a condition on atomics holds that others make true. It must be
// written and read with sequential consistency: either the waiter sees it or wake() the waiter.
class WaitingRoom {
 public:
  template <class Condition>
  void wait(const Condition& condition) {
    if (is_true_soon(condition)) return;
    ++waits_;
    if (in_vain_ < kPatience || waits_ % kLongLookEvery == 0) {
      if (look_long(condition)) return;
    }
    std::unique_lock lock(mutex_);
    asleep_ = true;
    wake_.wait(lock, condition);
    asleep_ = false;
  }

  // After the condition has been made true.
  void wake() {
    if (!asleep_) return;
    { const std::unique_lock lock(mutex_); }
    wake_.notify_one();
  }

 private:
  template <class Condition>
  static bool is_true_soon(const Condition& condition) {
    for (int look = 0; look < kLooksPerClock; ++look) {
      if (condition()) return true;
      __builtin_ia32_pause();
    }
    return false;
  }

  template <class Condition>
  bool look_long(const Condition& condition) {
    const double start = monotonic_seconds();
    while (monotonic_seconds() - start < kLongLook) {
      if (!is_true_soon(condition)) continue;
      in_vain_ = 0;
      return true;
    }
    ++in_vain_;
    return false;
  }

  std::atomic<bool> asleep_ = false;
  std::mutex mutex_;
  std::condition_variable wake_;
  unsigned waits_ = 0;    // of the waiting thread, as the next
  unsigned in_vain_ = 0;  // long looks in a row
};

// What a round is: its number, and how many threads take part (those with the lowest numbers; the
// caller is thread 0). In one word, so that the others need not look at anything else.
constexpr std::uint64_t kThreadsMask = 0xFFFF;
constexpr std::uint64_t kNextRound = kThreadsMask + 1;
constexpr std::uint64_t kStop = kThreadsMask;  // more threads than any pool has

}  // namespace

struct WorkerPool::State {
  std::atomic<bool> has_caller = false;
  // Of the current round; written while no thread takes part.
  const std::function<void(std::size_t, std::size_t)>* run = nullptr;
  std::size_t count = 0;
  std::size_t grain = 1;

  alignas(kCacheLine) std::atomic<std::uint64_t> round = 0;
  alignas(kCacheLine) std::atomic<std::size_t> running = 0;  // without the caller
  WaitingRoom caller;
  std::vector<WaitingRoom> idle;  // [threads]
  std::vector<std::jthread> threads;

  explicit State(std::size_t thread_count) : idle(thread_count - 1) {
    for (std::size_t index = 1; index < thread_count; ++index) {
      threads.emplace_back([this, index] { work(index); });
    }
  }

  void work(std::size_t index) {
    std::uint64_t seen = 0;
    while (true) {
      idle[index - 1].wait([&] {
        const std::uint64_t now = round;
        return now != seen && (now & kThreadsMask) > index;
      });
      seen = round;  // the same one: it does not end without this thread
      const std::size_t parts = seen & kThreadsMask;
      if (parts == kStop) return;
      run_part(parts, index);
      if (running.fetch_sub(1) == 1) caller.wake();
    }
  }

  void run_part(std::size_t parts, std::size_t index) const {
    const Part part = part_of(count, grain, parts, index);
    (*run)(part.begin, part.end);
  }

  // Starts a round of so many threads.
  void start(std::size_t parts) {
    round = (round & ~kThreadsMask) + kNextRound + parts;
    const std::size_t wanted = std::min(parts - 1, idle.size());
    for (std::size_t index = 0; index < wanted; ++index) idle[index].wake();
  }
};

WorkerPool::WorkerPool(std::size_t thread_count) {
  LOCKET_CHECK(thread_count >= 1 && thread_count < kStop);
  state_ = std::make_unique<State>(thread_count);
}

WorkerPool::~WorkerPool() {
  state_->start(kStop);
  state_->threads.clear();
}

std::size_t WorkerPool::hardware_threads() {
  return std::max<std::size_t>(1, std::thread::hardware_concurrency());
}

std::size_t WorkerPool::thread_count() const { return state_->idle.size() + 1; }

std::size_t WorkerPool::grain_for(std::size_t item_work) {
  return std::max<std::size_t>(1, kWorthAThread / std::max<std::size_t>(1, item_work));
}

std::size_t WorkerPool::parts_for(std::uint64_t work) const {
  return std::clamp<std::uint64_t>(work / kWorthAThread, 1, thread_count());
}

void WorkerPool::parallel_for(std::size_t count, std::size_t grain,
                              const std::function<void(std::size_t begin, std::size_t end)>& run) {
  LOCKET_CHECK(grain >= 1);
  if (count == 0) return;
  const std::size_t parts = std::min(thread_count(), (count + grain - 1) / grain);
  if (parts == 1) {
    run(0, count);
    return;
  }
  State& state = *state_;
  LOCKET_CHECK(!state.has_caller.exchange(true));
  state.run = &run;
  state.count = count;
  state.grain = grain;
  state.running = parts - 1;
  state.start(parts);
  state.run_part(parts, 0);
  state.caller.wait([&] { return state.running == 0; });
  state.has_caller = false;
}

}  // namespace locket
