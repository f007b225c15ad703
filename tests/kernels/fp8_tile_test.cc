#include "kernels/fp8_tile.h"

#include <bit>
#include <gtest/gtest.h>
#include <set>

#include "numerics/fp8_e4m3.h"

namespace locket::kernels {
namespace {

bool is_nan(unsigned code) { return (code & 0x7Fu) == 0x7Fu; }

TEST(Fp8TileTest, LookupsGiveTheValueOfEveryCode) {
  for (unsigned code = 0; code < 256; ++code) {
    if (is_nan(code)) continue;
    const std::uint8_t byte = to_fp8_tile(static_cast<std::uint8_t>(code));
    const float value = std::bit_cast<float>(std::uint32_t{fp8_tile_bf16(byte)} << 16);
    const float expected =
        numerics::to_float(numerics::Fp8E4m3{static_cast<std::uint8_t>(code)}) * 1024.0f;
    EXPECT_EQ(std::bit_cast<std::uint32_t>(value), std::bit_cast<std::uint32_t>(expected)) << code;
  }
}

TEST(Fp8TileTest, EveryCodeComesBack) {
  for (unsigned code = 0; code < 256; ++code) {
    if (is_nan(code)) continue;
    const auto original = static_cast<std::uint8_t>(code);
    EXPECT_EQ(from_fp8_tile(to_fp8_tile(original)), original);
  }
}

TEST(Fp8TileTest, ZeroIsTheByteThatFillsPaddedTiles) { EXPECT_EQ(to_fp8_tile(0), 0); }

TEST(Fp8TileTest, EveryElementHasAPlaceOfItsOwn) {
  std::set<std::size_t> places;
  for (std::size_t row = 0; row < 16; ++row) {
    for (std::size_t column = 0; column < 32; ++column) {
      const std::size_t place = fp8_tile_place(row, column);
      EXPECT_LT(place, 512u);
      EXPECT_TRUE(places.insert(place).second) << row << ", " << column;
    }
  }
}

// In every 16 bytes, interleaving the first or the last 8 with others gives a dword a row.
TEST(Fp8TileTest, PairsOfColumnsStandSideBySide) {
  for (std::size_t row = 0; row < 16; ++row) {
    for (std::size_t eight = 0; eight < 32; eight += 8) {
      for (std::size_t k = eight; k < eight + 4; ++k) {
        const std::size_t place = fp8_tile_place(row, k);
        EXPECT_EQ(fp8_tile_place(row, k + 4), place + 1);
        EXPECT_EQ(place % 8, row % 4 * 2);
        EXPECT_EQ(place / 64, eight / 4 + k % 4 / 2);
      }
    }
  }
}

}  // namespace
}  // namespace locket::kernels
