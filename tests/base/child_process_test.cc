// This test program started again as its own child.
#include "base/child_process.h"

#include <cstdio>
#include <gtest/gtest.h>
#include <iostream>

namespace locket {
namespace {

// What the child does; of no use by itself.
TEST(ChildTask, DISABLED_PrintsAndWaits) {
  std::printf("first line\nsecond line\n");
  std::fflush(stdout);
  std::string rest;
  while (std::getline(std::cin, rest)) {
  }
  std::printf("the input has ended\n");
}

Result<ChildProcess> start_task() {
  return ChildProcess::start({"--gtest_filter=ChildTask.DISABLED_PrintsAndWaits",
                              "--gtest_also_run_disabled_tests", "--gtest_color=no"});
}

// Lines up to `wanted`; fails the running test if the output ends before.
void read_up_to(ChildProcess& child, const std::string& wanted) {
  while (true) {
    const Result<std::string> line = child.read_line();
    ASSERT_TRUE(line.has_value()) << line.error().message;
    if (*line == wanted) return;
  }
}

TEST(ChildProcessTest, ReadsLinesAndKills) {
  auto child = start_task();
  ASSERT_TRUE(child.has_value()) << child.error().message;
  read_up_to(*child, "first line");
  EXPECT_EQ(child->read_line().value(), "second line");
  EXPECT_TRUE(child->kill());
}

TEST(ChildProcessTest, SaysThatTheOutputHasEnded) {
  auto child = ChildProcess::start({"--gtest_filter=ChildTask.None"});
  ASSERT_TRUE(child.has_value()) << child.error().message;
  Result<std::string> line = child->read_line();
  while (line) line = child->read_line();
  EXPECT_EQ(line.error().code, ErrorCode::kIo);
}

// Would wait for ever if the child went on.
TEST(ChildProcessTest, TheChildGoesWithItsObject) {
  auto child = start_task();
  ASSERT_TRUE(child.has_value()) << child.error().message;
  read_up_to(*child, "first line");
}

TEST(ChildProcessTest, AMovedObjectStandsForTheSameProcess) {
  auto child = start_task();
  ASSERT_TRUE(child.has_value()) << child.error().message;
  ChildProcess moved = std::move(*child);
  read_up_to(moved, "second line");
  EXPECT_TRUE(moved.kill());
}

}  // namespace
}  // namespace locket
