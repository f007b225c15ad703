#include "base/worker_pool.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <gtest/gtest.h>
#include <mutex>
#include <numeric>
#include <thread>
#include <utility>
#include <vector>

namespace locket {
namespace {

// Of a thread, where there are enough grains.
constexpr std::size_t kMostPieces = 4;

using Ranges = std::vector<std::pair<std::size_t, std::size_t>>;

// The ranges of one parallel_for(), sorted.
Ranges ranges_of(WorkerPool& pool, std::size_t count, std::size_t grain) {
  std::mutex mutex;
  Ranges ranges;
  pool.parallel_for(count, grain, [&](std::size_t begin, std::size_t end) {
    const std::unique_lock lock(mutex);
    ranges.emplace_back(begin, end);
  });
  std::ranges::sort(ranges);
  return ranges;
}

// Ranges follow one another from 0 to count, none is empty, all start at multiples of the grain.
void expect_cover(const Ranges& ranges, std::size_t count, std::size_t grain) {
  std::size_t end = 0;
  for (const auto& range : ranges) {
    EXPECT_EQ(range.first, end);
    EXPECT_LT(range.first, range.second);
    EXPECT_EQ(range.first % grain, 0U);
    end = range.second;
  }
  EXPECT_EQ(end, count);
}

TEST(WorkerPoolTest, CoversEveryIndexOnceWithTheSameSplitEachTime) {
  for (const std::size_t threads : {1, 2, 3, 4, 7}) {
    WorkerPool pool(threads);
    EXPECT_EQ(pool.thread_count(), threads);
    for (const std::size_t count : {0, 1, 2, 5, 6, 7, 8, 31, 32, 33, 1000}) {
      for (const std::size_t grain : {1, 2, 3, 8, 32, 2000}) {
        SCOPED_TRACE(testing::Message() << threads << " threads, " << count << " by " << grain);
        const Ranges ranges = ranges_of(pool, count, grain);
        expect_cover(ranges, count, grain);
        EXPECT_LE(ranges.size(), threads == 1 ? 1 : 2 * kMostPieces * threads);
        EXPECT_EQ(ranges_of(pool, count, grain), ranges);
      }
    }
  }
}

TEST(WorkerPoolTest, TheSplitIsThatOfAnotherPoolOfTheSameSize) {
  WorkerPool first(3);
  WorkerPool second(3);
  for (std::size_t count = 0; count < 50; ++count) {
    EXPECT_EQ(ranges_of(first, count, 4), ranges_of(second, count, 4)) << count;
  }
}

TEST(WorkerPoolTest, AWholeGrainIsNeverSplit) {
  WorkerPool pool(4);
  EXPECT_EQ(ranges_of(pool, 8, 8), (Ranges{{0, 8}}));
  EXPECT_EQ(ranges_of(pool, 9, 8).size(), 2U);
}

TEST(WorkerPoolTest, PiecesAreEvenAndThereAreSomeForEachThread) {
  WorkerPool pool(4);
  for (std::size_t grains = 4; grains < 400; ++grains) {
    const Ranges ranges = ranges_of(pool, grains * 8, 8);
    const std::size_t least = std::min(grains, 4 * kMostPieces);
    EXPECT_GE(ranges.size(), least);
    EXPECT_LE(ranges.size(), 2 * least + 4);
    for (const auto& range : ranges) {
      EXPECT_LE((range.second - range.first) / 8, std::max<std::size_t>(1, grains / least));
    }
  }
}

// One thread does not come out of its first piece before all others are done.
TEST(WorkerPoolTest, WhatASlowThreadHasNotBegunIsDoneByOthers) {
  for (const std::size_t threads : {2, 3, 5}) {
    WorkerPool pool(threads);
    for (const std::size_t slow : {std::size_t{0}, threads * kMostPieces / 2}) {
      std::atomic<std::size_t> left = threads * kMostPieces;
      pool.parallel_for(left, 1, [&](std::size_t begin, std::size_t end) {
        ASSERT_EQ(end, begin + 1);
        while (begin == slow && left > 1) std::this_thread::yield();
        --left;
      });
      EXPECT_EQ(left, 0U);
    }
  }
}

TEST(WorkerPoolTest, WritesOfOneRoundAreSeenInTheNext) {
  WorkerPool pool(4);
  std::vector<std::size_t> values(997, 0);
  for (std::size_t round = 1; round <= 500; ++round) {
    pool.parallel_for(values.size(), 1 + round % 5, [&](std::size_t begin, std::size_t end) {
      for (std::size_t index = begin; index < end; ++index) values[index] += index;
    });
  }
  std::vector<std::size_t> wanted(values.size());
  std::iota(wanted.begin(), wanted.end(), std::size_t{0});
  std::ranges::transform(wanted, wanted.begin(), [](std::size_t index) { return index * 500; });
  EXPECT_EQ(values, wanted);
}

// Long enough for threads without work to fall asleep.
void keep_busy() {
  std::atomic<std::size_t> steps = 0;
  while (steps < 100'000) ++steps;
}

TEST(WorkerPoolTest, ThreadsThatFellAsleepWorkAgain) {
  for (const std::size_t threads : {2, 3, 5}) {
    WorkerPool pool(threads);
    std::vector<std::size_t> calls(threads, 0);
    for (std::size_t round = 0; round < 20; ++round) {
      if (round % 2 == 1) keep_busy();
      pool.parallel_for(threads, 1, [&](std::size_t begin, std::size_t end) {
        // The caller's part is the longest in some rounds, the others' in the rest.
        if ((round % 4 < 2) == (begin == 0)) keep_busy();
        for (std::size_t index = begin; index < end; ++index) ++calls[index];
      });
    }
    EXPECT_EQ(calls, std::vector<std::size_t>(threads, 20));
  }
}

// Small rounds take few threads, the next round may take all.
TEST(WorkerPoolTest, RoundsOfAnyNumberOfThreadsFollowEachOther) {
  WorkerPool pool(5);
  std::vector<std::size_t> calls(5, 0);
  for (std::size_t round = 0; round < 3000; ++round) {
    pool.parallel_for(1 + round * 7 % 5, 1, [&](std::size_t begin, std::size_t end) {
      for (std::size_t index = begin; index < end; ++index) ++calls[index];
    });
  }
  EXPECT_EQ(calls, (std::vector<std::size_t>{3000, 2400, 1800, 1200, 600}));
}

TEST(WorkerPoolTest, WorkIsCutIntoAsManyPartsAsItIsWorth) {
  const WorkerPool pool(4);
  EXPECT_EQ(pool.pieces_for(0), 1U);
  EXPECT_EQ(pool.pieces_for(std::uint64_t{1} << 60), 4 * kMostPieces);
  EXPECT_EQ(WorkerPool(1).pieces_for(std::uint64_t{1} << 60), 1U);
  const std::size_t grain = WorkerPool::grain_for(1);
  EXPECT_EQ(pool.parts_for(0), 1U);
  EXPECT_EQ(pool.parts_for(2 * grain - 1), 1U);
  EXPECT_EQ(pool.parts_for(2 * grain), 2U);
  EXPECT_EQ(pool.parts_for(std::uint64_t{1} << 60), 4U);
  EXPECT_EQ(WorkerPool(1).parts_for(std::uint64_t{1} << 60), 1U);
}

TEST(WorkerPoolDeathTest, ASecondCallerIsRefused) {
  const auto call_twice = [] {
    WorkerPool pool(2);
    const auto nothing = [](std::size_t, std::size_t) {};
    pool.parallel_for(2, 1, [&](std::size_t, std::size_t) { pool.parallel_for(2, 1, nothing); });
  };
  EXPECT_DEATH(call_twice(), "has_caller");
}

TEST(WorkerPoolTest, APoolThatNeverWorkedEndsCleanly) {
  for (std::size_t repeat = 0; repeat < 50; ++repeat) {
    const WorkerPool pool(1 + repeat % 4);
    EXPECT_EQ(pool.thread_count(), 1 + repeat % 4);
  }
}

}  // namespace
}  // namespace locket
