#include "cache/page_pool.h"

#include <algorithm>
#include <cstring>
#include <gtest/gtest.h>
#include <set>
#include <span>
#include <thread>
#include <vector>

#include "base/system_memory.h"

namespace locket::cache {
namespace {

TEST(PagePoolTest, HandsOutPagesUpToTheBudget) {
  PagePool pool(100, 350);
  EXPECT_EQ(pool.used_bytes(), 0U);
  std::set<const std::byte*> addresses;
  for (int i = 0; i < 3; ++i) {
    const Result<PageId> page = pool.acquire();
    ASSERT_TRUE(page);
    EXPECT_TRUE(addresses.insert(pool.data(*page)).second);
  }
  EXPECT_EQ(pool.used_bytes(), 300U);
  EXPECT_EQ(pool.page_bytes(), 100U);
  EXPECT_EQ(pool.budget_bytes(), 350U);
}

TEST(PagePoolTest, RefusesWithTheNumbers) {
  PagePool pool(113'920, 300'000);
  ASSERT_TRUE(pool.acquire());
  ASSERT_TRUE(pool.acquire());
  const Result<PageId> refused = pool.acquire();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kOverBudget);
  EXPECT_NE(refused.error().message.find("2 pages of 113920 bytes"), std::string::npos)
      << refused.error().message;
  EXPECT_NE(refused.error().message.find("300000 bytes"), std::string::npos)
      << refused.error().message;
  EXPECT_EQ(pool.used_bytes(), 2U * 113'920);
}

TEST(PagePoolTest, FreePagesGiveTheirMemoryBackAndPagesInUseKeepIt) {
  constexpr std::size_t kPageBytes = 7000;  // not the system's
  PagePool pool(kPageBytes, 4000 * kPageBytes);
  std::vector<PageId> pages;
  for (int i = 0; i < 2000; ++i) {
    pages.push_back(pool.acquire().value());
    std::memset(pool.data(pages.back()), 1 + i % 100, kPageBytes);
  }
  // The first hundred stay, and every tenth of the others.
  std::vector<PageId> kept;
  for (std::size_t i = 0; i < pages.size(); ++i) {
    if (i < 100 || i % 10 == 0) {
      kept.push_back(pages[i]);
    } else {
      pool.release(pages[i]);
    }
  }
  const std::uint64_t before = resident_memory_bytes();
  pool.give_back_free_memory();
  EXPECT_LT(resident_memory_bytes() + 1400 * kPageBytes, before);
  for (const PageId page : kept) {
    const auto value = static_cast<std::byte>(1 + page % 100);
    const std::span bytes(pool.data(page), kPageBytes);
    EXPECT_TRUE(std::ranges::all_of(bytes, [&](std::byte byte) { return byte == value; }));
  }
  EXPECT_EQ(pool.used_bytes(), kept.size() * kPageBytes);
  for (int i = 0; i < 1500; ++i) {
    std::memset(pool.data(pool.acquire().value()), 0, kPageBytes);
  }
}

TEST(PagePoolTest, ABudgetBelowOnePageIsRefusedAtOnce) {
  PagePool pool(100, 99);
  EXPECT_FALSE(pool.acquire());
  PagePool exact(100, 100);
  EXPECT_TRUE(exact.acquire());
}

TEST(PagePoolTest, ReleasedPagesAreUsedAgainTheLastFirst) {
  PagePool pool(64, 3 * 64);
  const PageId first = *pool.acquire();
  const PageId second = *pool.acquire();
  const PageId third = *pool.acquire();
  pool.release(second);
  pool.release(first);
  EXPECT_EQ(pool.used_bytes(), 64U);
  EXPECT_EQ(*pool.acquire(), first);
  EXPECT_EQ(*pool.acquire(), second);
  EXPECT_FALSE(pool.acquire());
  pool.release(third);
  EXPECT_EQ(*pool.acquire(), third);
}

TEST(PagePoolTest, PagesKeepTheirPlaceWhileThePoolGrows) {
  PagePool pool(8, 8'000);
  const PageId first = *pool.acquire();
  std::byte* const data = pool.data(first);
  std::memcpy(data, "locket!", 8);
  for (int i = 0; i < 999; ++i) ASSERT_TRUE(pool.acquire());
  EXPECT_EQ(pool.data(first), data);
  EXPECT_STREQ(reinterpret_cast<const char*>(data), "locket!");
}

TEST(PagePoolTest, AHugeBudgetCostsNothingUntilItIsUsed) {
  PagePool pool(std::size_t{1} << 20, std::uint64_t{1} << 60);
  EXPECT_TRUE(pool.acquire());
  EXPECT_EQ(pool.used_bytes(), std::uint64_t{1} << 20);
}

TEST(PagePoolTest, ManyThreadsNeverShareAPage) {
  constexpr std::size_t kThreads = 4;
  constexpr std::uint64_t kPagesEach = 200;
  PagePool pool(16, kThreads * kPagesEach * 16);
  std::vector<std::vector<PageId>> taken(kThreads);
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < kThreads; ++i) {
      threads.emplace_back([&pool, &mine = taken[i]] {
        for (std::uint64_t n = 0; n < kPagesEach; ++n) {
          const Result<PageId> page = pool.acquire();
          if (page) mine.push_back(*page);
          if (n % 3 == 2) {
            pool.release(mine.back());
            mine.pop_back();
          }
        }
      });
    }
  }
  std::set<PageId> all;
  std::size_t count = 0;
  for (const auto& mine : taken) {
    count += mine.size();
    all.insert(mine.begin(), mine.end());
  }
  EXPECT_EQ(count, kThreads * (kPagesEach - kPagesEach / 3));
  EXPECT_EQ(all.size(), count);
  EXPECT_EQ(pool.used_bytes(), count * 16);
}

TEST(PagePoolDeathTest, ForeignPagesAreRefused) {
  PagePool pool(16, 64);
  EXPECT_DEATH(pool.release(0), "check failed");
  EXPECT_DEATH(static_cast<void>(pool.data(-1)), "check failed");
  EXPECT_DEATH(PagePool(0, 64), "check failed");
}

}  // namespace
}  // namespace locket::cache
