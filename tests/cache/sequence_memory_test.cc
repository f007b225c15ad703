#include "cache/sequence_memory.h"

#include <algorithm>
#include <cstring>
#include <gtest/gtest.h>
#include <utility>

namespace locket::cache {
namespace {

KvLayout small_layout() {
  return {.streams = {{.name = "a", .tokens_per_row = 2, .row_bytes = 4},
                      {.name = "b", .tokens_per_row = 1, .row_bytes = 1}},
          .rings = {{.slots = 4, .row_bytes = 8}}};
}

constexpr std::size_t kPageBytes = 64 * 4 + 128;

TEST(SequenceMemoryTest, TakesPagesAsTheSequenceGrows) {
  const KvLayout layout = small_layout();
  PagePool pool(kPageBytes, 10 * kPageBytes);
  SequenceMemory memory(layout, pool);
  EXPECT_EQ(memory.token_capacity(), 0);
  EXPECT_EQ(memory.byte_count(), 32U);
  ASSERT_TRUE(memory.reserve_tokens(1));
  EXPECT_EQ(memory.token_capacity(), 128);
  ASSERT_TRUE(memory.reserve_tokens(128));
  EXPECT_EQ(memory.pages().size(), 1U);
  const PageId first = memory.pages().front();
  ASSERT_TRUE(memory.reserve_tokens(129));
  EXPECT_EQ(memory.token_capacity(), 256);
  EXPECT_EQ(memory.pages().front(), first);
  EXPECT_EQ(memory.byte_count(), 2 * kPageBytes + 32);
  EXPECT_EQ(pool.used_bytes(), 2 * kPageBytes);
  ASSERT_TRUE(memory.reserve_tokens(5)) << "fewer tokens need nothing";
  EXPECT_EQ(memory.pages().size(), 2U);
}

TEST(SequenceMemoryTest, TakesAllPagesOrNone) {
  const KvLayout layout = small_layout();
  PagePool pool(kPageBytes, 3 * kPageBytes);
  SequenceMemory memory(layout, pool);
  ASSERT_TRUE(memory.reserve_tokens(128));
  const std::vector<PageId> before = memory.pages();
  const Status refused = memory.reserve_tokens(4 * 128);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kOverBudget);
  EXPECT_EQ(memory.pages(), before);
  EXPECT_EQ(pool.used_bytes(), kPageBytes);
  EXPECT_TRUE(memory.reserve_tokens(3 * 128)) << "what fits still fits";
}

TEST(SequenceMemoryTest, GivesItsPagesBack) {
  const KvLayout layout = small_layout();
  PagePool pool(kPageBytes, 2 * kPageBytes);
  {
    SequenceMemory memory(layout, pool);
    ASSERT_TRUE(memory.reserve_tokens(256));
    SequenceMemory other(layout, pool);
    EXPECT_FALSE(other.reserve_tokens(1));
  }
  EXPECT_EQ(pool.used_bytes(), 0U);
  SequenceMemory next(layout, pool);
  EXPECT_TRUE(next.reserve_tokens(256));
}

TEST(SequenceMemoryTest, MovesWithItsPages) {
  const KvLayout layout = small_layout();
  PagePool pool(kPageBytes, 2 * kPageBytes);
  {
    SequenceMemory first(layout, pool);
    ASSERT_TRUE(first.reserve_tokens(256));
    std::memcpy(first.view().row(0, 70).data(), "row!", 4);
    std::memcpy(first.view().ring_slot(0, 6).data(), "slot two", 8);
    SequenceMemory second = std::move(first);
    EXPECT_EQ(pool.used_bytes(), 2 * kPageBytes) << "taken once";
    EXPECT_EQ(second.token_capacity(), 256);
    EXPECT_EQ(std::memcmp(second.view().row(0, 70).data(), "row!", 4), 0);
    EXPECT_EQ(std::memcmp(second.view().ring_slot(0, 2).data(), "slot two", 8), 0);
  }
  EXPECT_EQ(pool.used_bytes(), 0U) << "given back once";
}

TEST(SequenceMemoryTest, ViewsFollowThePagesInOrder) {
  const KvLayout layout = small_layout();
  PagePool pool(kPageBytes, 4 * kPageBytes);
  const PageId a = *pool.acquire();
  const PageId b = *pool.acquire();
  const PageId c = *pool.acquire();
  pool.release(b);
  pool.release(c);
  pool.release(a);
  SequenceMemory memory(layout, pool);
  ASSERT_TRUE(memory.reserve_tokens(3 * 128));
  EXPECT_EQ(memory.pages(), (std::vector<PageId>{a, c, b}));
  const KvView view = memory.view();
  EXPECT_EQ(view.row_capacity(1), 3 * 128);
  EXPECT_EQ(view.row(1, 128).data(), pool.data(c) + 64 * 4);
  EXPECT_EQ(view.row(0, 2 * 64).data(), pool.data(b));
}

TEST(SequenceMemoryTest, RingsBeginEmpty) {
  const KvLayout layout = small_layout();
  PagePool pool(kPageBytes, kPageBytes);
  SequenceMemory memory(layout, pool);
  for (std::int64_t slot = 0; slot < 4; ++slot) {
    for (const std::byte byte : memory.view().ring_slot(0, slot)) {
      EXPECT_EQ(byte, std::byte{0});
    }
  }
}

TEST(SequenceMemoryDeathTest, APoolOfOtherPagesIsRefused) {
  const KvLayout layout = small_layout();
  PagePool pool(kPageBytes + 1, 10 * kPageBytes);
  EXPECT_DEATH(SequenceMemory(layout, pool), "check failed");
}

}  // namespace
}  // namespace locket::cache
