// A fixed number of background threads that run posted tasks, in the order in which they were
// posted, several at once: for work that waits for the disk. What is queued when the object goes is
// still run. Thread-safe.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace locket {

class TaskPool {
 public:
  // A thread hands its number, below `thread_count`, to what it runs: for scratch space of its own.
  using Task = std::function<void(std::size_t thread)>;

  explicit TaskPool(std::size_t thread_count);  // at least 1
  TaskPool(const TaskPool&) = delete;
  TaskPool& operator=(const TaskPool&) = delete;
  ~TaskPool();

  std::size_t thread_count() const;
  // Exceptions must not leave the task. A task may post others.
  void post(Task task);
  // Calls run(index) for every index below `count`, each once, and returns when all are done.
  // REQUIRES: not called by a task.
  void run_all(std::size_t count, const std::function<void(std::size_t index)>& run);
  // Returns when nothing is queued and nothing runs. REQUIRES: not called by a task.
  void drain();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace locket
