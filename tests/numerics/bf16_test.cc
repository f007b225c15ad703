#include "numerics/bf16.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <gtest/gtest.h>
#include <limits>

namespace locket::numerics {
namespace {

// The definition in double: the nearer of the two neighbours, the even one if both are as near.
// Beyond the largest value the next neighbour is 2^128, which stands for infinity.
std::uint16_t nearest(std::uint32_t bits) {
  const std::uint32_t lower = (bits & 0x7FFFFFFFu) >> 16;
  const auto value_of = [](std::uint32_t half) {
    return half == 0x7F80u ? 0x1p128 : static_cast<double>(std::bit_cast<float>(half << 16));
  };
  const double value = static_cast<double>(std::bit_cast<float>(bits & 0x7FFFFFFFu));
  const double below = value - value_of(lower);
  const double above = value_of(lower + 1) - value;
  const bool up = above < below || (above == below && lower % 2 == 1);
  return static_cast<std::uint16_t>((bits >> 16 & 0x8000u) | (lower + (up ? 1u : 0u)));
}

TEST(Bf16Test, RoundsToTheNearestForEveryUpperHalf) {
  constexpr std::array<std::uint32_t, 8> kLowerHalves = {0,      1,      0x4000, 0x7FFF,
                                                         0x8000, 0x8001, 0xC000, 0xFFFF};
  for (std::uint32_t upper = 0; upper < 0x10000; ++upper) {
    if ((upper & 0x7F80u) == 0x7F80u) continue;  // infinities and NaN
    for (const std::uint32_t lower : kLowerHalves) {
      const std::uint32_t bits = upper << 16 | lower;
      ASSERT_EQ(to_bf16(std::bit_cast<float>(bits)).bits, nearest(bits)) << std::hex << bits;
    }
  }
}

TEST(Bf16Test, KeepsEveryBfloat16Value) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const Bf16 value{static_cast<std::uint16_t>(bits)};
    const float wide = to_float(value);
    if (std::isnan(wide)) continue;
    ASSERT_EQ(to_bf16(wide), value) << std::hex << bits;
    ASSERT_EQ(std::bit_cast<std::uint32_t>(round_to_bf16(wide)), bits << 16);
  }
}

TEST(Bf16Test, KeepsNanNanForEveryPattern) {
  for (std::uint32_t sign : {0u, 0x80000000u}) {
    for (std::uint32_t mantissa = 1; mantissa < 0x800000u; mantissa += mantissa < 256 ? 1 : 9973) {
      const float value = std::bit_cast<float>(sign | 0x7F800000u | mantissa);
      const Bf16 rounded = to_bf16(value);
      ASSERT_TRUE(std::isnan(to_float(rounded))) << std::hex << mantissa;
      ASSERT_EQ(rounded.bits >> 15, sign >> 31);
    }
  }
}

TEST(Bf16Test, KeepsSignsOfZeroAndInfinity) {
  EXPECT_EQ(to_bf16(0.0f).bits, 0x0000);
  EXPECT_EQ(to_bf16(-0.0f).bits, 0x8000);
  EXPECT_EQ(to_bf16(HUGE_VALF).bits, 0x7F80);
  EXPECT_EQ(to_bf16(-HUGE_VALF).bits, 0xFF80);
  EXPECT_EQ(to_bf16(std::numeric_limits<float>::max()).bits, 0x7F80);
  EXPECT_EQ(to_bf16(-std::numeric_limits<float>::denorm_min()).bits, 0x8000);
}

}  // namespace
}  // namespace locket::numerics
