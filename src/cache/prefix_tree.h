// Which prefixes are in memory: a tree of pages under one root per tenant. A node is a page with
// the token ids that it holds; its path is a prefix. Look-ups are token-granular: a page whose
// tokens part from the wanted ones in the middle is found, with the number of tokens that still
// agree.
//
// The tree keeps ids, names, times and sizes; what a node's bytes are is the owner's business (it
// gets page and snapshot back from remove()). It decides what goes first: leaves, oldest use first,
// weighed by what a miss would cost, see choose_victim(). A pinned node, and so its whole path,
// stays; snapshots may go at any time. Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/dense_allocator.h"
#include "cache/page_name.h"
#include "cache/page_pool.h"
#include "tensor/aligned_buffer.h"

namespace locket::cache {

using NodeId = std::int32_t;
inline constexpr NodeId kNoNode = -1;

// Sizes and costs by which victims are chosen.
struct TreeCosts {
  std::uint64_t page_bytes = 0;
  std::uint64_t snapshot_bytes = 0;
  std::int64_t restart_tokens = 0;  // tokens that a start without any snapshot computes again
};

struct TreeNode {
  NodeId parent = kNoNode;           // kNoNode: a root
  PrefixPoint end;                   // where the page ends
  DenseVector<std::int32_t> tokens;  // 1 to kTokensPerPage; fewer than that: a tail
  PageId page = -1;
  std::shared_ptr<const tensor::AlignedBuffer> snapshot = {};  // rings at the node's end
  std::uint64_t last_use = 0;
  std::int32_t pins = 0;
  DenseMap<PageName, NodeId> children = {};
  // For the owner's use.
  std::uint64_t disk_epoch = 0;
  bool snapshot_is_wanted = false;
  bool snapshot_is_on_disk = false;
  double last_use_seconds = 0;  // wall clock, for people
};

// How far a sequence of tokens is in the tree.
struct TreeMatch {
  std::vector<NodeId> pages;        // full pages, first to last
  NodeId parting = kNoNode;         // the page after them that agrees furthest, or a tail
  std::int64_t parting_tokens = 0;  // how many of its tokens agree; at least 1 if there is one
  std::int64_t tokens = 0;          // all in all
};

struct TreeVictim {
  enum class What { kPage, kSnapshot };  // a page goes with its snapshot
  NodeId node = kNoNode;
  What what = What::kPage;
};

// Whether `tokens` begin with all of `start`.
bool begins_with(std::span<const std::int32_t> tokens, std::span<const std::int32_t> start);

class PrefixTree {
 public:
  explicit PrefixTree(const TreeCosts& costs);

  // The root for this point; made at the first call.
  NodeId root(const PrefixPoint& point);
  TreeMatch find(NodeId root, std::span<const std::int32_t> tokens) const;

  // The child of `parent` with exactly these tokens, or kNoNode.
  NodeId find_child(NodeId parent, std::span<const std::int32_t> tokens) const;
  // Adds a page below `parent`. kNoNode if a page of the same name but other tokens is there.
  // REQUIRES: no child with these tokens; `parent` is a root or a full page.
  NodeId add(NodeId parent, std::span<const std::int32_t> tokens, PageId page);
  // Takes a leaf out. REQUIRES: no children, no pins.
  TreeNode remove(NodeId id);

  const TreeNode& node(NodeId id) const;
  TreeNode& node(NodeId id);
  // Pages from the root to this one, itself included.
  std::vector<NodeId> path(NodeId id) const;

  void set_snapshot(NodeId id, std::shared_ptr<const tensor::AlignedBuffer> snapshot);
  std::shared_ptr<const tensor::AlignedBuffer> take_snapshot(NodeId id);

  // `now` never goes back.
  void touch(NodeId id, std::uint64_t now);
  void pin(NodeId id);
  void unpin(NodeId id);

  // What goes next: the unpinned leaf, or the snapshot of any node, with the largest age x bytes /
  // tokens that a miss would cost, among the oldest few of each; nothing if there is neither.
  std::optional<TreeVictim> choose_victim(std::uint64_t now) const;

  std::int64_t node_count() const { return live_nodes_; }
  // Of all nodes.
  std::int64_t token_count() const { return tokens_; }
  // Above every id in use.
  NodeId id_end() const { return static_cast<NodeId>(nodes_.size()); }
  // Bytes that the nodes themselves take, pages and snapshots left out.
  std::uint64_t node_bytes() const { return node_bytes_; }

 private:
  using Order = DenseSet<std::pair<std::uint64_t, NodeId>>;

  bool is_leaf(const TreeNode& node) const;
  void index(NodeId id);
  void unindex(NodeId id);
  double leaf_weight(NodeId id) const;
  double snapshot_weight(NodeId id) const;
  // Tokens that a start need not compute because of the node's snapshot.
  std::int64_t saved_by_snapshot(NodeId id) const;

  TreeCosts costs_;
  std::vector<TreeNode> nodes_;
  std::vector<NodeId> free_;
  DenseMap<PageName, NodeId> roots_;
  Order leaves_;
  Order snapshots_;
  std::int64_t live_nodes_ = 0;
  std::int64_t tokens_ = 0;
  std::uint64_t node_bytes_ = 0;
};

}  // namespace locket::cache
