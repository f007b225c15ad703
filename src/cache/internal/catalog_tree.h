// All stored pages as a tree, small enough to be kept in memory: for listing, not for look-ups.
// A picture of the moment; nothing in it changes.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

#include "cache/disk_store.h"
#include "cache/internal/disk_store_impl.h"
#include "cache/internal/eviction_index.h"

namespace locket::cache {

class CatalogTree {
 public:
  struct Page {
    PageName parent = {};
    std::int64_t begin = 0;  // positions
    std::int64_t end = 0;
    std::uint64_t key_bytes = 0;
    std::uint64_t row_bytes = 0;
    std::uint64_t snapshot_bytes = 0;  // of the snapshot at its end
    double created_seconds = 0;
    std::uint32_t children = 0;
    std::uint32_t prefixes = 0;  // listed prefixes that it is part of
    bool is_reachable = false;   // its whole path is there
    bool has_snapshot = false;
    UseRecord use;

    std::uint64_t bytes() const { return key_bytes + row_bytes + snapshot_bytes; }
  };

  // Scans the records of the store as they are now.
  explicit CatalogTree(const DiskStore::Impl& store);

  const std::unordered_map<PageName, Page, NameHash>& pages() const { return pages_; }
  const Page* find(const PageName& name) const;
  // Last pages of the prefixes that are listed: leaves, and pinned pages.
  const std::vector<PageName>& prefixes() const { return prefixes_; }
  // Calls visit(name, page) from the page up to the first one of its prefix, until it returns
  // false.
  void walk_up(const PageName& name,
               const std::function<bool(const PageName&, const Page&)>& visit) const;
  // The root that a page hangs under.
  PageName root_of(const PageName& name) const;
  // Snapshots whose page is gone.
  const std::vector<SnapshotRecord>& lost_snapshots() const { return lost_snapshots_; }

 private:
  void read(const DiskStore::Impl& store);
  void find_reachable();
  void find_prefixes();

  std::unordered_map<PageName, Page, NameHash> pages_;
  std::vector<PageName> prefixes_;
  std::vector<SnapshotRecord> lost_snapshots_;
};

}  // namespace locket::cache
