// The disk store behind DiskStore, and what disk_catalog works on: records as they are stored, and
// changes besides turns. Thread-safe as DiskStore is; a scan sees the records as they were when it
// began.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cache/disk_store.h"
#include "cache/internal/record_codec.h"
#include "cache/internal/record_store.h"
#include "cache/internal/segment_reader.h"
#include "cache/internal/store_drops.h"
#include "cache/internal/store_folder.h"
#include "cache/internal/store_holds.h"
#include "cache/internal/store_lookup.h"
#include "cache/internal/turn_writer.h"

namespace locket::cache {

class DiskStore::Impl {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Impl>> open(const DiskOptions& options);
  explicit Impl(const DiskOptions& options) : options_(options) {}  // use open()

  const DiskOptions& options() const { return options_; }
  const StoreSecret& secret() const { return secret_; }
  bool is_writable() const { return writer_ != nullptr; }
  const std::string& read_only_reason() const { return read_only_reason_; }

  DiskMatch find(const PrefixPoint& from, std::span<const std::int32_t> wanted,
                 const PageSizes& sizes) const;
  std::optional<StoredValue> find_snapshot(const PrefixPoint& point, const PageSizes& sizes) const;
  std::vector<std::size_t> load(std::span<const PayloadLoad> loads) const;
  std::vector<bool> has_pages(std::span<const PrefixPoint> parents,
                              std::span<const PrefixPoint> ends) const;
  std::uint64_t loss_epoch() const { return drops_.losses(); }
  void drop_page(const StoredPage& page) { drops_.drop_page(page); }
  void drop_snapshot(const PrefixPoint& point);
  [[nodiscard]] Status write_turn(const TurnWrite& turn);
  DiskCounts counts() const;
  std::uint64_t used_bytes() const;

  // For the catalog. Damaged records are dropped and passed over. A visit must not call the store;
  // it returns false to stop.
  void scan_pages(const std::function<bool(const PageRecord&)>& visit) const;
  void scan_snapshots(const std::function<bool(const SnapshotRecord&)>& visit) const;
  void scan_uses(const std::function<bool(const PageName&, const UseRecord&)>& visit) const;
  void scan_roots(const std::function<bool(const RootLabel&)>& visit) const;
  std::vector<PageRecord> children_of(const PageName& parent) const;
  std::optional<SnapshotRecord> snapshot_at(const PageName& boundary) const;
  std::optional<UseRecord> use_of(const PageName& name) const;
  std::optional<Tombstone> tombstone_of(const PageName& name) const;

  // kBadRequest with the reason if this process only reads.
  // Pages, children before parents, with snapshots, uses and pins that belong to them.
  [[nodiscard]] Status remove_pages(std::span<const PageName> names, GoneReason reason);
  [[nodiscard]] Status set_pinned(const PageName& name, bool is_pinned);
  // Records of the catalog's own, in the space kMiss: sealed with seal_record().
  [[nodiscard]] Status write_records(const RecordBatch& batch);
  const RecordStore& records() const { return *records_; }
  void catch_up() const;

 private:
  [[nodiscard]] Status open_parts();
  [[nodiscard]] Status try_to_write();
  [[nodiscard]] Status check_writable() const;
  // Makes the folder again if somebody removed it.
  [[nodiscard]] Status ensure_folder();
  bool is_complete(const DiskMatch& match, std::size_t wanted) const;

  DiskOptions options_;
  std::atomic<double> write_seconds_ = 0;
  StoreSecret secret_ = {};
  std::string read_only_reason_;
  mutable StoreDrops drops_;
  mutable StoreHolds holds_;
  std::mutex folder_mutex_;
  FolderIdentity identity_;
  std::optional<FolderLock> lock_;
  std::unique_ptr<RecordStore> records_;
  std::unique_ptr<SegmentReader> reader_;
  std::unique_ptr<TurnWriter> writer_;
};

}  // namespace locket::cache
