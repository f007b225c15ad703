#include "cache/prefix_tree.h"

#include <algorithm>
#include <array>
#include <gtest/gtest.h>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "cache/kv_layout.h"

namespace locket::cache {
namespace {

using Tokens = std::vector<std::int32_t>;

constexpr TreeCosts kCosts = {.page_bytes = 1'000, .snapshot_bytes = 10'000, .restart_tokens = 512};

// `count` tokens; `from` on they are `second` instead of `first`.
Tokens tokens_of(std::int32_t first, std::int64_t count = kTokensPerPage, std::int64_t from = 1'000,
                 std::int32_t second = 0) {
  Tokens tokens(static_cast<std::size_t>(count), first);
  for (auto i = static_cast<std::size_t>(from); i < tokens.size(); ++i) tokens[i] = second;
  return tokens;
}

Tokens joined(std::initializer_list<Tokens> parts) {
  Tokens tokens;
  for (const Tokens& part : parts) tokens.insert(tokens.end(), part.begin(), part.end());
  return tokens;
}

PrefixPoint tenant_root(const std::string& tenant, std::int32_t name_bits = 256) {
  const Tokens secret = {1, 2, 3};
  MemoryIdentity identity;
  identity.tenant = tenant;
  return root_point(root_name(std::as_bytes(std::span(secret)), identity), name_bits);
}

std::shared_ptr<const tensor::AlignedBuffer> rings() {
  return std::make_shared<const tensor::AlignedBuffer>();
}

class PrefixTreeTest : public ::testing::Test {
 protected:
  NodeId add(NodeId parent, const Tokens& tokens, std::uint64_t now = 0) {
    const NodeId node = tree_.add(parent, tokens, next_page_++);
    EXPECT_NE(node, kNoNode);
    tree_.touch(node, now);
    return node;
  }
  // The victim, which must be there.
  TreeVictim victim(std::uint64_t now) {
    const std::optional<TreeVictim> found = tree_.choose_victim(now);
    EXPECT_TRUE(found);
    return found.value_or(TreeVictim{});
  }

  PrefixTree tree_{kCosts};
  NodeId root_ = tree_.root(tenant_root("a"));
  PageId next_page_ = 0;
};

TEST_F(PrefixTreeTest, AnEmptyTreeFindsNothing) {
  const TreeMatch match = tree_.find(root_, tokens_of(1));
  EXPECT_TRUE(match.pages.empty());
  EXPECT_EQ(match.parting, kNoNode);
  EXPECT_EQ(match.tokens, 0);
  EXPECT_FALSE(tree_.choose_victim(100));
}

TEST_F(PrefixTreeTest, FindsToTheTokenWhereAPagePartsFromTheWantedTokens) {
  const NodeId first = add(root_, tokens_of(1));
  const NodeId second = add(first, tokens_of(2));
  const TreeMatch match = tree_.find(root_, joined({tokens_of(1), tokens_of(2, 128, 77, 9)}));
  EXPECT_EQ(match.pages, std::vector<NodeId>{first});
  EXPECT_EQ(match.parting, second);
  EXPECT_EQ(match.parting_tokens, 77);
  EXPECT_EQ(match.tokens, 128 + 77);
}

TEST_F(PrefixTreeTest, FindsAWantedPrefixThatEndsInsideAPage) {
  const NodeId first = add(root_, tokens_of(1));
  const TreeMatch match = tree_.find(root_, tokens_of(1, 50));
  EXPECT_TRUE(match.pages.empty());
  EXPECT_EQ(match.parting, first);
  EXPECT_EQ(match.parting_tokens, 50);
  EXPECT_EQ(match.tokens, 50);
}

TEST_F(PrefixTreeTest, FindsATailAsFarAsItGoes) {
  const NodeId first = add(root_, tokens_of(1));
  const NodeId tail = add(first, tokens_of(2, 30));
  const TreeMatch match = tree_.find(root_, joined({tokens_of(1), tokens_of(2, 128)}));
  EXPECT_EQ(match.pages, std::vector<NodeId>{first});
  EXPECT_EQ(match.parting, tail);
  EXPECT_EQ(match.parting_tokens, 30);
  EXPECT_EQ(match.tokens, 158);
}

TEST_F(PrefixTreeTest, WholePagesHaveNoPartingPage) {
  const NodeId first = add(root_, tokens_of(1));
  const NodeId second = add(first, tokens_of(2));
  const TreeMatch match = tree_.find(root_, joined({tokens_of(1), tokens_of(2)}));
  EXPECT_EQ(match.pages, (std::vector<NodeId>{first, second}));
  EXPECT_EQ(match.parting, kNoNode);
  EXPECT_EQ(match.parting_tokens, 0);
  EXPECT_EQ(match.tokens, 256);
}

TEST_F(PrefixTreeTest, TheChildThatAgreesFurthestWins) {
  add(root_, tokens_of(1, 128, 20, 5));
  const NodeId furthest = add(root_, tokens_of(1, 128, 90, 6));
  add(root_, tokens_of(1, 60));
  add(root_, tokens_of(4));
  const TreeMatch match = tree_.find(root_, tokens_of(1));
  EXPECT_EQ(match.parting, furthest);
  EXPECT_EQ(match.parting_tokens, 90);
}

TEST_F(PrefixTreeTest, APageThatOthersPartFromIsStillFoundWhole) {
  add(root_, tokens_of(1, 128, 100, 5));
  const NodeId whole = add(root_, tokens_of(1));
  EXPECT_EQ(tree_.find(root_, tokens_of(1)).pages, std::vector<NodeId>{whole});
  EXPECT_EQ(tree_.find_child(root_, tokens_of(1)), whole);
  EXPECT_EQ(tree_.find_child(root_, tokens_of(1, 127)), kNoNode);
}

TEST_F(PrefixTreeTest, APageOfTheSameNameButOtherTokensIsRefusedAndNeverFound) {
  const PrefixPoint start = tenant_root("short names", 8);
  const NodeId root = tree_.root(start);
  const Tokens kept = tokens_of(1);
  const NodeId node = add(root, kept);
  int refused = 0;
  for (std::int32_t other = 2; other < 3'000; ++other) {
    const Tokens tokens = tokens_of(other);
    if (next_point(start, tokens).name != tree_.node(node).end.name) continue;
    EXPECT_EQ(tree_.add(root, tokens, 99), kNoNode);
    EXPECT_EQ(tree_.find_child(root, tokens), kNoNode);
    EXPECT_EQ(tree_.find(root, tokens).tokens, 0);
    ++refused;
  }
  EXPECT_GT(refused, 0);
  EXPECT_EQ(tree_.find_child(root, kept), node);
  EXPECT_EQ(tree_.node_count(), 1);
}

TEST_F(PrefixTreeTest, RootsOfTwoTenantsNeverMix) {
  const NodeId other = tree_.root(tenant_root("b"));
  EXPECT_NE(other, root_);
  EXPECT_EQ(tree_.root(tenant_root("a")), root_);
  const NodeId page = add(root_, tokens_of(1));
  EXPECT_EQ(tree_.find(other, tokens_of(1)).tokens, 0);
  EXPECT_EQ(tree_.find_child(other, tokens_of(1)), kNoNode);
  const NodeId copy = add(other, tokens_of(1));
  EXPECT_NE(tree_.node(copy).end.name, tree_.node(page).end.name);
  EXPECT_EQ(tree_.find(root_, tokens_of(1)).pages, std::vector<NodeId>{page});
}

TEST_F(PrefixTreeTest, APathLeadsFromTheRootToTheNode) {
  const NodeId first = add(root_, tokens_of(1));
  const NodeId second = add(first, tokens_of(2));
  const NodeId tail = add(second, tokens_of(3, 5));
  EXPECT_EQ(tree_.path(tail), (std::vector<NodeId>{first, second, tail}));
  EXPECT_TRUE(tree_.path(root_).empty());
  EXPECT_EQ(tree_.node(tail).end.position, 261);
}

TEST_F(PrefixTreeTest, VictimsGoOldestFirst) {
  const NodeId newer = add(root_, tokens_of(1), 20);
  const NodeId older = add(root_, tokens_of(2), 10);
  EXPECT_EQ(victim(30).node, older);
  tree_.touch(older, 25);
  EXPECT_EQ(victim(30).node, newer);
}

TEST_F(PrefixTreeTest, TimeNeverGoesBackForANode) {
  const NodeId page = add(root_, tokens_of(1), 20);
  tree_.touch(page, 5);
  EXPECT_EQ(tree_.node(page).last_use, 20U);
}

TEST_F(PrefixTreeTest, OnlyLeavesGo) {
  const NodeId first = add(root_, tokens_of(1), 1);
  const NodeId second = add(first, tokens_of(2), 50);
  EXPECT_EQ(victim(60).node, second);
  EXPECT_EQ(victim(60).what, TreeVictim::What::kPage);
}

TEST_F(PrefixTreeTest, AParentInheritsTheUseOfARemovedLeaf) {
  const NodeId parent = add(root_, tokens_of(1), 1);
  const NodeId leaf = add(parent, tokens_of(2), 50);
  const NodeId other = add(root_, tokens_of(3), 30);
  tree_.remove(leaf);
  EXPECT_EQ(tree_.node(parent).last_use, 50U);
  EXPECT_EQ(victim(60).node, other);
}

TEST_F(PrefixTreeTest, APinProtectsTheWholePath) {
  const NodeId first = add(root_, tokens_of(1), 1);
  const NodeId second = add(first, tokens_of(2), 1);
  const NodeId other = add(root_, tokens_of(3), 90);
  tree_.pin(second);
  EXPECT_EQ(victim(100).node, other);
  tree_.remove(other);
  EXPECT_FALSE(tree_.choose_victim(100));
  tree_.unpin(second);
  EXPECT_EQ(victim(100).node, second);
}

TEST_F(PrefixTreeTest, PinsAreCounted) {
  const NodeId page = add(root_, tokens_of(1));
  tree_.pin(page);
  tree_.pin(page);
  tree_.unpin(page);
  EXPECT_FALSE(tree_.choose_victim(100));
  tree_.unpin(page);
  EXPECT_EQ(victim(100).node, page);
}

TEST_F(PrefixTreeTest, ASnapshotMayGoFromAPinnedNode) {
  const NodeId page = add(root_, tokens_of(1));
  tree_.set_snapshot(page, rings());
  tree_.pin(page);
  EXPECT_EQ(victim(100).what, TreeVictim::What::kSnapshot);
  tree_.take_snapshot(page);
  EXPECT_FALSE(tree_.choose_victim(100));
}

// 10,000 bytes for 128 tokens against 1,000 bytes for 128 tokens.
TEST_F(PrefixTreeTest, ASnapshotThatIsCheapToComputeAgainGoesBeforeAPage) {
  const NodeId first = add(root_, tokens_of(1), 10);
  add(first, tokens_of(2), 10);
  tree_.set_snapshot(first, rings());
  EXPECT_EQ(victim(20).what, TreeVictim::What::kSnapshot);
  EXPECT_EQ(victim(20).node, first);
}

// Ages in proportion: a page 25 times as old outweighs a snapshot 20 times as dear per token.
TEST_F(PrefixTreeTest, AnOldPageGoesBeforeAYoungSnapshot) {
  add(root_, tokens_of(1), 0);
  NodeId at = root_;
  for (std::int32_t page = 2; page < 6; ++page) at = add(at, tokens_of(page), 990);
  tree_.set_snapshot(at, rings());
  tree_.pin(tree_.node(at).parent);
  EXPECT_EQ(victim(1'000).what, TreeVictim::What::kPage);
  EXPECT_TRUE(std::ranges::equal(tree_.node(victim(1'000).node).tokens, tokens_of(1)));
}

TEST_F(PrefixTreeTest, OfTwoSnapshotsTheOneCloserToAnotherGoes) {
  std::vector<NodeId> pages = {root_};
  for (std::int32_t page = 1; page < 10; ++page)
    pages.push_back(add(pages.back(), tokens_of(page), 5));
  for (const std::size_t place : {std::size_t{4}, std::size_t{8}, std::size_t{9}}) {
    tree_.set_snapshot(pages[place], rings());
  }
  tree_.pin(add(pages[9], tokens_of(10), 5));
  EXPECT_EQ(victim(50).node, pages[9]);
  EXPECT_TRUE(tree_.take_snapshot(pages[9]));
  tree_.set_snapshot(pages[5], rings());
  EXPECT_EQ(victim(50).node, pages[5]);
}

TEST_F(PrefixTreeTest, AShortTailGoesBeforeAWholePageOfTheSameAge) {
  add(root_, tokens_of(1), 10);
  const NodeId tail = add(root_, tokens_of(2, 4), 10);
  EXPECT_EQ(victim(20).node, tail);
}

TEST_F(PrefixTreeTest, ATakenSnapshotIsNoVictimAnymore) {
  const NodeId page = add(root_, tokens_of(1));
  const auto snapshot = rings();
  tree_.set_snapshot(page, snapshot);
  EXPECT_EQ(tree_.take_snapshot(page), snapshot);
  EXPECT_FALSE(tree_.node(page).snapshot);
  EXPECT_EQ(victim(9).what, TreeVictim::What::kPage);
  EXPECT_FALSE(tree_.take_snapshot(page));
}

TEST_F(PrefixTreeTest, ARemovedNodeGivesItsPageAndSnapshotBack) {
  const NodeId page = add(root_, tokens_of(1));
  const auto snapshot = rings();
  tree_.set_snapshot(page, snapshot);
  const TreeNode removed = tree_.remove(page);
  EXPECT_EQ(removed.page, 0);
  EXPECT_EQ(removed.snapshot, snapshot);
  EXPECT_TRUE(std::ranges::equal(removed.tokens, tokens_of(1)));
  EXPECT_EQ(tree_.find(root_, tokens_of(1)).tokens, 0);
  EXPECT_FALSE(tree_.choose_victim(9));
}

TEST_F(PrefixTreeTest, TheBytesOfNodesComeBackWhenTheyGo) {
  EXPECT_EQ(tree_.node_bytes(), 0U);
  const NodeId first = add(root_, tokens_of(1));
  const std::uint64_t one = tree_.node_bytes();
  EXPECT_GE(one, sizeof(TreeNode) + 128 * sizeof(std::int32_t));
  const NodeId second = add(first, tokens_of(2));
  EXPECT_EQ(tree_.node_bytes(), 2 * one);
  EXPECT_EQ(tree_.node_count(), 2);
  tree_.remove(second);
  tree_.remove(first);
  EXPECT_EQ(tree_.node_bytes(), 0U);
  EXPECT_EQ(tree_.node_count(), 0);
}

// What the tree is compared with: a list of paths.
struct ModelNode {
  NodeId root = kNoNode;
  NodeId parent = kNoNode;
  Tokens path;  // from the root on, its own tokens included
  std::uint64_t last_use = 0;
  int pins = 0;
  bool has_snapshot = false;
};

// Pages that agree for a while with each other, so that every kind of parting comes about.
Tokens some_page(std::mt19937& random, std::size_t length) {
  static constexpr std::array<std::size_t, 5> kPartings = {0, 3, 64, 127, 128};
  const std::size_t parting = kPartings[random() % kPartings.size()];
  Tokens page(length, 7);
  const auto other = static_cast<std::int32_t>(random() % 3);
  for (std::size_t i = parting; i < length; ++i) page[i] = other;
  return page;
}

class ModelTest : public ::testing::TestWithParam<std::int32_t> {
 protected:
  void add_sequence();
  void find_sequence();
  void change_node();
  void evict();
  bool has_children(NodeId id) const {
    return std::ranges::any_of(model_,
                               [&](const auto& entry) { return entry.second.parent == id; });
  }
  NodeId some_node() {
    if (model_.empty()) return kNoNode;
    return std::next(model_.begin(), static_cast<std::ptrdiff_t>(random_() % model_.size()))->first;
  }
  void forget(NodeId id) {
    ModelNode& node = model_.at(id);
    if (model_.contains(node.parent)) {
      ModelNode& parent = model_.at(node.parent);
      parent.last_use = std::max(parent.last_use, node.last_use);
    }
    model_.erase(id);
  }

  std::mt19937 random_{static_cast<std::uint32_t>(GetParam())};
  PrefixTree tree_{kCosts};
  std::vector<NodeId> roots_ = {tree_.root(tenant_root("a", GetParam())),
                                tree_.root(tenant_root("b", GetParam()))};
  std::map<NodeId, ModelNode> model_;
  std::uint64_t now_ = 0;
  int refusals_ = 0;
  int victims_ = 0;
};

void ModelTest::add_sequence() {
  const NodeId root = roots_[random_() % roots_.size()];
  NodeId at = root;
  Tokens path;
  for (std::size_t pages = 1 + random_() % 5; pages > 0; --pages) {
    const bool is_tail = pages == 1 && random_() % 2 == 0;
    const Tokens page = some_page(random_, is_tail ? 1 + random_() % 127 : 128);
    path.insert(path.end(), page.begin(), page.end());
    NodeId next = tree_.find_child(at, page);
    const bool is_known = std::ranges::any_of(model_, [&](const auto& entry) {
      return entry.second.parent == at && entry.second.path == path;
    });
    ASSERT_EQ(next != kNoNode, is_known);
    if (next == kNoNode) {
      next = tree_.add(at, page, 0);
      if (next == kNoNode) ++refusals_;
      if (next == kNoNode) return;
      ASSERT_FALSE(model_.contains(next));
      model_[next] = {.root = root, .parent = at, .path = path};
    }
    tree_.touch(next, now_);
    model_[next].last_use = now_;
    at = next;
  }
}

void ModelTest::find_sequence() {
  const NodeId root = roots_[random_() % roots_.size()];
  Tokens wanted;
  for (std::size_t pages = 1 + random_() % 5; pages > 0; --pages) {
    const Tokens page = some_page(random_, pages == 1 ? random_() % 129 : 128);
    wanted.insert(wanted.end(), page.begin(), page.end());
  }
  std::int64_t longest = 0;
  for (const auto& [id, node] : model_) {
    if (node.root != root) continue;
    const auto length = static_cast<std::ptrdiff_t>(std::min(wanted.size(), node.path.size()));
    const auto parts = std::mismatch(wanted.begin(), wanted.begin() + length, node.path.begin());
    longest = std::max<std::int64_t>(longest, parts.first - wanted.begin());
  }
  const TreeMatch match = tree_.find(root, wanted);
  ASSERT_EQ(match.tokens, longest);
  ASSERT_EQ(match.tokens,
            static_cast<std::int64_t>(match.pages.size()) * kTokensPerPage + match.parting_tokens);
  ASSERT_EQ(match.parting != kNoNode, match.parting_tokens > 0);
  if (match.pages.empty()) return;
  const Tokens& path = model_.at(match.pages.back()).path;
  ASSERT_TRUE(std::equal(path.begin(), path.end(), wanted.begin()));
  ASSERT_EQ(tree_.path(match.pages.back()), match.pages);
}

void ModelTest::change_node() {
  const NodeId id = some_node();
  if (id == kNoNode) return;
  ModelNode& node = model_.at(id);
  switch (random_() % 4) {
    case 0:
      tree_.pin(id);
      ++node.pins;
      return;
    case 1:
      if (node.pins > 0) tree_.unpin(id);
      node.pins = std::max(0, node.pins - 1);
      return;
    case 2:
      tree_.set_snapshot(id, rings());
      node.has_snapshot = true;
      return;
    default:
      ASSERT_EQ(tree_.take_snapshot(id) != nullptr, node.has_snapshot);
      node.has_snapshot = false;
  }
}

void ModelTest::evict() {
  const std::optional<TreeVictim> victim = tree_.choose_victim(now_);
  const bool has_candidate = std::ranges::any_of(model_, [&](const auto& entry) {
    const ModelNode& node = entry.second;
    return node.has_snapshot || (node.pins == 0 && !has_children(entry.first));
  });
  ASSERT_EQ(victim.has_value(), has_candidate);
  if (!victim) return;
  ModelNode& node = model_.at(victim->node);
  ++victims_;
  if (victim->what == TreeVictim::What::kSnapshot) {
    ASSERT_TRUE(node.has_snapshot);
    node.has_snapshot = false;
    ASSERT_TRUE(tree_.take_snapshot(victim->node));
    return;
  }
  ASSERT_EQ(node.pins, 0);
  ASSERT_FALSE(has_children(victim->node));
  const TreeNode removed = tree_.remove(victim->node);
  ASSERT_EQ(removed.snapshot != nullptr, node.has_snapshot);
  ASSERT_EQ(removed.last_use, node.last_use);
  forget(victim->node);
}

TEST_P(ModelTest, TenThousandOperationsAgreeWithAList) {
  for (int i = 0; i < 10'000 && !HasFatalFailure(); ++i) {
    now_ += random_() % 3;
    const auto kind = random_() % 20;
    if (kind < 4) add_sequence();
    if (kind >= 4 && kind < 10) find_sequence();
    if (kind >= 10 && kind < 14) change_node();
    if (kind >= 14) evict();
    ASSERT_EQ(tree_.node_count(), static_cast<std::int64_t>(model_.size()));
  }
  EXPECT_GT(victims_, 1'000);
  EXPECT_EQ(refusals_ > 0, GetParam() == 8);
}

INSTANTIATE_TEST_SUITE_P(NameBits, ModelTest, ::testing::Values(256, 8));

}  // namespace
}  // namespace locket::cache
