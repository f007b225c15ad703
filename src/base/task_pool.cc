#include "base/task_pool.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <latch>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"

namespace locket {

struct TaskPool::State {
  std::mutex mutex;
  std::condition_variable posted;
  std::condition_variable finished;
  std::deque<Task> queue;
  std::size_t running = 0;
  bool is_ending = false;
  std::vector<std::jthread> threads;  // last: they use the others

  void run(std::size_t thread) {
    std::unique_lock lock(mutex);
    while (true) {
      posted.wait(lock, [this] { return is_ending || !queue.empty(); });
      if (queue.empty()) return;
      Task task = std::move(queue.front());
      queue.pop_front();
      running += 1;
      lock.unlock();
      task(thread);
      task = nullptr;  // what it holds goes before it counts as finished
      lock.lock();
      running -= 1;
      if (queue.empty() && running == 0) finished.notify_all();
    }
  }
};

TaskPool::TaskPool(std::size_t thread_count) : state_(std::make_unique<State>()) {
  LOCKET_CHECK(thread_count >= 1);
  state_->threads.reserve(thread_count);
  for (std::size_t thread = 0; thread < thread_count; ++thread) {
    state_->threads.emplace_back([state = state_.get(), thread] { state->run(thread); });
  }
}

TaskPool::~TaskPool() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->is_ending = true;
  }
  state_->posted.notify_all();
  state_->threads.clear();  // joins
}

std::size_t TaskPool::thread_count() const { return state_->threads.size(); }

void TaskPool::post(Task task) {
  {
    const std::lock_guard lock(state_->mutex);
    state_->queue.push_back(std::move(task));
  }
  state_->posted.notify_one();
}

void TaskPool::run_all(std::size_t count, const std::function<void(std::size_t index)>& run) {
  const std::size_t parts = std::min(count, thread_count());
  std::atomic<std::size_t> next = 0;
  // Shared: the last thread may still be waking us when we are gone.
  const auto left = std::make_shared<std::latch>(static_cast<std::ptrdiff_t>(parts));
  for (std::size_t part = 0; part < parts; ++part) {
    post([&, left](std::size_t) {
      for (std::size_t index = next++; index < count; index = next++) run(index);
      left->count_down();
    });
  }
  left->wait();
}

void TaskPool::drain() {
  std::unique_lock lock(state_->mutex);
  state_->finished.wait(lock, [this] { return state_->queue.empty() && state_->running == 0; });
}

}  // namespace locket
