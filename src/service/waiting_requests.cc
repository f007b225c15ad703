#include "service/waiting_requests.h"

#include <algorithm>
#include <set>
#include <utility>

namespace locket::service {

std::size_t WaitingRequests::count_of(const std::string& owner) const {
  const auto found = owners_.find(owner);
  return found == owners_.end() ? 0 : found->second.waiting + found->second.working;
}

void WaitingRequests::push(std::shared_ptr<RequestRun> run) {
  owners_[run->owner()].waiting += 1;
  waiting_.push_back(std::move(run));
}

WaitingRequests::List::const_iterator WaitingRequests::find_next() const {
  auto best = waiting_.begin();
  std::size_t fewest = owners_.at((*best)->owner()).working;
  std::set<std::string_view> seen;
  for (auto at = waiting_.begin(); at != waiting_.end() && fewest > 0; ++at) {
    if (!seen.insert((*at)->owner()).second) continue;
    const std::size_t working = owners_.at((*at)->owner()).working;
    if (working >= fewest) continue;
    best = at;
    fewest = working;
  }
  return best;
}

std::shared_ptr<RequestRun> WaitingRequests::take(List::const_iterator at) {
  std::shared_ptr<RequestRun> run = *at;
  waiting_.erase(at);
  owners_.at(run->owner()).waiting -= 1;
  return run;
}

std::shared_ptr<RequestRun> WaitingRequests::start_next() {
  std::shared_ptr<RequestRun> run = take(find_next());
  owners_.at(run->owner()).working += 1;
  return run;
}

std::shared_ptr<RequestRun> WaitingRequests::remove(std::uint64_t id) {
  const auto at = std::ranges::find_if(waiting_, [&](const auto& run) { return run->id() == id; });
  if (at == waiting_.end()) return nullptr;
  std::shared_ptr<RequestRun> run = take(at);
  drop_if_idle(run->owner());
  return run;
}

void WaitingRequests::forget(const RequestRun& run) {
  owners_.at(run.owner()).working -= 1;
  drop_if_idle(run.owner());
}

void WaitingRequests::drop_if_idle(const std::string& owner) {
  const auto found = owners_.find(owner);
  if (found->second.waiting + found->second.working == 0) owners_.erase(found);
}

}  // namespace locket::service
