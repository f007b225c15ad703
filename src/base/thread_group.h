// A fixed number of threads that run one function, for loops that are not ours (an event loop's
// run()). The function must return by itself once it is told to end by other means: the destructor
// waits for all of them. Exceptions must not leave the function.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace locket {

class ThreadGroup {
 public:
  // `thread_count` >= 1 threads, each of which calls run() once.
  ThreadGroup(std::size_t thread_count, std::function<void()> run);
  ThreadGroup(const ThreadGroup&) = delete;
  ThreadGroup& operator=(const ThreadGroup&) = delete;
  // REQUIRES: not called by one of the threads.
  ~ThreadGroup();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace locket
