// Ctrl-C, and a service manager's wish that the program ends, as ordinary calls. While a watcher
// lives, its signals do not end the process; a thread of its own waits for them and calls the
// handler, which may do anything (unlike a signal handler).
// REQUIRES: made before other threads, which inherit the blocked signals; one at a time.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace locket {

class InterruptWatcher {
 public:
  enum class Signals {
    kInterrupt,           // SIGINT
    kInterruptAndFinish,  // and SIGTERM
    kCount
  };

  // For SIGINT.
  explicit InterruptWatcher(std::function<void()> on_interrupt);
  // `count`: how many have come so far, this one included; the second usually means "now". Signals
  // of one kind that come while the handler runs count once.
  InterruptWatcher(Signals signals, std::function<void(std::size_t count)> on_signal);
  InterruptWatcher(const InterruptWatcher&) = delete;
  InterruptWatcher& operator=(const InterruptWatcher&) = delete;
  ~InterruptWatcher();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace locket
