#include "base/dense_allocator.h"

#include <algorithm>
#include <cstdint>
#include <gtest/gtest.h>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/system_memory.h"
#include "tests/support/sanitizer.h"

namespace locket {
namespace {

TEST(DenseAllocatorTest, ContainersHoldWhatTheyHoldElsewhere) {
  DenseVector<std::int32_t> values = {3, 1, 2};
  const DenseVector<std::int32_t> moved = std::move(values);
  EXPECT_TRUE(std::ranges::equal(moved, std::vector{3, 1, 2}));
  DenseMap<std::string, int> map = {{"b", 2}, {"a", 1}};
  map.erase("b");
  EXPECT_EQ(map.begin()->first, "a");
  DenseSet<int> set = {2, 1, 2};
  EXPECT_EQ(set.size(), 2U);
}

TEST(DenseAllocatorTest, AFreedBlockIsUsedAgainByTheNextOfItsSize) {
  DenseAllocator<std::int64_t> allocator;
  std::int64_t* const first = allocator.allocate(7);
  allocator.deallocate(first, 7);
  std::int64_t* const second = allocator.allocate(7);
  EXPECT_EQ(second, first);
  allocator.deallocate(second, 7);
}

// Blocks that stay lie near each other, whatever is taken and freed between them.
TEST(DenseAllocatorTest, WhatIsFreedBetweenBlocksThatStayGoesBackToTheSystem) {
  if (test_support::runs_with_sanitizer()) GTEST_SKIP() << "a sanitizer keeps what is freed";
  constexpr std::size_t kStaying = 10'000;
  std::mt19937 random(5);
  std::vector<DenseVector<char>> staying;
  staying.reserve(kStaying);
  return_freed_memory();
  const std::uint64_t before = resident_memory_bytes();
  {
    std::vector<std::unique_ptr<char[]>> passing;
    for (std::size_t i = 0; i < kStaying; ++i) {
      for (int k = 0; k < 4; ++k) {
        const std::size_t size = 200 + random() % 1800;
        passing.push_back(std::make_unique<char[]>(size));
        std::fill_n(passing.back().get(), size, 'x');
      }
      staying.emplace_back(100, 'y');
    }
  }
  return_freed_memory();
  // 1.1 MB that stay, of 45 MB; in the common heap they would hold most of its pages.
  EXPECT_LT(resident_memory_bytes(), before + 6'000'000);
  EXPECT_TRUE(std::ranges::all_of(staying, [](const auto& block) { return block[99] == 'y'; }));
}

TEST(DenseAllocatorTest, ThreadsTakeAndFreeAtOnce) {
  std::vector<std::jthread> threads;
  for (unsigned seed = 0; seed < 4; ++seed) {
    threads.emplace_back([seed] {
      std::mt19937 random(seed);
      std::vector<DenseVector<unsigned>> held;
      for (int i = 0; i < 20'000; ++i) {
        if (held.size() > 50) held.erase(held.begin() + random() % 50);
        held.emplace_back(1 + random() % 200, seed);
        const auto is_own = [&](unsigned value) { return value == seed; };
        ASSERT_TRUE(std::ranges::all_of(held.back(), is_own));
      }
    });
  }
}

}  // namespace
}  // namespace locket
