// The memory on disk: pages, snapshots and their records, kept in one folder that survives restarts
// and crashes. The store knows names, token ids and opaque bytes; docs/formats/kv_store.md has the
// bytes.
//
// Payloads (a page's index keys, its rows, a snapshot's rings) are values of their own, so that
// keys can be read first and rows later. Records hold where a value lies, its length and its
// checksum; nothing is used before both were compared. What is damaged, foreign or of another
// format is dropped and counted, never an error of a look-up.
//
// A turn is written as a whole or not at all: payloads first, then one synced batch of records.
// A crash loses at most the turn that was being written.
//
// One process writes; others that open the same folder read what has been written. Thread-safe:
// look-ups and loads may run beside one write_turn().
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "cache/page_name.h"

namespace locket::cache {

struct StorageFaults;

struct DiskOptions {
  std::filesystem::path directory;  // made (0700) if missing
  std::uint64_t quota_bytes = 0;    // of the whole folder; 0: no limit
  std::size_t read_threads = 8;     // more than cores: reads wait for the disk
  enum class Access { kWriteIfPossible, kReadOnly } access = Access::kWriteIfPossible;
  std::shared_ptr<StorageFaults> faults = {};  // for tests
};

// Where a payload lies, and what it must be.
struct StoredValue {
  std::uint32_t segment = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  Checksum128 checksum = {};
};

// Lengths that records must have to be used, from the model's layout.
struct PageSizes {
  std::function<std::size_t(std::int64_t tokens)> key_bytes;
  std::function<std::size_t(std::int64_t tokens)> row_bytes;
  std::size_t snapshot_bytes = 0;
};

struct StoredPage {
  PrefixPoint parent;                // where the page begins
  PrefixPoint end;                   // where it ends
  std::vector<std::int32_t> tokens;  // 1 to kTokensPerPage
  StoredValue keys;
  StoredValue rows;
};

// What follows a point on disk.
struct DiskMatch {
  std::vector<StoredPage> pages;  // full pages whose tokens are all wanted, in order
  // The page after them whose tokens part from the wanted ones, or end, furthest on; a tail, too.
  std::optional<StoredPage> parting;
  std::int64_t parting_tokens = 0;  // its tokens that are wanted; at least 1 if there is one
  // While it lives, this process does not evict any of them.
  std::shared_ptr<const void> hold;
};

// One payload on its way into memory.
struct PayloadLoad {
  StoredValue value;
  std::span<std::byte> target;  // value.bytes long
};

struct NewPage {
  PrefixPoint parent;
  PrefixPoint end;
  std::vector<std::int32_t> tokens;
  std::span<const std::byte> keys;
  std::span<const std::byte> rows;
};

struct NewSnapshot {
  PrefixPoint point;  // the page boundary
  std::span<const std::byte> rings;
};

// For people: what a root stands for.
struct RootLabel {
  PageName root = {};
  std::string model;
  MemoryIdentity identity;
};

// What one turn adds and takes away; spans must live until write_turn() returns.
struct TurnWrite {
  RootLabel root;
  std::vector<NewPage> pages;                  // a parent before its children
  std::vector<NewSnapshot> snapshots;          // of pages stored before or in this turn
  std::vector<PageName> superseded_tails;      // pages that a longer one has replaced
  std::vector<PageName> superseded_snapshots;  // named by their boundary
  PageName newest = {};                        // the deepest page in use: its use is counted
  std::int64_t hit_tokens = 0;                 // 0: the turn found nothing
  std::int64_t restart_tokens = 0;             // the most that a missing snapshot costs
};

struct DiskCounts {
  std::uint64_t pages_written = 0;
  std::uint64_t snapshots_written = 0;
  std::uint64_t payload_bytes_written = 0;
  std::uint64_t pages_evicted = 0;
  std::uint64_t snapshots_evicted = 0;
  std::uint64_t pages_not_written = 0;  // there was no room for them, or the write failed
  std::uint64_t values_dropped = 0;     // damaged, foreign or older
  double write_seconds = 0;             // that writing turns took
};

class DiskStore {
 public:
  // kIo if the folder cannot be made or read; kBadMemory if it is not a folder of ours (a link,
  // somebody else's, open to others). Falls back to reading if another process writes or the file
  // system is read-only: read_only_reason() says why.
  [[nodiscard]] static Result<std::unique_ptr<DiskStore>> open(const DiskOptions& options);
  ~DiskStore();
  DiskStore(const DiskStore&) = delete;
  DiskStore& operator=(const DiskStore&) = delete;

  bool is_writable() const;
  std::string read_only_reason() const;  // empty if writable
  const std::filesystem::path& directory() const;
  // 32 random bytes of this folder, for root_name().
  std::span<const std::byte> secret() const;

  // What is stored after `from` of the `wanted` tokens (those after from.position).
  DiskMatch find(const PrefixPoint& from, std::span<const std::int32_t> wanted,
                 const PageSizes& sizes) const;
  // The snapshot at a page boundary.
  std::optional<StoredValue> find_snapshot(const PrefixPoint& point, const PageSizes& sizes) const;

  // Reads and checks payloads, in parallel; values that lie side by side are read together. The
  // indices of those that could not be read or are damaged.
  std::vector<std::size_t> load(std::span<const PayloadLoad> loads) const;

  // Forgets a page (its record; what hangs below it can be found again once the page has been
  // stored again), or a snapshot, whose payload was damaged. Takes effect at once for this process;
  // on disk with the next turn.
  void drop_page(const StoredPage& page);
  void drop_snapshot(const PrefixPoint& point);

  // Evicts what the quota asks for (never what the turn itself needs), then writes. Pages that have
  // no room are left out, deepest first, and counted. kIo if nothing could be written: everything
  // is as before the call.
  [[nodiscard]] Status write_turn(const TurnWrite& turn);

  // Which of these pages are stored now; the writer asks before it relies on a parent.
  std::vector<bool> has_pages(std::span<const PrefixPoint> parents,
                              std::span<const PrefixPoint> ends) const;
  // Grows whenever a page of this folder goes (evicted, dropped, removed): what has_pages() said
  // holds as long as it stands still.
  std::uint64_t loss_epoch() const;

  DiskCounts counts() const;
  // Bytes of the folder as the file system counts them.
  std::uint64_t used_bytes() const;
  // Of the whole folder; 0: no limit.
  std::uint64_t quota_bytes() const;

  class Impl;                                      // shared with disk_catalog.cc
  explicit DiskStore(std::unique_ptr<Impl> impl);  // use open()
  Impl& impl() { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace locket::cache
