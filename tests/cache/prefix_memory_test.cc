#include "cache/prefix_memory.h"

#include <gtest/gtest.h>

#include "base/system_memory.h"
#include "tests/cache/memory_world.h"
#include "tests/support/sanitizer.h"

namespace locket::cache {
namespace {

std::span<const std::int32_t> first(const Tokens& tokens, std::size_t count) {
  return std::span(tokens).first(count);
}

TEST(PrefixMemoryTest, FindsWhatWasReadUpToTheLastWholeGroup) {
  MemoryWorld world({});
  const Tokens text = random_tokens(1, 301);
  EXPECT_EQ(world.request(text), 0);
  EXPECT_EQ(world.request(text), 300);
  EXPECT_EQ(world.request(joined(text, random_tokens(2, 50))), 300);
  world.close();
}

// B03: any length may be the common one.
TEST(PrefixMemoryTest, B03_ReusesAtAnyLength) {
  for (const std::size_t stored : {301, 90, 128, 129, 257}) {
    const Tokens text = random_tokens(3, stored);
    for (const std::size_t common : {301, 300, 299, 298, 256, 255, 173, 129, 128, 127, 2, 1, 0}) {
      if (common > stored) continue;
      SCOPED_TRACE(testing::Message() << common << " of " << stored);
      MemoryWorld world({});
      ASSERT_EQ(world.request(text), 0);
      const Tokens other = joined(first(text, common), random_tokens(99, 40));
      EXPECT_EQ(world.request(other), static_cast<std::int64_t>(common / 2 * 2));
      EXPECT_EQ(world.request(other), static_cast<std::int64_t>(other.size() / 2 * 2));
      world.close();
    }
  }
}

TEST(PrefixMemoryTest, LiveSequencesShareWholePages) {
  MemoryWorld world({});
  const Tokens common = random_tokens(4, 3 * 128 + 40);
  const Tokens one = joined(common, random_tokens(5, 60));
  const Tokens two = joined(common, random_tokens(6, 60));
  {
    WorldSequence a(world.memory(), world.pool());
    ASSERT_TRUE(a.open(one));
    ASSERT_TRUE(a.finish());
    const std::uint64_t before = world.pool().used_bytes();
    WorldSequence b(world.memory(), world.pool());
    ASSERT_TRUE(b.open(two));
    EXPECT_EQ(b.hit(), 3 * 128 + 40);
    EXPECT_TRUE(b.check());
    const auto& pages_a = a.sequence().pages();
    const auto& pages_b = b.sequence().pages();
    for (std::size_t page = 0; page < 3; ++page) EXPECT_EQ(pages_a[page], pages_b[page]);
    EXPECT_NE(pages_a[3], pages_b[3]) << "the page where they part is each one's own";
    EXPECT_EQ(world.pool().used_bytes(), before + world.pool().page_bytes());
    ASSERT_TRUE(b.compute());
    EXPECT_TRUE(a.check());
  }
  world.close();
}

// Two sequences that compute the same at the same time end with one copy.
TEST(PrefixMemoryTest, TheSamePageComputedTwiceIsKeptOnce) {
  MemoryWorld world({});
  const Tokens text = random_tokens(7, 256);
  {
    WorldSequence a(world.memory(), world.pool());
    WorldSequence b(world.memory(), world.pool());
    ASSERT_TRUE(a.open(text));
    ASSERT_TRUE(b.open(text));
    EXPECT_EQ(b.hit(), 0);
    ASSERT_TRUE(a.compute());
    ASSERT_TRUE(b.compute());
    EXPECT_EQ(a.sequence().pages(), b.sequence().pages());
  }
  world.close();
}

TEST(PrefixMemoryTest, AnEditInTheMiddleKeepsWhatStandsBefore) {
  MemoryWorld world({});
  Tokens text = random_tokens(8, 700);
  ASSERT_EQ(world.request(text), 0);
  text[333] += 1;
  EXPECT_EQ(world.request(text), 332);
  text[333] -= 1;
  EXPECT_EQ(world.request(text), 700) << "the first version is still there";
  world.close();
}

// B21: tenants, modes and models never meet, however their names are put together.
TEST(PrefixMemoryTest, B21_TenantsDoNotShare) {
  MemoryWorld world({});
  const Tokens text = random_tokens(9, 300);
  ASSERT_EQ(world.request(text, "a"), 0);
  EXPECT_EQ(world.request(text, "b"), 0);
  EXPECT_EQ(world.request(text, ""), 0);
  EXPECT_EQ(world.request(text, "a"), 300);
  world.close();
}

// B23: names of 8 bits collide all the time; token ids are compared, so a hit is still right.
TEST(PrefixMemoryTest, B23_CollidingNamesNeverGiveAnothersMemory) {
  const TestFolder folder("b23");
  MemoryWorld world({.directory = folder.path(), .name_bits = 8});
  std::int64_t hits = 0;
  for (std::uint32_t i = 0; i < 1'000; ++i) {
    Tokens text = random_tokens(i % 40, 128 + i % 200);
    if (i % 3 == 0) text = joined(text, random_tokens(1'000 + i, 150));
    hits += world.request(text) > 0 ? 1 : 0;
    if (i % 250 == 249) world.restart();
  }
  EXPECT_GT(hits, 100);
  world.close();
}

// B10: what the new prompt needs is not what goes to make room for it.
TEST(PrefixMemoryTest, B10_TwoConversationsInTurnAlwaysHit) {
  const Tokens a = random_tokens(10, 5 * 128);
  const Tokens b = random_tokens(11, 5 * 128);
  const KvLayout layout = world_layout();
  // Room for both, but not for a third of that size.
  const std::uint64_t entry = 5 * (layout.page_bytes() + 1'200) + 3 * layout.ring_bytes();
  MemoryWorld world({.budget_bytes = 2 * entry + layout.page_bytes()});
  ASSERT_EQ(world.request(a), 0);
  ASSERT_EQ(world.request(b), 0);
  for (int round = 2; round < 6; ++round) {
    EXPECT_EQ(world.request(a), 640) << "round " << round;
    EXPECT_EQ(world.request(b), 640) << "round " << round;
  }
  world.close();
}

TEST(PrefixMemoryTest, WhatIsUsedStaysAndWhatIsOldGoes) {
  const KvLayout layout = world_layout();
  MemoryWorld world({.budget_bytes = 14 * (layout.page_bytes() + 1'500)});
  const Tokens kept = random_tokens(12, 384);
  ASSERT_EQ(world.request(kept), 0);
  for (std::uint32_t i = 0; i < 20; ++i) {
    EXPECT_EQ(world.request(random_tokens(100 + i, 384)), 0);
    EXPECT_EQ(world.request(kept), 384) << i;
  }
  EXPECT_EQ(world.request(random_tokens(100, 384)), 0) << "long gone";
  EXPECT_GT(world.memory().counts().pages_evicted, 30U);
  world.close();
}

TEST(PrefixMemoryTest, MoreThanTheBudgetIsRefusedAndHarmsNobody) {
  const KvLayout layout = world_layout();
  MemoryWorld world({.budget_bytes = 8 * (layout.page_bytes() + 1'200)});
  const Tokens live = random_tokens(13, 256);
  {
    WorldSequence holder(world.memory(), world.pool());
    ASSERT_TRUE(holder.open(live));
    ASSERT_TRUE(holder.compute());
    WorldSequence large(world.memory(), world.pool());
    const Status refused = large.open(random_tokens(14, 8 * 128));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kOverBudget);
    EXPECT_EQ(large.sequence().pages().size(), 0U);
    EXPECT_TRUE(holder.check());
    WorldSequence again(world.memory(), world.pool());
    ASSERT_TRUE(again.open(live));
    EXPECT_EQ(again.hit(), 256);
  }
  world.close();
}

TEST(PrefixMemoryTest, TheBudgetIsExactAndMemoryFollowsIt) {
  constexpr std::size_t kRowBytes = 600;  // pages of about 114 KB, as the release's
  const KvLayout layout = world_layout(kRowBytes);
  const std::uint64_t budget = std::uint64_t{64} << 20;
  MemoryWorld world({.budget_bytes = budget, .row_bytes = kRowBytes});
  world.request(random_tokens(15, 512));
  return_freed_memory();
  const std::uint64_t before = resident_memory_bytes() - world.pool().used_bytes();
  for (std::uint32_t i = 0; i < 200; ++i) {
    world.request(random_tokens(1'000 + i, 300 + i * 7 % 900));
    ASSERT_LE(world.pool().used_bytes(), budget);
  }
  EXPECT_GT(world.pool().used_bytes(), budget - 12 * layout.page_bytes()) << "it should be full";
  const std::uint64_t growth = resident_memory_bytes() - before;
  // A sanitizer keeps memory of its own for every byte.
  if (!test_support::runs_with_sanitizer()) {
    EXPECT_LE(growth, budget + budget / 50 + (std::uint64_t{16} << 20));
  }
  world.close();
}

TEST(PrefixMemoryTest, RingsAreFoundAtTheHighestBoundary) {
  MemoryWorld world({});
  const Tokens text = random_tokens(16, 900);
  ASSERT_EQ(world.request(text), 0);
  {
    WorldSequence same(world.memory(), world.pool());
    ASSERT_TRUE(same.open(text));
    EXPECT_EQ(same.restore_best_rings(), 896);
    EXPECT_EQ(same.lease().find_snapshot(1, 895), 768) << "the last one at or before N - W";
    EXPECT_EQ(same.lease().find_snapshot(1, 767), 0);
    EXPECT_EQ(same.lease().find_snapshot(897, 900), 0);
  }
  world.close();
}

}  // namespace
}  // namespace locket::cache
