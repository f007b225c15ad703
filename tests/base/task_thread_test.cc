#include "base/task_thread.h"

#include <atomic>
#include <gtest/gtest.h>
#include <latch>
#include <memory>
#include <vector>

namespace locket {
namespace {

TEST(TaskThreadTest, RunsTasksInTheOrderOfPosting) {
  std::vector<int> order;
  TaskThread thread;
  for (int i = 0; i < 1000; ++i) thread.post([&order, i] { order.push_back(i); });
  thread.drain();
  ASSERT_EQ(order.size(), 1000U);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
  EXPECT_EQ(thread.pending(), 0U);
}

TEST(TaskThreadTest, DrainWaitsForTheRunningTaskAndWhatItHolds) {
  std::latch gate(1);
  std::atomic<int> done = 0;
  auto held = std::make_shared<int>(1);
  const std::weak_ptr<int> watched = held;
  TaskThread thread;
  thread.post([&, held = std::move(held)] {
    gate.wait();
    done += *held;
  });
  thread.post([&] { done += 1; });
  EXPECT_EQ(thread.pending(), 2U);
  EXPECT_EQ(done, 0);
  gate.count_down();
  thread.drain();
  EXPECT_EQ(done, 2);
  EXPECT_TRUE(watched.expired());
}

TEST(TaskThreadTest, WhatIsQueuedIsRunBeforeTheObjectGoes) {
  std::atomic<int> done = 0;
  {
    TaskThread thread;
    for (int i = 0; i < 100; ++i) thread.post([&] { done += 1; });
  }
  EXPECT_EQ(done, 100);
}

}  // namespace
}  // namespace locket
