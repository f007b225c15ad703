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

// Pieces of a round for each thread, if there are as many grains: a thread that is slower than the
// others, because something else has its processor, keeps them waiting for one piece at most.
constexpr std::size_t kPiecesPerThread = 4;

// The pieces of one thread, which it takes in order; whoever is done with his own takes of others.
struct alignas(kCacheLine) Queue {
  std::atomic<std::size_t> next = 0;
  std::size_t end = 0;
};

// What a round is: its number, and how many threads are called to it (those with the lowest
// numbers; the caller is thread 0). In one word, so that the others need not look at anything else.
constexpr std::uint64_t kThreadsMask = 0xFFFF;
constexpr std::uint64_t kNextRound = kThreadsMask + 1;
constexpr std::uint64_t kStop = kThreadsMask;  // more threads than any pool has

// Beside the number of threads in a round: nobody may enter any more.
constexpr std::size_t kClosed = ~(~std::size_t{0} >> 1);

}  // namespace

struct WorkerPool::State {
  std::atomic<bool> has_caller = false;
  // Of the current round; written while it is closed and nobody is in it.
  const std::function<void(std::size_t, std::size_t)>* run = nullptr;
  std::size_t piece = 1;
  std::size_t parts = 0;      // queues in use
  std::vector<Queue> queues;  // [threads]

  alignas(kCacheLine) std::atomic<std::uint64_t> round = 0;
  alignas(kCacheLine) std::atomic<std::size_t> inside = kClosed;  // threads, without the caller
  WaitingRoom caller;
  std::vector<WaitingRoom> idle;  // [threads - 1]
  std::vector<std::jthread> threads;

  explicit State(std::size_t thread_count) : queues(thread_count), idle(thread_count - 1) {
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
      seen = round;
      if ((seen & kThreadsMask) == kStop) return;
      // A thread that comes late finds the round closed, or is in the next one.
      if (!enter()) continue;
      take_pieces(index);
      if (inside.fetch_sub(1) == kClosed + 1) caller.wake();
    }
  }

  bool enter() {
    std::size_t now = inside;
    while ((now & kClosed) == 0) {
      if (inside.compare_exchange_weak(now, now + 1)) return true;
    }
    return false;
  }

  void take_pieces(std::size_t index) {
    for (std::size_t other = 0; other < parts; ++other) {
      Queue& queue = queues[(index + other) % parts];
      for (std::size_t begin = queue.next.fetch_add(piece); begin < queue.end;
           begin = queue.next.fetch_add(piece)) {
        (*run)(begin, std::min(begin + piece, queue.end));
      }
    }
  }

  void fill_queues(std::size_t count, std::size_t grain) {
    const std::size_t grains = (count + grain - 1) / grain;
    piece = std::max<std::size_t>(1, grains / (parts * kPiecesPerThread)) * grain;
    const auto cut = [&](std::size_t part) {
      return std::min(count, grains * part / parts * grain);
    };
    for (std::size_t part = 0; part < parts; ++part) {
      queues[part].next = cut(part);
      queues[part].end = cut(part + 1);
    }
  }

  // Calls so many threads, the caller among them.
  void call(std::size_t wanted) {
    round = (round & ~kThreadsMask) + kNextRound + wanted;
    const std::size_t others = std::min(wanted - 1, idle.size());
    for (std::size_t index = 0; index < others; ++index) idle[index].wake();
  }
};

WorkerPool::WorkerPool(std::size_t thread_count) {
  LOCKET_CHECK(thread_count >= 1 && thread_count < kStop);
  state_ = std::make_unique<State>(thread_count);
}

WorkerPool::~WorkerPool() {
  state_->call(kStop);
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

std::size_t WorkerPool::pieces_for(std::uint64_t work) const {
  const std::size_t most = thread_count() > 1 ? thread_count() * kPiecesPerThread : 1;
  return std::clamp<std::uint64_t>(work / kWorthAThread, 1, most);
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
  state.parts = parts;
  state.fill_queues(count, grain);
  state.inside = 0;
  state.call(parts);
  state.take_pieces(0);
  state.inside.fetch_or(kClosed);
  state.caller.wait([&] { return state.inside == kClosed; });
  state.has_caller = false;
}

}  // namespace locket
