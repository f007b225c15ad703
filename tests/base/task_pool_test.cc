#include "base/task_pool.h"

#include <atomic>
#include <condition_variable>
#include <gtest/gtest.h>
#include <mutex>
#include <numeric>
#include <set>
#include <vector>

namespace locket {
namespace {

TEST(TaskPoolTest, OneThreadRunsTasksInTheOrderOfPosting) {
  std::vector<int> order;
  TaskPool pool(1);
  for (int i = 0; i < 100; ++i) pool.post([&order, i](std::size_t) { order.push_back(i); });
  pool.drain();
  std::vector<int> expected(100);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(order, expected);
}

TEST(TaskPoolTest, TasksRunSideBySideInThreadsWithNumbersOfTheirOwn) {
  constexpr std::size_t kThreads = 4;
  std::mutex mutex;
  std::condition_variable changed;
  std::set<std::size_t> numbers;
  TaskPool pool(kThreads);
  EXPECT_EQ(pool.thread_count(), kThreads);
  // None of them ends before all have begun.
  for (std::size_t i = 0; i < kThreads; ++i) {
    pool.post([&](std::size_t thread) {
      std::unique_lock lock(mutex);
      numbers.insert(thread);
      changed.notify_all();
      changed.wait(lock, [&] { return numbers.size() == kThreads; });
    });
  }
  pool.drain();
  EXPECT_EQ(numbers, (std::set<std::size_t>{0, 1, 2, 3}));
}

TEST(TaskPoolTest, ATaskMayPostAnotherAndDrainWaitsForIt) {
  std::atomic<int> runs = 0;
  TaskPool pool(2);
  pool.post([&](std::size_t) {
    pool.post([&](std::size_t) { runs += 1; });
    runs += 1;
  });
  pool.drain();
  EXPECT_EQ(runs, 2);
}

TEST(TaskPoolTest, RunAllCallsEveryIndexOnceAndWaits) {
  TaskPool pool(3);
  for (const std::size_t count : {0, 1, 2, 3, 100}) {
    std::vector<std::atomic<int>> calls(count);
    pool.run_all(count, [&](std::size_t index) { calls[index] += 1; });
    for (const auto& call : calls) EXPECT_EQ(call, 1);
  }
}

TEST(TaskPoolTest, WhatIsQueuedAtTheEndIsStillRun) {
  std::atomic<int> runs = 0;
  {
    TaskPool pool(3);
    for (int i = 0; i < 500; ++i) pool.post([&](std::size_t) { runs += 1; });
  }
  EXPECT_EQ(runs, 500);
}

}  // namespace
}  // namespace locket
