// Everything that is remembered: pages and snapshots in memory, shared by all sequences, and the
// same on disk. A sequence begins with open(), which gives it what is stored of its tokens; while
// it runs its lease makes new pages known; at the end of a turn they are written to disk by a
// thread of its own.
//
// What is remembered is named by its content, so nothing is ever invalid, and using it never
// changes an answer. What a live sequence needs is pinned before anything is evicted for it.
//
// Thread-safe; a lease belongs to one sequence. Pool, layout and disk must outlive the memory, and
// the memory its leases.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/task_thread.h"
#include "cache/disk_store.h"
#include "cache/kv_layout.h"
#include "cache/memory_survey.h"
#include "cache/page_pool.h"
#include "cache/prefix_lease.h"
#include "cache/prefix_tree.h"
#include "cache/sequence_memory.h"
#include "cache/snapshot_policy.h"

namespace locket::cache {

struct PrefixMemoryOptions {
  MemoryIdentity identity;          // the tenant is named per sequence
  std::string model_label;          // for people
  std::int64_t restart_tokens = 0;  // what a start without rings computes again
  DiskStore* disk = nullptr;        // null: nothing outlives the process
  // Whose prefixes on disk everybody may use: what an operator put there. Empty: nobody's.
  std::string public_tenant = {};
  std::int32_t name_bits = 256;  // fewer only where tests want names to collide
};

// Since the memory was made.
struct MemoryCounts {
  std::int64_t tokens = 0;  // in memory now
  std::uint64_t lookups = 0;
  std::uint64_t hit_tokens = 0;
  std::uint64_t pages_evicted = 0;      // from memory
  std::uint64_t snapshots_evicted = 0;  // from memory
  std::uint64_t damaged = 0;            // loads that failed
  std::uint64_t turns_written = 0;
  std::uint64_t turns_not_written = 0;
};

struct PathPage;

class PrefixMemory {
 public:
  PrefixMemory(const KvLayout& layout, PagePool& pool, PrefixMemoryOptions options);
  PrefixMemory(const PrefixMemory&) = delete;
  PrefixMemory& operator=(const PrefixMemory&) = delete;
  // Writes what is queued.
  ~PrefixMemory();

  // Gives `sequence` (empty) the pages that are stored of `tokens`, and room for all of them. Keys
  // are there when it returns; rows that come from disk may still be on their way (the sequence's
  // row gate waits for them). kOverBudget: nothing has changed.
  [[nodiscard]] Result<PrefixLease> open(const std::string& tenant,
                                         std::span<const std::int32_t> tokens,
                                         SequenceMemory& sequence);

  // Returns when everything queued is on disk, or could not be written.
  void flush();

  RootLabel root_label(const std::string& tenant) const;
  const PageSizes& page_sizes() const { return page_sizes_; }
  DiskStore* disk() const { return options_.disk; }
  MemoryCounts counts() const;
  // What is in memory. Locks for a moment at a time: a picture of no single moment.
  MemorySurvey survey(std::size_t most_pages) const;

  const KvLayout& layout() const { return layout_; }

 private:
  friend class PrefixLease;

  // What open() found; nodes are pinned, disk pages not read yet.
  struct Lookup {
    TreeMatch tree;
    DiskMatch disk;
    std::int64_t group = 1;
    bool is_public = false;  // `disk` is what everybody may use, not the tenant's own
  };
  Lookup look_up(PrefixLease& lease, std::span<const std::int32_t> tokens);
  // Takes what everybody may use in place of what the tenant has on disk, if it goes further.
  void prefer_public(const PrefixLease& lease, std::span<const std::int32_t> tokens,
                     Lookup& found) const;
  [[nodiscard]] Status fill(const Lookup& found, std::span<const std::int32_t> tokens,
                            PrefixLease& lease, SequenceMemory& sequence);
  [[nodiscard]] Status restore_pages(const DiskMatch& match, PrefixLease& lease,
                                     SequenceMemory& sequence);
  [[nodiscard]] Status copy_parting(const Lookup& found, PrefixLease& lease,
                                    SequenceMemory& sequence);

  // Bytes that a node is charged with besides its page.
  static std::uint64_t node_bytes();
  // The next four with the lock held; add_page() takes a reference of the page.
  NodeId add_page(NodeId parent, std::span<const std::int32_t> tokens, PageId page);
  // The node is used now, at the count of uses as it stands.
  void touch(NodeId node);
  void remove_node(NodeId node);
  void supersede_tails(NodeId parent, std::span<const std::int32_t> tokens);
  // Whether a longer page beside it begins with all of the node's tokens.
  bool is_superseded(NodeId id) const;
  // Children that are not superseded.
  std::size_t branch_count(NodeId node) const;

  // Without the lock: lets one thing go; false if nothing can.
  bool reclaim();
  bool evict_one();

  struct QueuedTurn;
  void queue_write(const PrefixLease& lease);
  void write_turn(const QueuedTurn& turn);
  // Pages from the root to `newest` that are not known to be stored, or have a snapshot that is
  // not.
  std::vector<PathPage> unwritten_path(NodeId newest, std::uint64_t epoch);
  void record_miss(const PrefixLease& lease, std::span<const std::int32_t> tokens);

  KvLayout layout_;
  PagePool& pool_;
  PrefixMemoryOptions options_;
  PageSizes page_sizes_;
  std::array<std::byte, 32> secret_ = {};
  mutable std::mutex mutex_;  // guards all below up to the threads
  PrefixTree tree_;
  std::uint64_t now_ = 0;  // counts uses
  MemoryCounts counts_;
  std::set<PageName> superseded_tails_;  // still to be told to the disk
  std::set<PageName> superseded_snapshots_;
  std::multiset<PageName> queued_;  // the newest pages of turns that are not written yet
  TaskThread writer_;
  TaskThread loader_;
};

}  // namespace locket::cache
