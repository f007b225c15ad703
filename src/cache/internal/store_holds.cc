#include "cache/internal/store_holds.h"

#include <utility>

namespace locket::cache {

std::shared_ptr<const void> StoreHolds::hold(std::vector<PageName> names) {
  {
    const std::lock_guard lock(mutex_);
    for (const PageName& name : names) names_[name] += 1;
  }
  auto held = std::make_unique<const std::vector<PageName>>(std::move(names));
  const auto give_back = [this](const std::vector<PageName>* list) {
    const std::unique_ptr<const std::vector<PageName>> owner(list);
    let_go(*list);
  };
  return {held.release(), give_back};
}

void StoreHolds::let_go(const std::vector<PageName>& names) {
  const std::lock_guard lock(mutex_);
  for (const PageName& name : names) {
    const auto at = names_.find(name);
    at->second -= 1;
    if (at->second == 0) names_.erase(at);
  }
}

std::vector<PageName> StoreHolds::held() const {
  const std::lock_guard lock(mutex_);
  std::vector<PageName> names;
  names.reserve(names_.size());
  for (const auto& [name, count] : names_) names.push_back(name);
  return names;
}

}  // namespace locket::cache
