// A live sequence's hold on the memory: what was found of its tokens, which stays as long as the
// lease lives, and the way in which its new pages become known. Made by PrefixMemory::open(). Not
// thread-safe; must go before the memory and the sequence.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "cache/disk_store.h"
#include "cache/prefix_tree.h"
#include "cache/sequence_memory.h"
#include "cache/snapshot_policy.h"

namespace locket::cache {

class PrefixMemory;
class RowRestore;

struct FoundPrefix {
  std::int64_t tokens = 0;       // H: rows of all positions below are stored; whole groups
  std::int64_t disk_tokens = 0;  // of them, tokens that came from disk
};

class PrefixLease {
 public:
  PrefixLease(PrefixLease&&) noexcept;
  PrefixLease& operator=(PrefixLease&&) = delete;
  ~PrefixLease();

  const FoundPrefix& found() const { return found_; }

  // The highest position in [at_least, at_most] whose rings are stored; 0: there is none. It stays
  // until the next call.
  std::int64_t find_snapshot(std::int64_t at_least, std::int64_t at_most);
  // Copies the rings stored for `position` into the sequence. kBadMemory: they are damaged; they
  // are forgotten, and another place must be found.
  [[nodiscard]] Status restore_rings(std::int64_t position, SequenceMemory& sequence);

  // Makes all pages that `tokens` (those fed so far) fill known to others. Waits for rows that are
  // on their way; kBadMemory as RowGate::wait().
  [[nodiscard]] Status publish(std::span<const std::int32_t> tokens, SequenceMemory& sequence);
  // The rings of `position`, a page boundary where the encoder stands now and whose page is
  // published. kStored: they will be written at the end of the turn; of the others the newest stay.
  enum class Keep { kLive, kStored };
  void keep_snapshot(std::int64_t position, Keep keep, SequenceMemory& sequence);
  // The turn is over: the last, partly filled page becomes known, too, and everything new is queued
  // for the disk.
  [[nodiscard]] Status end_turn(std::span<const std::int32_t> tokens, const TurnLengths& lengths,
                                SequenceMemory& sequence);

  // Forgets what came from disk for this sequence, here and there: it led a run astray. The lease
  // is of no more use.
  void drop_restored();

  // Seconds from open() until the last row had come from disk; 0: nothing came from there, or not
  // all is there yet.
  double restore_seconds() const;

 private:
  friend class PrefixMemory;
  PrefixLease(PrefixMemory& memory, std::string tenant, NodeId root);

  // Rings that a look-up found.
  struct FoundRings {
    PrefixPoint point;
    std::shared_ptr<const tensor::AlignedBuffer> in_memory = {};
    std::optional<StoredValue> on_disk = {};
  };

  void hold(NodeId node);
  void give_up();
  NodeId parent_of(std::size_t page) const { return page == 0 ? root_ : path_[page - 1]; }
  // The next page of the sequence becomes known: false if it cannot.
  bool publish_page(std::span<const std::int32_t> page_tokens, SequenceMemory& sequence);
  void publish_tail(std::span<const std::int32_t> tail_tokens, SequenceMemory& sequence);
  // Drops snapshots of the path that nobody wants any more.
  void trim_snapshots(const std::set<std::int64_t>& wanted);

  PrefixMemory* memory_;
  std::string tenant_;
  NodeId root_;
  std::vector<NodeId> path_;  // full pages that are known, first to last; the last one is pinned
  std::size_t pages_at_open_ = 0;  // of path_: those that were in memory already
  NodeId held_ = kNoNode;
  FoundPrefix found_;
  std::unique_ptr<RowRestore> restore_;        // pages after path_ that come from disk
  std::optional<StoredPage> parting_on_disk_;  // of which the beginning was copied
  FoundRings rings_;
  NodeId newest_ = kNoNode;   // the last page of the turn that ended
  bool is_detached_ = false;  // its pages cannot become known any more
};

}  // namespace locket::cache
