#include "base/group_limits.h"

#include <filesystem>
#include <gtest/gtest.h>
#include <string>

#include "tests/support/checkpoint_files.h"

namespace locket {
namespace {

namespace fs = std::filesystem;
using test_support::TempFolder;

// A root with the files of control groups.
class GroupLimitsTest : public ::testing::Test {
 protected:
  void write(const std::string& path, const std::string& content) const {
    fs::create_directories((root_ / path).parent_path());
    root_.write(path, content);
  }
  GroupLimits limits() const { return read_group_limits(root_.path()); }

  TempFolder root_;
};

TEST_F(GroupLimitsTest, WithoutGroupsThereAreNone) {
  EXPECT_EQ(limits().quota_threads, 0);
  EXPECT_EQ(limits().memory_bytes, 0U);
  EXPECT_FALSE(limits().memory_left);
}

// A group deep in the tree, one above it that is tighter, and files that can be dropped any time.
TEST_F(GroupLimitsTest, KnowsWhatIsLeftInTheTightestGroup) {
  write("proc/self/cgroup", "0::/outer/inner\n");
  write("sys/fs/cgroup/outer/inner/memory.max", "8000000000\n");
  write("sys/fs/cgroup/outer/inner/memory.current", "1000000000\n");
  EXPECT_EQ(limits().memory_left, 7'000'000'000U);
  write("sys/fs/cgroup/outer/memory.max", "9000000000\n");
  write("sys/fs/cgroup/outer/memory.current", "6000000000\n");
  EXPECT_EQ(limits().memory_left, 3'000'000'000U);
  write("sys/fs/cgroup/outer/memory.stat", "file 5\ninactive_file 1500000000\nslab 9\n");
  EXPECT_EQ(limits().memory_left, 4'500'000'000U);
  write("sys/fs/cgroup/outer/memory.current", "9500000000\n");
  write("sys/fs/cgroup/outer/memory.stat", "inactive_file 0\n");
  EXPECT_EQ(limits().memory_left, 0U);
}

TEST_F(GroupLimitsTest, KnowsWhatIsLeftInTheFirstVersion) {
  write("proc/self/cgroup", "4:memory:/job\n");
  write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "5000000000\n");
  write("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "4000000000\n");
  write("sys/fs/cgroup/memory/job/memory.stat", "total_inactive_file 1000000000\n");
  EXPECT_EQ(limits().memory_left, 2'000'000'000U);
}

TEST_F(GroupLimitsTest, TakesTheLeastOfAGroupAndThoseAboveIt) {
  write("proc/self/cgroup", "0::/outer/inner\n");
  write("sys/fs/cgroup/outer/inner/cpu.max", "max 100000\n");
  write("sys/fs/cgroup/outer/cpu.max", "250000 100000\n");
  write("sys/fs/cgroup/outer/inner/memory.max", "8000000000\n");
  write("sys/fs/cgroup/outer/memory.max", "max\n");
  EXPECT_EQ(limits().quota_threads, 2.5);
  EXPECT_EQ(limits().memory_bytes, 8'000'000'000U);
  write("sys/fs/cgroup/outer/inner/cpu.max", "100000 100000\n");
  write("sys/fs/cgroup/memory.max", "7000000000\n");
  EXPECT_EQ(limits().quota_threads, 1.0);
  EXPECT_EQ(limits().memory_bytes, 7'000'000'000U);
}

TEST_F(GroupLimitsTest, KnowsTheFirstVersion) {
  write("proc/self/cgroup", "4:memory:/job/a\n1:cpu,cpuacct:/job\n0::/\n");
  write("sys/fs/cgroup/memory/job/a/memory.limit_in_bytes", "9223372036854771712\n");
  write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "5000000000\n");
  write("sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "50000\n");
  write("sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(limits().quota_threads, 0.5);
  EXPECT_EQ(limits().memory_bytes, 5'000'000'000U);
  write("sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(limits().quota_threads, 0);
}

TEST_F(GroupLimitsTest, ReadsTheTopWhereThePathIsTheHosts) {
  write("proc/self/cgroup", "0::/../../docker/abc\n");
  write("sys/fs/cgroup/cpu.max", "300000 100000\n");
  write("sys/fs/cgroup/memory.max", "1000000000\n");
  EXPECT_EQ(limits().quota_threads, 3.0);
  EXPECT_EQ(limits().memory_bytes, 1'000'000'000U);
}

TEST_F(GroupLimitsTest, NonsenseIsNoLimit) {
  write("proc/self/cgroup", "nonsense\n0::\n:::::\n");
  write("sys/fs/cgroup/cpu.max", "a b\n");
  write("sys/fs/cgroup/memory.max", "\n");
  EXPECT_EQ(limits().quota_threads, 0);
  EXPECT_EQ(limits().memory_bytes, 0U);
}

}  // namespace
}  // namespace locket
