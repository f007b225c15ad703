// What this process no longer uses of the store although its records may still be there: values
// that were damaged, records that are of no use. Each is counted once. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "cache/disk_store.h"

namespace locket::cache {

class StoreDrops {
 public:
  struct Pending {
    std::vector<StoredPage> pages;
    std::vector<std::pair<PageName, StoredValue>> snapshots;
    std::vector<std::string> keys;  // of records that are no use
    bool is_empty() const { return pages.empty() && snapshots.empty() && keys.empty(); }
  };

  void drop_page(const StoredPage& page);
  void drop_snapshot(const PageName& boundary, const StoredValue& value);
  void drop_record(const std::string& key);

  // A value that was stored again elsewhere is another value.
  bool hides(const StoredPage& page) const;
  bool hides(const PageName& boundary, const StoredValue& value) const;

  Pending pending() const;
  // These are no longer stored.
  void settle(const Pending& done);
  std::uint64_t count() const;

  // Grows with every page that goes, here or on disk.
  void note_loss() { ++losses_; }
  std::uint64_t losses() const { return losses_; }

 private:
  mutable std::mutex mutex_;
  std::map<PageName, StoredPage> pages_;
  std::map<PageName, StoredValue> snapshots_;
  std::set<std::string> keys_;
  std::uint64_t count_ = 0;
  std::atomic<std::uint64_t> losses_ = 0;
};

// Whether two values are the same bytes at the same place.
bool is_same_value(const StoredValue& a, const StoredValue& b);

}  // namespace locket::cache
