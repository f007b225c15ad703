#include "cache/prefix_memory.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "cache/internal/row_restore.h"
#include "cache/page_parts.h"

namespace locket::cache {
namespace {

// Charged for every node: the node, its tokens, its entries in maps.
constexpr std::uint64_t kNodeBytes =
    sizeof(TreeNode) + sizeof(PageName) + 128 +
    static_cast<std::uint64_t>(kTokensPerPage) * sizeof(std::int32_t);

TreeCosts tree_costs(const KvLayout& layout, const PrefixMemoryOptions& options) {
  return {.page_bytes = layout.page_bytes() + kNodeBytes,
          .snapshot_bytes = layout.snapshot_bytes(),
          .restart_tokens = options.restart_tokens};
}

}  // namespace

PrefixMemory::PrefixMemory(const KvLayout& layout, PagePool& pool, PrefixMemoryOptions options)
    : layout_(layout),
      pool_(pool),
      options_(std::move(options)),
      page_sizes_(page_sizes_of(layout)),
      tree_(tree_costs(layout, options_)) {
  if (options_.disk != nullptr) {
    LOCKET_CHECK(options_.disk->secret().size() == secret_.size());
    std::ranges::copy(options_.disk->secret(), secret_.begin());
  } else {
    random_bytes(secret_);
  }
  pool_.set_reclaimer([this] { return reclaim(); });
}

PrefixMemory::~PrefixMemory() {
  flush();
  pool_.set_reclaimer({});
  while (evict_one()) {
  }
}

std::uint64_t PrefixMemory::node_bytes() { return kNodeBytes; }

void PrefixMemory::flush() { writer_.drain(); }

RootLabel PrefixMemory::root_label(const std::string& tenant) const {
  RootLabel label = {.root = {}, .model = options_.model_label, .identity = options_.identity};
  label.identity.tenant = tenant;
  label.root = root_name(secret_, label.identity);
  return label;
}

MemoryCounts PrefixMemory::counts() const {
  const std::lock_guard lock(mutex_);
  MemoryCounts counts = counts_;
  counts.tokens = tree_.token_count();
  return counts;
}

Result<PrefixLease> PrefixMemory::open(const std::string& tenant,
                                       std::span<const std::int32_t> tokens,
                                       SequenceMemory& sequence) {
  LOCKET_CHECK(sequence.pages().empty());
  const PrefixPoint point = root_point(root_label(tenant).root, options_.name_bits);
  NodeId root = kNoNode;
  {
    const std::lock_guard lock(mutex_);
    root = tree_.root(point);
  }
  PrefixLease lease(*this, tenant, root);
  const Lookup found = look_up(lease, tokens);
  const Status filled = fill(found, tokens, lease, sequence);
  if (found.tree.parting != kNoNode) {
    const std::lock_guard lock(mutex_);
    tree_.unpin(found.tree.parting);
  }
  if (!filled) {
    lease.restore_.reset();
    sequence.clear();
    return tl::make_unexpected(filled.error());
  }
  const std::lock_guard lock(mutex_);
  counts_.lookups += 1;
  counts_.hit_tokens += static_cast<std::uint64_t>(lease.found_.tokens);
  return lease;
}

PrefixMemory::Lookup PrefixMemory::look_up(PrefixLease& lease,
                                           std::span<const std::int32_t> tokens) {
  Lookup found = {.tree = {}, .disk = {}, .group = layout_.largest_tokens_per_row()};
  PrefixPoint point;
  {
    const std::lock_guard lock(mutex_);
    found.tree = tree_.find(lease.root_, tokens);
    now_ += 1;
    const NodeId last = found.tree.pages.empty() ? lease.root_ : found.tree.pages.back();
    if (last != lease.root_) touch(last);
    if (found.tree.parting != kNoNode) {
      touch(found.tree.parting);
      tree_.pin(found.tree.parting);
    }
    point = tree_.node(last).end;
  }
  lease.path_ = found.tree.pages;
  lease.pages_at_open_ = lease.path_.size();
  lease.hold(lease.path_.empty() ? kNoNode : lease.path_.back());
  const auto in_pages = static_cast<std::size_t>(point.position);
  if (options_.disk != nullptr && found.tree.tokens < static_cast<std::int64_t>(tokens.size())) {
    found.disk = options_.disk->find(point, tokens.subspan(in_pages), page_sizes());
    prefer_public(lease, tokens, found);
    if (!found.is_public) record_miss(lease, tokens);
  }
  return found;
}

void PrefixMemory::prefer_public(const PrefixLease& lease, std::span<const std::int32_t> tokens,
                                 Lookup& found) const {
  const std::string& tenant = options_.public_tenant;
  if (tenant.empty() || tenant == lease.tenant_) return;
  const auto reach = [](std::size_t pages, std::int64_t parting) {
    return static_cast<std::int64_t>(pages) * kTokensPerPage + parting;
  };
  const std::size_t in_memory = lease.path_.size();
  const PrefixPoint root = root_point(root_label(tenant).root, options_.name_bits);
  DiskMatch shared = options_.disk->find(root, tokens, page_sizes());
  const std::int64_t own = std::max(
      found.tree.tokens, reach(in_memory + found.disk.pages.size(), found.disk.parting_tokens));
  const bool goes_further = reach(shared.pages.size(), shared.parting_tokens) > own;
  if (!goes_further || shared.pages.size() < in_memory) return;
  // Pages that the tenant has in memory come from there.
  shared.pages.erase(shared.pages.begin(),
                     shared.pages.begin() + static_cast<std::ptrdiff_t>(in_memory));
  found.disk = std::move(shared);
  found.is_public = true;
}

Status PrefixMemory::fill(const Lookup& found, std::span<const std::int32_t> tokens,
                          PrefixLease& lease, SequenceMemory& sequence) {
  for (const NodeId node : lease.path_) {
    const std::lock_guard lock(mutex_);
    const PageId page = tree_.node(node).page;
    pool_.share(page);
    sequence.adopt_page(page);
  }
  lease.found_.tokens = static_cast<std::int64_t>(lease.path_.size()) * kTokensPerPage;
  const std::size_t restored = found.disk.pages.size();
  if (restored > 0) LOCKET_TRY_STATUS(restore_pages(found.disk, lease, sequence));
  // Without the pages before it, the page where the tokens part is of no use.
  const bool is_whole =
      restored == 0 || (lease.restore_ != nullptr && lease.restore_->pages().size() == restored);
  if (is_whole) LOCKET_TRY_STATUS(copy_parting(found, lease, sequence));
  return sequence.reserve_tokens(static_cast<std::int64_t>(tokens.size()));
}

Status PrefixMemory::restore_pages(const DiskMatch& match, PrefixLease& lease,
                                   SequenceMemory& sequence) {
  const std::size_t first = sequence.pages().size();
  LOCKET_TRY_STATUS(sequence.reserve_tokens(static_cast<std::int64_t>(first + match.pages.size()) *
                                            kTokensPerPage));
  std::vector<std::byte*> buffers;
  for (std::size_t i = 0; i < match.pages.size(); ++i) {
    buffers.push_back(sequence.page_data(first + i));
  }
  auto restore = std::make_unique<RowRestore>(*options_.disk, layout_);
  const std::size_t sound = restore->load_keys(match, buffers);
  if (sound < match.pages.size()) {
    const std::lock_guard lock(mutex_);
    counts_.damaged += 1;
  }
  restore->start_rows(sound, loader_);
  const std::int64_t restored = static_cast<std::int64_t>(sound) * kTokensPerPage;
  lease.found_.tokens += restored;
  lease.found_.disk_tokens += restored;
  lease.restore_ = std::move(restore);
  sequence.set_row_gate(lease.restore_.get());
  return {};
}

// The page where the tokens part is copied up to there: what follows is this sequence's own.
Status PrefixMemory::copy_parting(const Lookup& found, PrefixLease& lease,
                                  SequenceMemory& sequence) {
  const bool is_in_tree = found.disk.pages.empty() &&
                          found.tree.parting_tokens >= found.disk.parting_tokens &&
                          found.tree.parting != kNoNode;
  const std::int64_t agreed = is_in_tree ? found.tree.parting_tokens : found.disk.parting_tokens;
  const std::int64_t tokens = agreed / found.group * found.group;
  if (tokens == 0) return {};
  const std::size_t index = static_cast<std::size_t>(lease.found_.tokens / kTokensPerPage);
  LOCKET_TRY_STATUS(sequence.reserve_tokens(static_cast<std::int64_t>(index + 1) * kTokensPerPage));
  std::byte* const target = sequence.page_data(index);
  if (is_in_tree) {
    const std::lock_guard lock(mutex_);
    copy_rows(layout_, tokens, pool_.data(tree_.node(found.tree.parting).page), target);
  } else if (!RowRestore::load_page(*options_.disk, layout_, *found.disk.parting, target)) {
    return {};
  } else {
    lease.found_.disk_tokens += tokens;
    // What is everybody's is never superseded by what somebody adds to it.
    if (!found.is_public) lease.parting_on_disk_ = *found.disk.parting;
  }
  lease.found_.tokens += tokens;
  return {};
}

NodeId PrefixMemory::add_page(NodeId parent, std::span<const std::int32_t> tokens, PageId page) {
  const NodeId node = tree_.add(parent, tokens, page);
  if (node == kNoNode) return kNoNode;
  pool_.share(page);
  now_ += 1;
  touch(node);
  return node;
}

void PrefixMemory::touch(NodeId node) {
  tree_.touch(node, now_);
  tree_.node(node).last_use_seconds = wall_seconds();
}

void PrefixMemory::remove_node(NodeId node) {
  const TreeNode removed = tree_.remove(node);
  pool_.release(removed.page);
  pool_.refund(kNodeBytes);
}

// Shorter pages whose tokens all stand at the beginning of `tokens` say nothing that a longer one
// does not.
void PrefixMemory::supersede_tails(NodeId parent, std::span<const std::int32_t> tokens) {
  std::vector<NodeId> superseded;
  for (const auto& [name, child] : tree_.node(parent).children) {
    const TreeNode& node = tree_.node(child);
    const bool is_shorter = node.tokens.size() < tokens.size();
    if (is_shorter && begins_with(tokens, node.tokens)) superseded.push_back(child);
  }
  for (const NodeId tail : superseded) {
    superseded_tails_.insert(tree_.node(tail).end.name);
    if (tree_.node(tail).pins == 0) remove_node(tail);
  }
}

bool PrefixMemory::is_superseded(NodeId id) const {
  const TreeNode& node = tree_.node(id);
  const auto begins_with_node = [&](const auto& sibling) {
    const auto& tokens = tree_.node(sibling.second).tokens;
    return tokens.size() > node.tokens.size() && begins_with(tokens, node.tokens);
  };
  return node.children.empty() &&
         std::ranges::any_of(tree_.node(node.parent).children, begins_with_node);
}

std::size_t PrefixMemory::branch_count(NodeId node) const {
  return static_cast<std::size_t>(std::ranges::count_if(
      tree_.node(node).children, [&](const auto& child) { return !is_superseded(child.second); }));
}

bool PrefixMemory::reclaim() {
  if (evict_one()) return true;
  if (writer_.pending() == 0) return false;
  writer_.drain();
  return evict_one();
}

bool PrefixMemory::evict_one() {
  const std::lock_guard lock(mutex_);
  const std::optional<TreeVictim> victim = tree_.choose_victim(now_);
  if (!victim) return false;
  if (victim->what == TreeVictim::What::kSnapshot) {
    tree_.take_snapshot(victim->node);
    counts_.snapshots_evicted += 1;
  } else {
    remove_node(victim->node);
    counts_.pages_evicted += 1;
  }
  return true;
}

}  // namespace locket::cache
