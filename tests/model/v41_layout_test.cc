#include "model/generations/v41_layout.h"

#include <gtest/gtest.h>

#include "tests/support/tiny_models.h"

namespace locket::model {
namespace {

const V41Config& config_of(const std::string& name) {
  return test_support::tiny_model(name, NumericsMode::kReference).config();
}

// The thin checkpoint has the released row sizes.
TEST(V41LayoutTest, EveryKvSourceHasRowsAndIndexKeys) {
  const V41Memory memory = make_v41_memory(config_of("thin"), NumericsMode::kReference);
  ASSERT_EQ(memory.layout.streams.size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) {
    const cache::RowStream& stream = memory.layout.streams[i];
    EXPECT_EQ(stream.name, i % 2 == 0 ? "rows" : "index keys");
    EXPECT_EQ(stream.row_bytes, i % 2 == 0 ? 288U : 68U);
    EXPECT_EQ(stream.layer, i < 2 ? 1 : 3);
    EXPECT_EQ(stream.tokens_per_row, i < 2 ? 2 : 1);
  }
  EXPECT_EQ(memory.layout.bytes_per_token(), 1.5 * 356.0);
  ASSERT_EQ(memory.layout.rings.size(), 7U);
  EXPECT_EQ(memory.layout.ring_bytes(), 7U * 128 * 528);
  EXPECT_EQ(memory.layout.snapshot_bytes(), 3U * 128 * 528) << "the encoder's";
}

TEST(V41LayoutTest, LayersReadTheMemoryOfTheirSource) {
  const V41Memory memory = make_v41_memory(config_of("odd"), NumericsMode::kReference);
  const std::pair<int, int> expected[] = {{-1, -1}, {0, 1}, {0, 1}, {0, 1}, {2, 3}, {2, 3}, {2, 3}};
  ASSERT_EQ(memory.layers.size(), 7U);
  for (std::size_t layer = 0; layer < 7; ++layer) {
    EXPECT_EQ(memory.layers[layer].rows, expected[layer].first);
    EXPECT_EQ(memory.layers[layer].index_keys, expected[layer].second);
    EXPECT_EQ(memory.layers[layer].ring, static_cast<int>(layer));
    EXPECT_EQ(memory.layout.rings[layer].layer, static_cast<std::int64_t>(layer));
    EXPECT_EQ(memory.layout.rings[layer].slots, 7);
  }
}

TEST(V41LayoutTest, PlainModeKeepsFloats) {
  const V41Memory wide = make_v41_memory(config_of("odd"), NumericsMode::kWide);
  const V41Memory plain = make_v41_memory(config_of("odd"), NumericsMode::kPlain);
  EXPECT_EQ(wide.formats.rows, kernels::RowFormat::kFp4Main);
  EXPECT_EQ(wide.formats.index_keys, kernels::RowFormat::kFp4Index);
  EXPECT_EQ(wide.formats.window, kernels::RowFormat::kFp8);
  EXPECT_EQ(plain.formats.rows, kernels::RowFormat::kF32);
  EXPECT_EQ(plain.layout.streams[0].row_bytes, 96U * 4);
  EXPECT_EQ(plain.layout.streams[1].row_bytes, 32U * 4);
  EXPECT_EQ(plain.layout.rings[0].row_bytes, 96U * 4);
}

}  // namespace
}  // namespace locket::model
