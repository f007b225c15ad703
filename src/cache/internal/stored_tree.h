// What the writing process knows of everything that is stored: the tree of pages and snapshots, the
// space that their payloads take, tombstones and roots. Read from the records before the first
// change, not when the store is opened. Payloads without a record (of turns that a crash cut off)
// are freed then. Not thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "cache/internal/eviction_index.h"
#include "cache/internal/record_codec.h"
#include "cache/internal/record_store.h"
#include "cache/internal/segment_space.h"
#include "cache/internal/segment_writer.h"
#include "cache/internal/store_drops.h"

namespace locket::cache {

class StoredTree {
 public:
  StoredTree(std::filesystem::path folder, RecordStore& records, SegmentWriter& segments,
             StoreDrops& drops);

  // Reads everything if that has not been done since forget().
  [[nodiscard]] Status ensure_read();
  void forget() { is_read_ = false; }

  EvictionIndex& index() { return index_; }
  const EvictionIndex& index() const { return index_; }

  void add_page(const PageRecord& record);
  void add_snapshot(const SnapshotRecord& record);
  // Removes from the tree, if it is there; free_space() later gives the values' blocks back.
  void remove_page(const PageRecord& record);
  void remove_snapshot(const SnapshotRecord& record);
  // A page whose record cannot be read goes from the tree; its space is found at the next start.
  void forget_page(const PageName& name) { index_.remove_page(name); }
  // Gives back the blocks of what was removed. REQUIRES: its records are gone from the disk.
  void free_space();

  bool knows_root(const PageName& root) const { return roots_.contains(root); }
  void add_root(const PageName& root) { roots_.insert(root); }

  // Puts tombstones into the batch; the oldest go if there are too many.
  void bury(const PageName& name, const Tombstone& tombstone, RecordBatch& batch);
  // Removes the tombstone of a page that is stored again.
  void unbury(const PageName& name, RecordBatch& batch);

 private:
  static constexpr std::size_t kMostTombstones = 10'000;

  // Lengths of the segment files whose header is whole.
  using SegmentSizes = std::map<std::uint32_t, std::pair<SegmentName, std::uint64_t>>;
  [[nodiscard]] Result<SegmentSizes> list_segments() const;
  void read_pages(const SegmentSizes& segments);
  void read_snapshots(const SegmentSizes& segments);
  void read_uses();
  void read_tombstones();
  void free_orphans();

  const std::filesystem::path folder_;
  RecordStore& records_;
  SegmentWriter& segments_;
  StoreDrops& drops_;
  EvictionIndex index_;
  SegmentSpace space_;
  NameSet roots_;
  // By time, oldest first; a name that was buried again has several entries, the newest counts.
  std::deque<std::pair<double, PageName>> burials_;
  std::unordered_map<PageName, double, NameHash> tombstones_;
  std::vector<SegmentSpace::Range> freed_;
  bool is_read_ = false;
};

}  // namespace locket::cache
