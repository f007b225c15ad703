#include "kernels/cpu/fp4_pack.h"

#include <cstring>
#include <gtest/gtest.h>
#include <random>
#include <vector>

#include "tensor/aligned_buffer.h"

namespace locket::kernels::cpu {
namespace {

constexpr std::size_t kRows = 16;

// Tile t, double word d, row r: bytes 16 t + 4 d to + 3 of row r.
std::vector<std::byte> in_tiles(std::span<const std::byte> values) {
  const std::size_t row_bytes = values.size() / kRows;
  std::vector<std::byte> tiles(values.size());
  for (std::size_t row = 0; row < kRows; ++row) {
    for (std::size_t at = 0; at < row_bytes; ++at) {
      const std::size_t tile = at / 16;
      const std::size_t word = at % 16 / 4;
      tiles[(tile * 4 + word) * 64 + row * 4 + at % 4] = values[row * row_bytes + at];
    }
  }
  return tiles;
}

TEST(Fp4PackTest, EveryCodeComesToItsPlaceForAnyWidthAndAnyAddressOfTheRows) {
  std::mt19937 random(1);
  for (std::size_t row_bytes = 16; row_bytes <= 16 * 40; row_bytes += 16) {
    for (const std::size_t shift : {0, 1, 7, 16}) {
      std::vector<std::byte> bytes(shift + kRows * row_bytes);
      for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
      const auto values = std::span<const std::byte>(bytes).subspan(shift);
      // One tile more, which stays as it is.
      tensor::AlignedBuffer packed(values.size() + 256);
      std::memset(packed.data(), 0x5A, packed.size());
      pack_fp4_group(values, packed.data());
      const std::vector<std::byte> expected = in_tiles(values);
      ASSERT_EQ(std::memcmp(packed.data(), expected.data(), expected.size()), 0)
          << row_bytes << " bytes a row, " << shift << " bytes into the buffer";
      for (std::size_t i = values.size(); i < packed.size(); ++i) {
        ASSERT_EQ(packed.data()[i], std::byte{0x5A});
      }
    }
  }
}

}  // namespace
}  // namespace locket::kernels::cpu
