// The half of PrefixMemory that speaks to the disk, on the writer's thread.
#include <optional>
#include <utility>

#include "base/log.h"
#include "cache/disk_catalog.h"
#include "cache/internal/path_writer.h"
#include "cache/prefix_memory.h"

namespace locket::cache {

// What the writer needs to know about a turn; the path is pinned by its newest node.
struct PrefixMemory::QueuedTurn {
  NodeId newest = kNoNode;
  RootLabel root;
  std::int64_t hit_tokens = 0;
};

void PrefixMemory::queue_write(const PrefixLease& lease) {
  if (options_.disk == nullptr || !options_.disk->is_writable()) return;
  const QueuedTurn turn = {.newest = lease.newest_,
                           .root = root_label(lease.tenant_),
                           .hit_tokens = lease.found_.tokens};
  {
    const std::lock_guard lock(mutex_);
    tree_.pin(turn.newest);
    queued_.insert(tree_.node(turn.newest).end.name);
  }
  writer_.post([this, turn] { write_turn(turn); });
}

std::vector<PathPage> PrefixMemory::unwritten_path(NodeId newest, std::uint64_t epoch) {
  std::vector<PathPage> path;
  for (const NodeId id : tree_.path(newest)) {
    TreeNode& node = tree_.node(id);
    const bool is_known = node.disk_epoch == epoch;
    const bool has_new_snapshot =
        node.snapshot && node.snapshot_is_wanted && !(is_known && node.snapshot_is_on_disk);
    if (is_known && !has_new_snapshot) continue;
    path.push_back({.parent = tree_.node(node.parent).end,
                    .end = node.end,
                    .tokens = {node.tokens.begin(), node.tokens.end()},
                    .data = pool_.data(node.page),
                    .snapshot = has_new_snapshot ? node.snapshot : nullptr});
  }
  return path;
}

void PrefixMemory::write_turn(const QueuedTurn& turn) {
  DiskStore& disk = *options_.disk;
  // Epochs start at 1, so that 0 in a node means: not known to be stored.
  const std::uint64_t epoch = disk.loss_epoch() + 1;
  TurnWrite write = {.root = turn.root,
                     .pages = {},
                     .snapshots = {},
                     .superseded_tails = {},
                     .superseded_snapshots = {},
                     .newest = {},
                     .hit_tokens = turn.hit_tokens,
                     .restart_tokens = options_.restart_tokens};
  std::vector<PathPage> path;
  {
    const std::lock_guard lock(mutex_);
    path = unwritten_path(turn.newest, epoch);
    write.newest = tree_.node(turn.newest).end.name;
    for (const PageName& name : superseded_tails_) {
      // One that was replaced before it was written goes with a turn after its own.
      if (!queued_.contains(name)) write.superseded_tails.push_back(name);
    }
    write.superseded_snapshots.assign(superseded_snapshots_.begin(), superseded_snapshots_.end());
  }
  const Status status = PathWriter(disk, layout_, page_sizes()).write(path, write);
  if (!status) {
    log_warning("the memory of this turn was not written: " + status.error().message);
  }
  const std::lock_guard lock(mutex_);
  if (status) {
    for (const NodeId id : tree_.path(turn.newest)) {
      TreeNode& node = tree_.node(id);
      node.disk_epoch = epoch;
      if (node.snapshot && node.snapshot_is_wanted) node.snapshot_is_on_disk = true;
    }
    for (const PageName& name : write.superseded_tails) superseded_tails_.erase(name);
    for (const PageName& name : write.superseded_snapshots) superseded_snapshots_.erase(name);
    counts_.turns_written += 1;
  } else {
    counts_.turns_not_written += 1;
  }
  queued_.erase(queued_.find(write.newest));
  tree_.unpin(turn.newest);
  if (tree_.node(turn.newest).pins == 0 && is_superseded(turn.newest)) remove_node(turn.newest);
}

void PrefixMemory::record_miss(const PrefixLease& lease, std::span<const std::int32_t> tokens) {
  DiskStore* const disk = options_.disk;
  if (!disk->is_writable()) return;
  std::optional<PrefixPoint> known;
  if (!lease.path_.empty()) {
    const std::lock_guard lock(mutex_);
    known = tree_.node(lease.path_.back()).end;
  }
  writer_.post([this, disk, known, root = root_label(lease.tenant_),
                wanted = std::vector(tokens.begin(), tokens.end())] {
    MissExplanation explanation = explain_miss(*disk, root, wanted, page_sizes(), known);
    const MissReason reason = explanation.reason;
    // A prompt that is longer than what was stored is no miss.
    if (reason == MissReason::kNone || reason == MissReason::kEnd) return;
    cache::record_miss(*disk, {.root = root,
                               .prompt_tokens = static_cast<std::int64_t>(wanted.size()),
                               .seconds = 0,
                               .explanation = std::move(explanation)});
  });
}

}  // namespace locket::cache
