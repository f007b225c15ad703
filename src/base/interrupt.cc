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
  std::function<void()> on_interrupt;
  sigset_t signals = {};
  sigset_t old_mask = {};
  std::jthread thread;
};

InterruptWatcher::InterruptWatcher(std::function<void()> on_interrupt)
    : state_(std::make_unique<State>()) {
  state_->on_interrupt = std::move(on_interrupt);
  sigemptyset(&state_->signals);
  sigaddset(&state_->signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &state_->signals, &state_->old_mask);
  state_->thread = std::jthread([state = state_.get()](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      if (sigtimedwait(&state->signals, nullptr, &kWait) == SIGINT) state->on_interrupt();
    }
  });
}

InterruptWatcher::~InterruptWatcher() {
  state_->thread.request_stop();
  state_->thread.join();
  pthread_sigmask(SIG_SETMASK, &state_->old_mask, nullptr);
}

}  // namespace locket
