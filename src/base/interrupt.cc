#include "base/interrupt.h"

#include <ctime>
#include <pthread.h>
#include <signal.h>
#include <stop_token>
#include <thread>
#include <utility>

namespace locket {
namespace {

// How often the waiting thread looks whether it should end.
constexpr timespec kWait = {.tv_sec = 0, .tv_nsec = 50'000'000};

}  // namespace

struct InterruptWatcher::State {
  std::function<void(std::size_t count)> on_signal;
  std::size_t count = 0;
  sigset_t signals = {};
  sigset_t old_mask = {};
  std::jthread thread;
};

InterruptWatcher::InterruptWatcher(std::function<void()> on_interrupt)
    : InterruptWatcher(Signals::kInterrupt,
                       [call = std::move(on_interrupt)](std::size_t) { call(); }) {}

InterruptWatcher::InterruptWatcher(Signals signals,
                                   std::function<void(std::size_t count)> on_signal)
    : state_(std::make_unique<State>()) {
  state_->on_signal = std::move(on_signal);
  sigemptyset(&state_->signals);
  sigaddset(&state_->signals, SIGINT);
  if (signals == Signals::kInterruptAndFinish) sigaddset(&state_->signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &state_->signals, &state_->old_mask);
  state_->thread = std::jthread([state = state_.get()](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      if (sigtimedwait(&state->signals, nullptr, &kWait) > 0) state->on_signal(++state->count);
    }
  });
}

InterruptWatcher::~InterruptWatcher() {
  state_->thread.request_stop();
  state_->thread.join();
  pthread_sigmask(SIG_SETMASK, &state_->old_mask, nullptr);
}

}  // namespace locket
