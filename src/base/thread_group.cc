#include "base/thread_group.h"

#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"

namespace locket {

struct ThreadGroup::State {
  std::function<void()> run;
  std::vector<std::jthread> threads;  // last: joined before `run` goes
};

ThreadGroup::ThreadGroup(std::size_t thread_count, std::function<void()> run)
    : state_(std::make_unique<State>()) {
  LOCKET_CHECK(thread_count >= 1);
  state_->run = std::move(run);
  state_->threads.reserve(thread_count);
  for (std::size_t index = 0; index < thread_count; ++index) {
    state_->threads.emplace_back([state = state_.get()] { state->run(); });
  }
}

ThreadGroup::~ThreadGroup() = default;

}  // namespace locket
