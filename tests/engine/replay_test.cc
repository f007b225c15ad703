#include "engine/replay.h"

#include <gtest/gtest.h>
#include <set>

namespace locket::engine {
namespace {

TEST(ReplayTest, EveryModeIsFoundByItsName) {
  std::set<std::string_view> names;
  for (int i = 0; i < static_cast<int>(ReplayMode::kCount); ++i) {
    const auto mode = static_cast<ReplayMode>(i);
    EXPECT_TRUE(names.insert(replay_mode_name(mode)).second);
    EXPECT_EQ(find_replay_mode(replay_mode_name(mode)), mode);
  }
  EXPECT_EQ(find_replay_mode("partial"), std::nullopt);
}

// The released geometry: a window of 128, 20 decoder layers, which see 2,541 positions.
TEST(ReplayTest, HasTheReleasedLengths) {
  const DecoderGeometry geometry = {.window = 128, .decoder_layers = 20};
  for (const std::int64_t prompt : {1, 127, 128, 129, 2'540, 2'541, 2'542, 1'000'000}) {
    EXPECT_EQ(replay_length(ReplayMode::kBounded, prompt, geometry), prompt < 128 ? prompt : 128);
    EXPECT_EQ(replay_length(ReplayMode::kExact, prompt, geometry), prompt < 2'541 ? prompt : 2'541);
    EXPECT_EQ(replay_length(ReplayMode::kFull, prompt, geometry), prompt);
  }
}

// Windows in every layer, and no layer above the boundary.
TEST(ReplayTest, WithoutADecoderTheLastTokenIsEnough) {
  const DecoderGeometry geometry = {.window = 128, .decoder_layers = 0};
  EXPECT_EQ(replay_length(ReplayMode::kBounded, 1'000, geometry), 1);
  EXPECT_EQ(replay_length(ReplayMode::kExact, 1'000, geometry), 1);
  EXPECT_EQ(replay_length(ReplayMode::kFull, 1'000, geometry), 1'000);
}

TEST(ReplayTest, AWindowOfOneSeesOnePosition) {
  const DecoderGeometry geometry = {.window = 1, .decoder_layers = 20};
  EXPECT_EQ(replay_length(ReplayMode::kBounded, 50, geometry), 1);
  EXPECT_EQ(replay_length(ReplayMode::kExact, 50, geometry), 1);
}

}  // namespace
}  // namespace locket::engine
