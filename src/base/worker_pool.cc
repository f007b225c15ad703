#include "base/worker_pool.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "base/check.h"

namespace locket {
namespace {

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

}  // namespace

struct WorkerPool::State {
  std::mutex mutex;
  std::condition_variable start;
  std::condition_variable done;
  const std::function<void(std::size_t, std::size_t)>* run = nullptr;
  std::size_t count = 0;
  std::size_t grain = 1;
  std::size_t round = 0;
  std::size_t running = 0;
  bool stopping = false;
  std::vector<std::jthread> threads;

  void work(std::size_t index) {
    std::size_t seen = 0;
    while (true) {
      std::unique_lock lock(mutex);
      start.wait(lock, [&] { return stopping || round != seen; });
      if (stopping) return;
      seen = round;
      const Part part = part_of(count, grain, threads.size() + 1, index);
      const auto* function = run;
      lock.unlock();
      if (part.begin < part.end) (*function)(part.begin, part.end);
      lock.lock();
      if (--running == 0) done.notify_one();
    }
  }
};

WorkerPool::WorkerPool(std::size_t thread_count) : state_(std::make_unique<State>()) {
  LOCKET_CHECK(thread_count >= 1);
  // threads.size() is read by the workers: it must be final before the first round.
  state_->threads.reserve(thread_count - 1);
  const std::unique_lock lock(state_->mutex);
  for (std::size_t index = 1; index < thread_count; ++index) {
    state_->threads.emplace_back([state = state_.get(), index] { state->work(index); });
  }
}

WorkerPool::~WorkerPool() {
  {
    const std::unique_lock lock(state_->mutex);
    state_->stopping = true;
  }
  state_->start.notify_all();
  state_->threads.clear();
}

std::size_t WorkerPool::hardware_threads() {
  return std::max<std::size_t>(1, std::thread::hardware_concurrency());
}

std::size_t WorkerPool::thread_count() const { return state_->threads.size() + 1; }

std::size_t WorkerPool::grain_for(std::size_t item_work) {
  constexpr std::size_t kWorthAThread = std::size_t{1} << 18;
  return std::max<std::size_t>(1, kWorthAThread / std::max<std::size_t>(1, item_work));
}

void WorkerPool::parallel_for(std::size_t count, std::size_t grain,
                              const std::function<void(std::size_t begin, std::size_t end)>& run) {
  LOCKET_CHECK(grain >= 1);
  if (count == 0) return;
  if (state_->threads.empty() || count <= grain) {
    run(0, count);
    return;
  }
  {
    const std::unique_lock lock(state_->mutex);
    LOCKET_CHECK(state_->run == nullptr);  // one caller at a time, or both would wait for ever
    state_->run = &run;
    state_->count = count;
    state_->grain = grain;
    state_->running = state_->threads.size();
    ++state_->round;
  }
  state_->start.notify_all();
  const Part own = part_of(count, grain, state_->threads.size() + 1, 0);
  if (own.begin < own.end) run(own.begin, own.end);
  std::unique_lock lock(state_->mutex);
  state_->done.wait(lock, [&] { return state_->running == 0; });
  state_->run = nullptr;
}

}  // namespace locket
