#include "cache/internal/eviction_index.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "cache/internal/segment_space.h"

namespace locket::cache {
namespace {

PageName name_of(int number) {
  PageName name = {};
  name[0] = static_cast<std::byte>(number);
  return name;
}

constexpr int kRoot = 200;

// A chain of pages first..last, hanging from `parent`.
void add_chain(EvictionIndex& index, int parent, std::int64_t begin, int first, int last) {
  for (int i = first; i <= last; ++i) {
    index.add_page(name_of(i), {.parent = name_of(i == first ? parent : i - 1),
                                .begin = begin + 128 * (i - first),
                                .end = begin + 128 * (i - first + 1),
                                .bytes = 1000,
                                .last_use = 0,
                                .children = 0,
                                .is_pinned = false});
  }
}

std::vector<int> chosen(const EvictionIndex& index, std::uint64_t bytes, NameSet kept = {}) {
  std::vector<int> numbers;
  for (const auto& victim : index.choose(
           {.bytes = bytes, .now = 1000, .restart_tokens = 2540, .kept = std::move(kept)})) {
    const int number = std::to_integer<int>(victim.name[0]);
    numbers.push_back(victim.kind == EvictionIndex::Kind::kPage ? number : -number);
  }
  return numbers;
}

TEST(EvictionIndexTest, LeavesOfTheOldestUseGoFirstDeepestFirst) {
  EvictionIndex index;
  add_chain(index, kRoot, 0, 1, 3);
  add_chain(index, kRoot, 0, 11, 13);
  index.note_use(name_of(3), 900);
  index.note_use(name_of(13), 100);
  EXPECT_THAT(chosen(index, 1), ::testing::ElementsAre(13));
  EXPECT_THAT(chosen(index, 2500), ::testing::ElementsAre(13, 12, 11));
  EXPECT_THAT(chosen(index, 3500), ::testing::ElementsAre(13, 12, 11, 3));
  EXPECT_EQ(chosen(index, 1'000'000).size(), 6) << "no more than there is";
}

TEST(EvictionIndexTest, WhatIsSharedIsAsYoungAsItsYoungestUser) {
  EvictionIndex index;
  add_chain(index, kRoot, 0, 1, 2);
  add_chain(index, 2, 256, 11, 11);
  add_chain(index, 2, 256, 21, 21);
  add_chain(index, kRoot, 0, 31, 31);
  index.note_use(name_of(11), 10);
  index.note_use(name_of(31), 500);
  index.note_use(name_of(21), 900);
  EXPECT_EQ(index.page(name_of(1))->last_use, 900);
  EXPECT_THAT(chosen(index, 2500), ::testing::ElementsAre(11, 31, 21));
}

TEST(EvictionIndexTest, KeptAndPinnedPathsStay) {
  EvictionIndex index;
  add_chain(index, kRoot, 0, 1, 3);
  add_chain(index, kRoot, 0, 11, 13);
  index.set_pinned(name_of(2), true);
  EXPECT_THAT(chosen(index, 1'000'000), ::testing::UnorderedElementsAre(3, 13, 12, 11));
  NameSet kept;
  index.collect_path(name_of(12), kept);
  EXPECT_THAT(chosen(index, 1'000'000, kept), ::testing::UnorderedElementsAre(3, 13));
}

TEST(EvictionIndexTest, PagesWhoseParentIsGoneGoBeforeAllOthers) {
  EvictionIndex index;
  add_chain(index, kRoot, 0, 1, 3);
  add_chain(index, kRoot, 0, 11, 11);
  index.note_use(name_of(3), 999);
  index.note_use(name_of(11), 1);
  index.remove_page(name_of(2));
  EXPECT_THAT(chosen(index, 1), ::testing::ElementsAre(3));
  // Stored again, it has its child.
  index.add_page(name_of(2), {.parent = name_of(1),
                              .begin = 128,
                              .end = 256,
                              .bytes = 1000,
                              .last_use = 999,
                              .children = 0,
                              .is_pinned = false});
  EXPECT_FALSE(index.is_leaf(name_of(2)));
  EXPECT_THAT(chosen(index, 1), ::testing::ElementsAre(11));
}

TEST(EvictionIndexTest, ASnapshotWeighsWhatItsLossWouldCost) {
  EvictionIndex index;
  add_chain(index, kRoot, 0, 1, 40);
  index.note_use(name_of(40), 500);
  // Close together: the second saves 128 tokens only.
  index.add_snapshot(name_of(20), {.position = 20 * 128, .bytes = 10'000});
  index.add_snapshot(name_of(21), {.position = 21 * 128, .bytes = 10'000});
  EXPECT_THAT(chosen(index, 1), ::testing::ElementsAre(-21));
  // Without the lower one, the upper is worth as much as that was: pages go first.
  index.remove_snapshot(name_of(20));
  EXPECT_THAT(chosen(index, 1), ::testing::ElementsAre(40));
}

TEST(EvictionIndexTest, ALeafTakesItsSnapshotAlong) {
  EvictionIndex index;
  add_chain(index, kRoot, 0, 1, 2);
  index.add_snapshot(name_of(2), {.position = 256, .bytes = 10});
  EXPECT_THAT(chosen(index, 1'000'000), ::testing::ElementsAre(-2, 2, 1));
}

TEST(EvictionIndexTest, AClockThatWentBackMakesNothingOlderThanNew) {
  EvictionIndex index;
  add_chain(index, kRoot, 0, 1, 1);
  add_chain(index, kRoot, 0, 2, 2);
  index.note_use(name_of(1), 5000);  // later than now
  index.note_use(name_of(2), 100);
  EXPECT_EQ(index.newest_use(), 5000);
  EXPECT_THAT(chosen(index, 1), ::testing::ElementsAre(2));
}

TEST(SegmentSpaceTest, BlocksAreFreeOnceNoPayloadTouchesThem) {
  SegmentSpace space;
  const StoredValue a = {.segment = 1, .offset = 64, .bytes = 10'000, .checksum = {}};
  const StoredValue b = {.segment = 1, .offset = 10'064, .bytes = 10'000, .checksum = {}};
  space.add(a);
  space.add(b);
  EXPECT_EQ(space.used_end(1), 20'480);
  auto free = space.remove(b);
  ASSERT_EQ(free.size(), 1);
  EXPECT_EQ(free[0].offset, 12'288) << "the block in which both lie stays";
  EXPECT_EQ(free[0].bytes, 8'192);
  EXPECT_EQ(space.used_end(1), 12'288);
  free = space.remove(a);
  ASSERT_EQ(free.size(), 1);
  EXPECT_EQ(free[0].offset, 4096) << "the block of the header stays";
  EXPECT_FALSE(space.is_used(1));
  EXPECT_TRUE(space.remove(a).empty());
}

TEST(SegmentSpaceTest, GapsAreTheUnusedBlocksBetween) {
  SegmentSpace space;
  space.add({.segment = 1, .offset = 64, .bytes = 100, .checksum = {}});
  space.add({.segment = 1, .offset = 20'480, .bytes = 100, .checksum = {}});
  const auto gaps = space.gaps(1);
  ASSERT_EQ(gaps.size(), 1);
  EXPECT_EQ(gaps[0].offset, 4096);
  EXPECT_EQ(gaps[0].bytes, 16'384);
  EXPECT_TRUE(space.gaps(2).empty());
}

}  // namespace
}  // namespace locket::cache
