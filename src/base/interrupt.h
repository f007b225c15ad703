// Ctrl-C as an ordinary call. While a watcher lives, SIGINT does not end the process; a thread of
// its own waits for it and calls the handler, which may do anything (unlike a signal handler).
// REQUIRES: made before other threads, which inherit the blocked signal; one at a time.
#pragma once

#include <functional>
#include <memory>

namespace locket {

class InterruptWatcher {
 public:
  explicit InterruptWatcher(std::function<void()> on_interrupt);
  InterruptWatcher(const InterruptWatcher&) = delete;
  InterruptWatcher& operator=(const InterruptWatcher&) = delete;
  ~InterruptWatcher();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace locket
