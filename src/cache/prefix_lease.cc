#include "cache/prefix_lease.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "cache/internal/row_restore.h"
#include "cache/prefix_memory.h"

namespace locket::cache {

PrefixLease::PrefixLease(PrefixMemory& memory, std::string tenant, NodeId root)
    : memory_(&memory), tenant_(std::move(tenant)), root_(root) {}

PrefixLease::PrefixLease(PrefixLease&& other) noexcept
    : memory_(std::exchange(other.memory_, nullptr)),
      tenant_(std::move(other.tenant_)),
      root_(other.root_),
      path_(std::move(other.path_)),
      pages_at_open_(other.pages_at_open_),
      held_(std::exchange(other.held_, kNoNode)),
      found_(other.found_),
      restore_(std::move(other.restore_)),
      parting_on_disk_(std::move(other.parting_on_disk_)),
      rings_(std::move(other.rings_)),
      is_detached_(other.is_detached_) {}

PrefixLease::~PrefixLease() { give_up(); }

void PrefixLease::give_up() {
  if (memory_ == nullptr) return;
  restore_.reset();
  hold(kNoNode);
}

void PrefixLease::hold(NodeId node) {
  if (node == held_) return;
  const std::lock_guard lock(memory_->mutex_);
  if (node != kNoNode) memory_->tree_.pin(node);
  if (held_ != kNoNode) memory_->tree_.unpin(held_);
  held_ = node;
}

std::int64_t PrefixLease::find_snapshot(std::int64_t at_least, std::int64_t at_most) {
  rings_ = {};
  const std::int64_t lowest = std::max(at_least, kTokensPerPage);
  DiskStore* const disk = memory_->options_.disk;
  for (std::int64_t at = boundary_at(at_most); at >= lowest; at -= kTokensPerPage) {
    const auto page = static_cast<std::size_t>(at / kTokensPerPage) - 1;
    PrefixPoint point;
    if (page < path_.size()) {
      const std::lock_guard lock(memory_->mutex_);
      const TreeNode& node = memory_->tree_.node(path_[page]);
      point = node.end;
      rings_.in_memory = node.snapshot;
    } else {
      if (restore_ == nullptr || page - path_.size() >= restore_->pages().size()) continue;
      point = restore_->pages()[page - path_.size()].end;
    }
    rings_.point = point;
    if (rings_.in_memory) return at;
    if (disk != nullptr) rings_.on_disk = disk->find_snapshot(point, memory_->page_sizes());
    if (rings_.on_disk) return at;
  }
  return 0;
}

Status PrefixLease::restore_rings(std::int64_t position, SequenceMemory& sequence) {
  LOCKET_CHECK(position > 0 && rings_.point.position == position);
  const FoundRings rings = std::exchange(rings_, {});
  if (rings.in_memory) {
    std::ranges::copy(rings.in_memory->bytes(), sequence.kept_rings().begin());
    return {};
  }
  DiskStore& disk = *memory_->options_.disk;
  const PayloadLoad load = {.value = *rings.on_disk, .target = sequence.kept_rings()};
  if (disk.load({&load, 1}).empty()) return {};
  disk.drop_snapshot(rings.point);
  const std::lock_guard lock(memory_->mutex_);
  memory_->counts_.damaged += 1;
  return fail(ErrorCode::kBadMemory, "the stored window rings are damaged; they are dropped");
}

Status PrefixLease::publish(std::span<const std::int32_t> tokens, SequenceMemory& sequence) {
  constexpr auto kPage = static_cast<std::size_t>(kTokensPerPage);
  if ((path_.size() + 1) * kPage > tokens.size()) return {};
  if (restore_ != nullptr) LOCKET_TRY_STATUS(restore_->wait());
  while (!is_detached_ && (path_.size() + 1) * kPage <= tokens.size()) {
    is_detached_ = !publish_page(tokens.subspan(path_.size() * kPage, kPage), sequence);
  }
  return {};
}

bool PrefixLease::publish_page(std::span<const std::int32_t> page_tokens,
                               SequenceMemory& sequence) {
  const std::size_t index = path_.size();
  if (!memory_->pool_.charge(PrefixMemory::node_bytes())) return false;
  NodeId node = kNoNode;
  {
    const std::lock_guard lock(memory_->mutex_);
    const NodeId parent = parent_of(index);
    node = memory_->tree_.find_child(parent, page_tokens);
    const bool is_known = node != kNoNode;
    if (is_known) {
      // Somebody else computed it, too: the bytes are the same, one copy is enough.
      const PageId page = memory_->tree_.node(node).page;
      memory_->pool_.share(page);
      sequence.replace_page(index, page);
      memory_->now_ += 1;
      memory_->touch(node);
    } else {
      node = memory_->add_page(parent, page_tokens, sequence.pages()[index]);
      if (node != kNoNode) memory_->supersede_tails(parent, page_tokens);
    }
    if (is_known || node == kNoNode) memory_->pool_.refund(PrefixMemory::node_bytes());
  }
  if (node == kNoNode) return false;
  if (parting_on_disk_ && index * static_cast<std::size_t>(kTokensPerPage) ==
                              static_cast<std::size_t>(parting_on_disk_->parent.position)) {
    const std::vector<std::int32_t>& old = parting_on_disk_->tokens;
    const std::lock_guard lock(memory_->mutex_);
    if (old.size() < page_tokens.size() && begins_with(page_tokens, old)) {
      memory_->superseded_tails_.insert(parting_on_disk_->end.name);
    }
    parting_on_disk_.reset();
  }
  path_.push_back(node);
  hold(node);
  return true;
}

void PrefixLease::keep_snapshot(std::int64_t position, Keep keep, SequenceMemory& sequence) {
  LOCKET_CHECK(position > 0 && position % kTokensPerPage == 0);
  const auto page = static_cast<std::size_t>(position / kTokensPerPage) - 1;
  if (page >= path_.size()) return;
  const std::size_t bytes = memory_->layout_.snapshot_bytes();
  {
    const std::lock_guard lock(memory_->mutex_);
    TreeNode& node = memory_->tree_.node(path_[page]);
    node.snapshot_is_wanted = node.snapshot_is_wanted || keep == Keep::kStored;
    if (node.snapshot) return;
  }
  if (!memory_->pool_.charge(bytes)) return;
  auto buffer = std::make_unique<tensor::AlignedBuffer>(bytes);
  std::ranges::copy(sequence.kept_rings(), buffer->bytes().begin());
  PagePool* const pool = &memory_->pool_;
  const auto give_back = [pool](tensor::AlignedBuffer* rings) {
    const std::unique_ptr<tensor::AlignedBuffer> owner(rings);
    pool->refund(rings->size());
  };
  std::shared_ptr<const tensor::AlignedBuffer> snapshot(buffer.release(), give_back);
  {
    const std::lock_guard lock(memory_->mutex_);
    memory_->tree_.set_snapshot(path_[page], std::move(snapshot));
  }
  trim_snapshots({});
}

// Of those that no turn has asked for, the newest few stay.
void PrefixLease::trim_snapshots(const std::set<std::int64_t>& wanted) {
  constexpr std::int64_t kSpacing = kPagesPerSpacedSnapshot * kTokensPerPage;
  const std::lock_guard lock(memory_->mutex_);
  std::int64_t newest = 0;
  for (std::size_t i = path_.size(); i-- > 0;) {
    TreeNode& node = memory_->tree_.node(path_[i]);
    const std::int64_t position = node.end.position;
    if (!wanted.empty()) {
      const bool was_wanted = std::exchange(node.snapshot_is_wanted, wanted.contains(position));
      const bool is_dropped = was_wanted && !node.snapshot_is_wanted;
      if (is_dropped && memory_->branch_count(path_[i]) == 1) {
        memory_->superseded_snapshots_.insert(node.end.name);
      }
      if (node.snapshot_is_wanted) memory_->superseded_snapshots_.erase(node.end.name);
    }
    if (!node.snapshot || node.snapshot_is_wanted || position % kSpacing == 0) continue;
    newest += 1;
    if (newest > kNewestSnapshots) memory_->tree_.take_snapshot(path_[i]);
  }
}

void PrefixLease::publish_tail(std::span<const std::int32_t> tail_tokens,
                               SequenceMemory& sequence) {
  const std::size_t index = path_.size();
  if (!memory_->pool_.charge(PrefixMemory::node_bytes())) return;
  const std::lock_guard lock(memory_->mutex_);
  const NodeId parent = parent_of(index);
  const auto begins_with_tail = [&](const auto& child) {
    const auto& tokens = memory_->tree_.node(child.second).tokens;
    return begins_with(tokens, tail_tokens);
  };
  const auto& children = memory_->tree_.node(parent).children;
  const auto longer = std::ranges::find_if(children, begins_with_tail);
  NodeId tail = kNoNode;
  if (longer != children.end()) {
    tail = longer->second;
    memory_->now_ += 1;
    memory_->touch(tail);
  } else {
    tail = memory_->add_page(parent, tail_tokens, sequence.pages()[index]);
    if (tail != kNoNode) memory_->supersede_tails(parent, tail_tokens);
  }
  if (longer != children.end() || tail == kNoNode) {
    memory_->pool_.refund(PrefixMemory::node_bytes());
  }
  newest_ = tail;
}

Status PrefixLease::end_turn(std::span<const std::int32_t> tokens, const TurnLengths& lengths,
                             SequenceMemory& sequence) {
  LOCKET_TRY_STATUS(publish(tokens, sequence));
  if (is_detached_) return {};
  newest_ = path_.empty() ? kNoNode : path_.back();
  const std::int64_t group = memory_->layout_.largest_tokens_per_row();
  const auto in_pages = path_.size() * static_cast<std::size_t>(kTokensPerPage);
  const auto end = static_cast<std::int64_t>(tokens.size()) / group * group;
  const std::int64_t in_tail = end - static_cast<std::int64_t>(in_pages);
  if (in_tail > 0) {
    publish_tail(tokens.subspan(in_pages, static_cast<std::size_t>(in_tail)), sequence);
  }
  trim_snapshots(stored_boundaries(lengths));
  if (newest_ != kNoNode) memory_->queue_write(*this);
  return {};
}

void PrefixLease::drop_restored() {
  const std::size_t restored = restore_ == nullptr ? 0 : restore_->pages().size();
  if (restored > 0) {
    static_cast<void>(restore_->wait());
    for (const StoredPage& page : restore_->pages()) memory_->options_.disk->drop_page(page);
  }
  if (parting_on_disk_) memory_->options_.disk->drop_page(*parting_on_disk_);
  parting_on_disk_.reset();
  hold(kNoNode);
  // What this lease has made known of it goes, too, unless others hold it.
  const std::lock_guard lock(memory_->mutex_);
  while (path_.size() > pages_at_open_) {
    const TreeNode& node = memory_->tree_.node(path_.back());
    if (!node.children.empty() || node.pins > 0) break;
    memory_->remove_node(path_.back());
    path_.pop_back();
  }
  is_detached_ = true;
}

double PrefixLease::restore_seconds() const {
  return restore_ == nullptr ? 0.0 : restore_->seconds();
}

}  // namespace locket::cache
