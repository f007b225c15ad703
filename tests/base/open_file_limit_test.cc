// The limit of open files goes up, and never down.
#include "base/open_file_limit.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

namespace locket {
namespace {

rlimit system_limit() {
  rlimit limit = {};
  EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  return limit;
}

TEST(OpenFileLimitTest, IsRaisedToWhatTheSystemAllows) {
  rlimit low = system_limit();
  ASSERT_GT(low.rlim_max, 64U);
  low.rlim_cur = 64;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  const OpenFileLimit limit = raise_open_file_limit();
  EXPECT_EQ(limit.before, 64U);
  EXPECT_EQ(limit.now, low.rlim_max);
  EXPECT_EQ(system_limit().rlim_cur, low.rlim_max);
}

TEST(OpenFileLimitTest, StaysWhereNothingIsLeftToRaise) {
  static_cast<void>(raise_open_file_limit());
  const OpenFileLimit limit = raise_open_file_limit();
  EXPECT_EQ(limit.before, system_limit().rlim_max);
  EXPECT_EQ(limit.now, limit.before);
}

}  // namespace
}  // namespace locket
