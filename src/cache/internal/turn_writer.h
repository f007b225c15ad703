// Writes turns: makes room, appends payloads, and commits one batch of records; a turn is stored as
// a whole or not at all. Also removes and pins. One call at a time (a mutex sees to it); look-ups
// may run meanwhile.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "cache/disk_store.h"
#include "cache/internal/store_holds.h"
#include "cache/internal/stored_tree.h"

namespace locket::cache {

class TurnWriter {
 public:
  struct Parts {
    std::filesystem::path folder;
    std::uint64_t quota_bytes = 0;
    RecordStore& records;
    StoreDrops& drops;
    StoreHolds& holds;
    std::shared_ptr<StorageFaults> faults;
  };
  explicit TurnWriter(const Parts& parts);

  [[nodiscard]] Status write(const TurnWrite& turn);

  // Pages (children before parents) and what stands on their ends. Names that are not stored are
  // passed over.
  [[nodiscard]] Status remove(std::span<const PageName> names, GoneReason reason);
  [[nodiscard]] Status set_pinned(const PageName& name, bool is_pinned);
  [[nodiscard]] Status write_records(const RecordBatch& batch);
  // The tree as it is now, while nothing else changes it.
  [[nodiscard]] Status with_tree(const std::function<void(const EvictionIndex&)>& look);
  // Everything is read from the folder anew: it is another one.
  void start_over();

  DiskCounts counts() const;

 private:
  // What of a turn is to be written.
  struct Plan {
    std::vector<const NewPage*> pages;
    std::vector<const NewSnapshot*> snapshots;
    NameSet names;  // of pages
    std::uint64_t left_out = 0;
  };

  [[nodiscard]] Status prepare();
  void forget_all();
  [[nodiscard]] Status apply_drops();
  Plan make_plan(const TurnWrite& turn) const;
  bool is_new(const NewPage& page, const TurnWrite& turn, const Plan& plan) const;
  [[nodiscard]] Status make_room(const TurnWrite& turn, const Plan& plan);
  [[nodiscard]] Status evict(const std::vector<EvictionIndex::Victim>& victims);
  void cut_to_room(Plan& plan) const;
  std::uint64_t needed_bytes(const Plan& plan) const;
  std::uint64_t limit_bytes() const;
  NameSet kept_names(const TurnWrite& turn, const Plan& plan) const;

  struct Written {
    std::vector<PageRecord> pages;
    std::vector<SnapshotRecord> snapshots;
    std::uint64_t bytes = 0;
  };
  [[nodiscard]] Result<Written> append(const Plan& plan);
  // What a batch takes away.
  struct Removed {
    std::vector<PageRecord> pages;
    std::vector<SnapshotRecord> snapshots;
  };
  void remove_superseded(const TurnWrite& turn, RecordBatch& batch, Removed& removed) const;
  void put_use(const TurnWrite& turn, const Plan& plan, RecordBatch& batch) const;
  [[nodiscard]] Status commit(const TurnWrite& turn, const Plan& plan, const Written& written);
  [[nodiscard]] Status write_batch(const RecordBatch& batch);
  void settle(const Removed& removed);
  void forget_record(const std::string& key, Removed& removed);

  std::optional<PageRecord> page_record(const PageName& name) const;
  std::optional<SnapshotRecord> snapshot_record(const PageName& boundary) const;
  std::optional<UseRecord> use_record(const PageName& name) const;
  // The batch removes a page with all that belongs to it.
  void remove_records(const PageRecord& page, RecordBatch& batch, Removed& removed) const;
  double now() const;

  Parts parts_;
  std::mutex mutex_;
  SegmentWriter segments_;
  StoredTree tree_;
  std::uint32_t stored_next_segment_ = 0;
  mutable std::mutex counts_mutex_;
  DiskCounts counts_;
};

}  // namespace locket::cache
