// Pages that a look-up has found and that somebody is about to read: they are not evicted
// meanwhile. A look-up and the removal of records exclude each other, so that what was found is
// held before anything can take it away. Thread-safe; must outlive its holds.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <vector>

#include "cache/page_name.h"

namespace locket::cache {

class StoreHolds {
 public:
  std::shared_lock<std::shared_mutex> lock_for_lookup() { return std::shared_lock(removal_); }
  std::unique_lock<std::shared_mutex> lock_for_removal() { return std::unique_lock(removal_); }

  // Holds these pages as long as the result lives. REQUIRES: the caller has the lock for look-ups.
  std::shared_ptr<const void> hold(std::vector<PageName> names);
  std::vector<PageName> held() const;

 private:
  void let_go(const std::vector<PageName>& names);

  std::shared_mutex removal_;
  mutable std::mutex mutex_;
  std::map<PageName, int> names_;
};

}  // namespace locket::cache
