#include "cache/prefix_tree.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "cache/kv_layout.h"

namespace locket::cache {
namespace {

// Candidates of each kind that are weighed against each other.
constexpr int kWeighed = 32;
// What a map entry takes besides key and value, about.
constexpr std::uint64_t kEntryBytes = 64;

std::uint64_t bytes_of(const TreeNode& node) {
  return sizeof(TreeNode) + sizeof(PageName) + kEntryBytes +
         node.tokens.capacity() * sizeof(std::int32_t);
}

std::size_t common_length(std::span<const std::int32_t> a, std::span<const std::int32_t> b) {
  const std::size_t length = std::min(a.size(), b.size());
  return static_cast<std::size_t>(
      std::mismatch(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(length), b.begin()).first -
      a.begin());
}

}  // namespace

bool begins_with(std::span<const std::int32_t> tokens, std::span<const std::int32_t> start) {
  return tokens.size() >= start.size() && std::ranges::equal(tokens.first(start.size()), start);
}

PrefixTree::PrefixTree(const TreeCosts& costs) : costs_(costs) {}

NodeId PrefixTree::root(const PrefixPoint& point) {
  const auto found = roots_.find(point.name);
  if (found != roots_.end()) return found->second;
  const auto id = static_cast<NodeId>(nodes_.size());
  nodes_.emplace_back().end = point;
  roots_.emplace(point.name, id);
  return id;
}

NodeId PrefixTree::find_child(NodeId parent, std::span<const std::int32_t> tokens) const {
  const TreeNode& above = node(parent);
  const auto found = above.children.find(next_point(above.end, tokens).name);
  if (found == above.children.end()) return kNoNode;
  return std::ranges::equal(node(found->second).tokens, tokens) ? found->second : kNoNode;
}

TreeMatch PrefixTree::find(NodeId root, std::span<const std::int32_t> tokens) const {
  TreeMatch match;
  NodeId at = root;
  constexpr auto kPage = static_cast<std::size_t>(kTokensPerPage);
  while (tokens.size() >= kPage) {
    const NodeId child = find_child(at, tokens.first(kPage));
    if (child == kNoNode) break;
    match.pages.push_back(child);
    tokens = tokens.subspan(kPage);
    at = child;
  }
  match.tokens = static_cast<std::int64_t>(match.pages.size()) * kTokensPerPage;
  std::size_t furthest = 0;
  for (const auto& [name, child] : node(at).children) {
    const std::size_t length = common_length(node(child).tokens, tokens);
    if (length <= furthest) continue;
    furthest = length;
    match.parting = child;
  }
  match.parting_tokens = static_cast<std::int64_t>(furthest);
  match.tokens += match.parting_tokens;
  return match;
}

NodeId PrefixTree::add(NodeId parent, std::span<const std::int32_t> tokens, PageId page) {
  const PrefixPoint& start = node(parent).end;
  LOCKET_CHECK(!tokens.empty() && tokens.size() <= static_cast<std::size_t>(kTokensPerPage));
  LOCKET_CHECK(start.position % kTokensPerPage == 0);
  const PrefixPoint end = next_point(start, tokens);
  if (node(parent).children.contains(end.name)) return kNoNode;
  NodeId id = static_cast<NodeId>(nodes_.size());
  if (free_.empty()) {
    nodes_.emplace_back();
  } else {
    id = free_.back();
    free_.pop_back();
  }
  unindex(parent);
  TreeNode& added = node(id);
  added = {.parent = parent, .end = end, .tokens = {tokens.begin(), tokens.end()}, .page = page};
  node(parent).children.emplace(end.name, id);
  index(parent);
  index(id);
  live_nodes_ += 1;
  node_bytes_ += bytes_of(added);
  tokens_ += static_cast<std::int64_t>(added.tokens.size());
  return id;
}

TreeNode PrefixTree::remove(NodeId id) {
  LOCKET_CHECK(node(id).parent != kNoNode && node(id).children.empty() && node(id).pins == 0);
  unindex(id);
  TreeNode removed = std::exchange(node(id), TreeNode{});
  unindex(removed.parent);
  TreeNode& parent = node(removed.parent);
  parent.children.erase(removed.end.name);
  parent.last_use = std::max(parent.last_use, removed.last_use);
  index(removed.parent);
  free_.push_back(id);
  live_nodes_ -= 1;
  node_bytes_ -= bytes_of(removed);
  tokens_ -= static_cast<std::int64_t>(removed.tokens.size());
  return removed;
}

const TreeNode& PrefixTree::node(NodeId id) const {
  LOCKET_CHECK(id >= 0 && static_cast<std::size_t>(id) < nodes_.size());
  return nodes_[static_cast<std::size_t>(id)];
}

TreeNode& PrefixTree::node(NodeId id) {
  return const_cast<TreeNode&>(std::as_const(*this).node(id));
}

std::vector<NodeId> PrefixTree::path(NodeId id) const {
  std::vector<NodeId> nodes;
  for (; node(id).parent != kNoNode; id = node(id).parent) nodes.push_back(id);
  std::ranges::reverse(nodes);
  return nodes;
}

void PrefixTree::set_snapshot(NodeId id, std::shared_ptr<const tensor::AlignedBuffer> snapshot) {
  unindex(id);
  node(id).snapshot = std::move(snapshot);
  index(id);
}

std::shared_ptr<const tensor::AlignedBuffer> PrefixTree::take_snapshot(NodeId id) {
  unindex(id);
  auto snapshot = std::exchange(node(id).snapshot, nullptr);
  index(id);
  return snapshot;
}

void PrefixTree::touch(NodeId id, std::uint64_t now) {
  unindex(id);
  node(id).last_use = std::max(node(id).last_use, now);
  index(id);
}

void PrefixTree::pin(NodeId id) {
  unindex(id);
  node(id).pins += 1;
  index(id);
}

void PrefixTree::unpin(NodeId id) {
  LOCKET_CHECK(node(id).pins > 0);
  unindex(id);
  node(id).pins -= 1;
  index(id);
}

bool PrefixTree::is_leaf(const TreeNode& node) const {
  return node.parent != kNoNode && node.children.empty() && node.pins == 0;
}

void PrefixTree::index(NodeId id) {
  const TreeNode& entry = node(id);
  if (is_leaf(entry)) leaves_.emplace(entry.last_use, id);
  if (entry.snapshot) snapshots_.emplace(entry.last_use, id);
}

void PrefixTree::unindex(NodeId id) {
  const std::pair key(node(id).last_use, id);
  leaves_.erase(key);
  snapshots_.erase(key);
}

double PrefixTree::leaf_weight(NodeId id) const {
  const TreeNode& entry = node(id);
  std::uint64_t bytes = costs_.page_bytes;
  auto tokens = static_cast<std::int64_t>(entry.tokens.size());
  if (entry.snapshot) {
    bytes += costs_.snapshot_bytes;
    tokens += saved_by_snapshot(id);
  }
  return static_cast<double>(bytes) / static_cast<double>(tokens);
}

double PrefixTree::snapshot_weight(NodeId id) const {
  return static_cast<double>(costs_.snapshot_bytes) / static_cast<double>(saved_by_snapshot(id));
}

// Without it a start goes back to the snapshot before, or to a start without any.
std::int64_t PrefixTree::saved_by_snapshot(NodeId id) const {
  std::int64_t saved = 0;
  for (NodeId at = id; saved < costs_.restart_tokens; at = node(at).parent) {
    const TreeNode& entry = node(at);
    if (entry.parent == kNoNode || (at != id && entry.snapshot)) break;
    saved += static_cast<std::int64_t>(entry.tokens.size());
  }
  return std::clamp<std::int64_t>(saved, 1, std::max<std::int64_t>(1, costs_.restart_tokens));
}

std::optional<TreeVictim> PrefixTree::choose_victim(std::uint64_t now) const {
  std::optional<TreeVictim> victim;
  double largest = -1.0;
  const auto weigh = [&](std::uint64_t last_use, double weight, const TreeVictim& candidate) {
    const double score = (static_cast<double>(now - std::min(now, last_use)) + 1.0) * weight;
    if (score <= largest) return;
    largest = score;
    victim = candidate;
  };
  int count = 0;
  for (auto at = leaves_.begin(); at != leaves_.end() && count < kWeighed; ++at, ++count) {
    weigh(at->first, leaf_weight(at->second),
          {.node = at->second, .what = TreeVictim::What::kPage});
  }
  count = 0;
  for (auto at = snapshots_.begin(); at != snapshots_.end() && count < kWeighed; ++at, ++count) {
    weigh(at->first, snapshot_weight(at->second),
          {.node = at->second, .what = TreeVictim::What::kSnapshot});
  }
  return victim;
}

}  // namespace locket::cache
