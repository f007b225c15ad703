#include "base/task_thread.h"

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

namespace locket {

struct TaskThread::State {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> queue;
  std::uint64_t posted = 0;
  std::uint64_t finished = 0;
  bool is_ending = false;
  std::jthread thread;

  void run() {
    std::unique_lock lock(mutex);
    while (true) {
      changed.wait(lock, [this] { return is_ending || !queue.empty(); });
      if (queue.empty()) return;
      std::function<void()> task = std::move(queue.front());
      queue.pop_front();
      lock.unlock();
      task();
      task = nullptr;  // what it holds goes before it counts as finished
      lock.lock();
      finished += 1;
      changed.notify_all();
    }
  }
};

TaskThread::TaskThread() : state_(std::make_unique<State>()) {
  state_->thread = std::jthread([state = state_.get()] { state->run(); });
}

TaskThread::~TaskThread() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->is_ending = true;
  }
  state_->changed.notify_all();
  state_->thread.join();
}

void TaskThread::post(std::function<void()> task) {
  {
    const std::lock_guard lock(state_->mutex);
    state_->queue.push_back(std::move(task));
    state_->posted += 1;
  }
  state_->changed.notify_all();
}

void TaskThread::drain() {
  std::unique_lock lock(state_->mutex);
  const std::uint64_t wanted = state_->posted;
  state_->changed.wait(lock, [&] { return state_->finished >= wanted; });
}

std::size_t TaskThread::pending() const {
  const std::lock_guard lock(state_->mutex);
  return static_cast<std::size_t>(state_->posted - state_->finished);
}

}  // namespace locket
