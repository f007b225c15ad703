#include "cache/replay_plan.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <vector>

namespace locket::cache {
namespace {

// The release: window 128, 20 encoder layers, two tokens a row at most.
constexpr ReplayGeometry kRelease = {.window = 128, .encoder_layers = 20, .group = 2};
constexpr std::int64_t kReach = 20 * 127;

ReplayPlan plan(std::int64_t prompt, std::int64_t stored, std::int64_t decoder,
                const std::vector<std::int64_t>& snapshots = {},
                const ReplayGeometry& geometry = kRelease) {
  return make_replay_plan({.prompt_tokens = prompt,
                           .stored_tokens = stored,
                           .decoder_tokens = decoder,
                           .snapshots = snapshots},
                          geometry);
}

struct Row {
  std::int64_t prompt;
  std::int64_t stored;
  std::int64_t decoder;
  std::vector<std::int64_t> snapshots;
  std::int64_t start;
  bool uses_snapshot;
  std::int64_t exact_from;
  std::int64_t write_from;
  std::int64_t decoder_start;
};

TEST(ReplayPlanTest, FollowsTheTable) {
  const std::vector<Row> rows = {
      // Nothing is stored: everything is computed.
      {1, 0, 1, {}, 0, false, 0, 0, 0},
      {127, 0, 127, {}, 0, false, 0, 0, 0},
      {128, 0, 128, {}, 0, false, 0, 0, 0},
      {129, 0, 128, {}, 0, false, 0, 0, 1},
      {10'000, 0, 128, {}, 0, false, 0, 0, 9'872},
      // Everything is stored, H = N: the decoder's segment is what somebody needs exactly.
      {10'000, 10'000, 128, {}, 9'872 - kReach, false, 9'872, 10'000, 9'872},
      {10'000, 10'000, 128, {9'856, 9'984}, 9'856, true, 9'872, 10'000, 9'872},
      {10'000, 10'000, 128, {9'984}, 9'872 - kReach, false, 9'872, 10'000, 9'872},
      {10'000, 10'000, 128, {128}, 9'872 - kReach, false, 9'872, 10'000, 9'872},
      {128, 128, 128, {128}, 0, false, 0, 128, 0},
      {256, 256, 128, {128, 256}, 128, true, 128, 256, 128},
      // N - H < window: the segment begins below H.
      {10'000, 9'900, 128, {9'856}, 9'856, true, 9'872, 9'900, 9'872},
      {10'000, 9'873, 128, {9'856}, 9'856, true, 9'872, 9'872, 9'872},
      {10'000, 9'872, 128, {9'856}, 9'856, true, 9'872, 9'872, 9'872},
      // H below the segment: rows are needed from H on.
      {10'000, 9'871, 128, {9'856}, 9'856, true, 9'870, 9'870, 9'872},
      {10'000, 5'000, 128, {4'096, 4'992, 5'120}, 4'992, true, 5'000, 5'000, 9'872},
      {10'000, 5'001, 128, {}, 5'000 - kReach, false, 5'000, 5'000, 9'872},
      {10'000, 2'540, 128, {}, 0, false, 2'540, 2'540, 9'872},
      {10'000, 2'542, 128, {}, 2, false, 2'542, 2'542, 9'872},
      // The run begins with a whole group, also where N - R is odd.
      {10'001, 10'000, 128, {}, 9'872 - kReach, false, 9'873, 10'000, 9'873},
      // A snapshot at T itself.
      {10'000, 9'984, 16, {9'984}, 9'984, true, 9'984, 9'984, 9'984},
      // Exact and full replay.
      {10'000, 10'000, kReach + 1, {7'424}, 7'424, true, 7'459, 10'000, 7'459},
      {10'000, 10'000, 10'000, {128, 9'984}, 0, false, 0, 10'000, 0},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(testing::Message()
                 << "N " << row.prompt << " H " << row.stored << " R " << row.decoder);
    const ReplayPlan actual = plan(row.prompt, row.stored, row.decoder, row.snapshots);
    EXPECT_EQ(actual.start, row.start);
    EXPECT_EQ(actual.uses_snapshot, row.uses_snapshot);
    EXPECT_EQ(actual.exact_from, row.exact_from);
    EXPECT_EQ(actual.write_from, row.write_from);
    EXPECT_EQ(actual.decoder_start, row.decoder_start);
    EXPECT_EQ(actual.window_start(), row.uses_snapshot ? 0 : row.start);
    EXPECT_EQ(actual.replayed_tokens(), row.write_from - row.start);
  }
}

// Which positions are exact when the encoder begins at `start`, layer by layer: a position of a
// layer's output is exact if the layer's input is, and the window's other rows are.
bool is_exact(const ReplayPlan& plan, std::int64_t position, const ReplayGeometry& geometry) {
  if (plan.uses_snapshot || plan.start == 0) return position >= plan.start;
  std::int64_t exact_input = plan.start;
  for (std::int64_t layer = 0; layer < geometry.encoder_layers; ++layer) {
    exact_input += geometry.window - 1;  // its window reaches this far back
  }
  return position >= exact_input;
}

void check_invariants(std::int64_t prompt, std::int64_t stored, std::int64_t decoder,
                      const std::vector<std::int64_t>& snapshots, const ReplayGeometry& geometry) {
  const ReplayPlan actual = plan(prompt, stored, decoder, snapshots, geometry);
  ASSERT_EQ(actual.write_from, stored / geometry.group * geometry.group);
  ASSERT_EQ(actual.decoder_start, prompt - decoder);
  ASSERT_EQ(actual.exact_from, std::min(actual.write_from, actual.decoder_start));
  ASSERT_GE(actual.start, 0);
  ASSERT_LE(actual.start, actual.exact_from);
  ASSERT_EQ(actual.start % geometry.group, 0);
  ASSERT_TRUE(is_exact(actual, actual.exact_from, geometry));
  if (actual.uses_snapshot) {
    ASSERT_TRUE(std::ranges::find(snapshots, actual.start) != snapshots.end());
  }
  // Nothing is computed without need: no usable snapshot is later, and a start without one lies
  // at most a group before the last possible one.
  for (const std::int64_t snapshot : snapshots) {
    ASSERT_TRUE(snapshot > actual.exact_from || snapshot <= actual.start);
  }
  if (!actual.uses_snapshot && actual.start > 0) {
    ASSERT_FALSE(is_exact({.start = actual.start + geometry.group}, actual.exact_from, geometry));
  }
}

const std::vector<std::vector<std::int64_t>> kSnapshotSets = {
    {}, {128}, {128, 256}, {256, 384}, {128, 256, 384, 512}};

void check_all_stored_lengths(std::int64_t prompt, const ReplayGeometry& geometry) {
  for (std::int64_t stored = 0; stored <= prompt; ++stored) {
    for (const auto& snapshots : kSnapshotSets) {
      check_invariants(prompt, stored, std::min(prompt, geometry.window), snapshots, geometry);
      check_invariants(prompt, stored, prompt, snapshots, geometry);
    }
  }
}

TEST(ReplayPlanTest, HoldsAroundEveryEdge) {
  const std::vector<ReplayGeometry> geometries = {{.window = 16, .encoder_layers = 5, .group = 2},
                                                  {.window = 7, .encoder_layers = 3, .group = 4},
                                                  {.window = 128, .encoder_layers = 2, .group = 2},
                                                  {.window = 1, .encoder_layers = 3, .group = 1}};
  for (const ReplayGeometry& geometry : geometries) {
    for (std::int64_t prompt = 1; prompt <= 400; prompt += prompt < 140 || prompt > 250 ? 1 : 9) {
      check_all_stored_lengths(prompt, geometry);
    }
  }
}

TEST(ReplayPlanDeathTest, ImpossibleLengthsAreRefused) {
  EXPECT_DEATH(plan(0, 0, 0), "check failed");
  EXPECT_DEATH(plan(10, -1, 1), "check failed");
  EXPECT_DEATH(plan(10, 0, 11), "check failed");
}

}  // namespace
}  // namespace locket::cache
