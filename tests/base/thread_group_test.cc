#include "base/thread_group.h"

#include <atomic>
#include <barrier>
#include <gtest/gtest.h>
#include <latch>

namespace locket {
namespace {

TEST(ThreadGroupTest, RunsTheFunctionOnAllThreadsAtOnce) {
  std::barrier all(4);  // is passed only if the function runs on four threads at the same time
  std::atomic<int> passed = 0;
  {
    const ThreadGroup group(4, [&] {
      all.arrive_and_wait();
      passed += 1;
    });
  }
  EXPECT_EQ(passed, 4);
}

TEST(ThreadGroupTest, TheDestructorWaitsForTheFunctionToReturn) {
  std::latch gate(1);
  std::atomic<bool> is_done = false;
  {
    const ThreadGroup group(1, [&] {
      gate.wait();
      is_done = true;
    });
    EXPECT_FALSE(is_done);
    gate.count_down();
  }
  EXPECT_TRUE(is_done);
}

}  // namespace
}  // namespace locket
