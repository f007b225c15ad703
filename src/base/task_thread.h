// One background thread that runs posted functions in the order in which they were posted. What is
// queued when the object goes is still run. Thread-safe.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace locket {

class TaskThread {
 public:
  TaskThread();
  TaskThread(const TaskThread&) = delete;
  TaskThread& operator=(const TaskThread&) = delete;
  ~TaskThread();

  // Exceptions must not leave the function.
  void post(std::function<void()> task);
  // Returns when everything posted before has been run. REQUIRES: not called by a task.
  void drain();
  // Tasks that are queued or running.
  std::size_t pending() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace locket
