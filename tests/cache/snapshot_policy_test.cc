#include "cache/snapshot_policy.h"

#include <gtest/gtest.h>

namespace locket::cache {
namespace {

using Positions = std::set<std::int64_t>;

TEST(SnapshotPolicyTest, BoundariesAreWholePages) {
  EXPECT_EQ(boundary_at(-5), 0);
  EXPECT_EQ(boundary_at(0), 0);
  EXPECT_EQ(boundary_at(127), 0);
  EXPECT_EQ(boundary_at(128), 128);
  EXPECT_EQ(boundary_at(1'000), 896);
}

TEST(SnapshotPolicyTest, KeepsWhatTheNextRequestsBeginWith) {
  EXPECT_EQ(
      stored_boundaries(
          {.prompt_tokens = 1'000, .system_tokens = 300, .total_tokens = 1'300, .window = 128}),
      (Positions{256, 768, 896, 1'280}));
}

TEST(SnapshotPolicyTest, ShortTurnsKeepNothing) {
  EXPECT_EQ(stored_boundaries({.prompt_tokens = 100, .total_tokens = 127, .window = 128}),
            Positions{});
}

TEST(SnapshotPolicyTest, EverySixtyFourthPageStays) {
  const Positions positions = stored_boundaries(
      {.prompt_tokens = 131'072, .system_tokens = 0, .total_tokens = 131'072, .window = 128});
  for (std::int64_t at = 8'192; at <= 131'072; at += 8'192) EXPECT_TRUE(positions.contains(at));
  EXPECT_EQ(positions.size(), 17U);
  // 200 bytes a token at most: 20 encoder rings of 128 x 528 bytes each.
  EXPECT_LE(static_cast<double>(positions.size() + 2) * 20 * 128 * 528 / 131'072, 200.0);
}

TEST(SnapshotPolicyTest, NothingLiesBeyondTheTurn) {
  EXPECT_EQ(stored_boundaries(
                {.prompt_tokens = 1'000, .system_tokens = 900, .total_tokens = 400, .window = 16}),
            Positions{384});
}

TEST(SnapshotPolicyTest, RunsStopAtBoundaries) {
  const Positions boundaries = {128, 512};
  EXPECT_EQ(next_stop(0, 1'000, boundaries), 128);
  EXPECT_EQ(next_stop(127, 1'000, boundaries), 128);
  EXPECT_EQ(next_stop(128, 1'000, boundaries), 512);
  EXPECT_EQ(next_stop(128, 300, boundaries), 300);
  EXPECT_EQ(next_stop(512, 1'000, boundaries), 1'000);
  EXPECT_EQ(next_stop(5, 10, {}), 10);
}

}  // namespace
}  // namespace locket::cache
