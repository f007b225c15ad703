#include "server/caller_limits.h"

#include <map>
#include <mutex>
#include <utility>

namespace locket::server {

struct CallerLimits::State {
  std::size_t most = 0;
  mutable std::mutex mutex;
  std::map<std::string, std::size_t> counts = {};  // never 0: callers that left take no room
};

CallerLimits::CallerLimits(std::size_t most_requests) : state_(std::make_shared<State>()) {
  state_->most = most_requests;
}

std::shared_ptr<CallerLimits::Ticket> CallerLimits::enter(const std::string& caller) {
  class Counted : public Ticket {
   public:
    Counted(std::shared_ptr<State> state, std::string caller)
        : state_(std::move(state)), caller_(std::move(caller)) {}
    Counted(const Counted&) = delete;
    Counted& operator=(const Counted&) = delete;
    ~Counted() override {
      const std::lock_guard lock(state_->mutex);
      const auto found = state_->counts.find(caller_);
      if (--found->second == 0) state_->counts.erase(found);
    }

   private:
    std::shared_ptr<State> state_;
    std::string caller_;
  };

  const std::lock_guard lock(state_->mutex);
  const auto found = state_->counts.find(caller);
  const std::size_t count = found == state_->counts.end() ? 0 : found->second;
  if (state_->most > 0 && count >= state_->most) return nullptr;
  ++state_->counts[caller];
  return std::make_shared<Counted>(state_, caller);
}

std::size_t CallerLimits::count(const std::string& caller) const {
  const std::lock_guard lock(state_->mutex);
  const auto found = state_->counts.find(caller);
  return found == state_->counts.end() ? 0 : found->second;
}

}  // namespace locket::server
