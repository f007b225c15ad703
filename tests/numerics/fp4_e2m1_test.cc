#include "numerics/fp4_e2m1.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <gtest/gtest.h>
#include <limits>

namespace locket::numerics {
namespace {

constexpr std::array<double, 8> kMagnitudes = {0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0};

std::uint32_t nearest_code(double value) {
  const double magnitude = std::min(value, 100.0);  // so that double tells the distances apart
  std::uint32_t best = 0;
  for (std::uint32_t code = 1; code < 8; ++code) {
    const double distance = std::fabs(kMagnitudes[code] - magnitude);
    const double best_distance = std::fabs(kMagnitudes[best] - magnitude);
    if (distance < best_distance || (distance == best_distance && code % 2 == 0)) best = code;
  }
  return best;
}

Fp4E2m1 code_of(std::uint32_t code) { return {static_cast<std::uint8_t>(code)}; }

TEST(Fp4E2m1Test, HasTheDefinedValueForEveryCodeAndGivesItBack) {
  for (std::uint32_t code = 0; code < 16; ++code) {
    const float value = to_float(code_of(code));
    EXPECT_EQ(std::fabs(static_cast<double>(value)), kMagnitudes[code % 8]) << code;
    EXPECT_EQ(std::signbit(value), code >= 8) << code;
    EXPECT_EQ(to_fp4_e2m1(value), code_of(code)) << code;
  }
}

TEST(Fp4E2m1Test, RoundsTiesToTheEvenCodeAndNeighboursToTheNearer) {
  for (std::uint32_t code = 0; code < 7; ++code) {
    const float low = to_float(code_of(code));
    const float high = to_float(code_of(code + 1));
    const float middle = (low + high) / 2.0f;
    for (const std::uint32_t sign : {0u, 8u}) {
      const float s = sign == 0 ? 1.0f : -1.0f;
      EXPECT_EQ(to_fp4_e2m1(s * middle), code_of(sign | (code + code % 2))) << code;
      EXPECT_EQ(to_fp4_e2m1(s * std::nextafter(middle, low)), code_of(sign | code)) << code;
      EXPECT_EQ(to_fp4_e2m1(s * std::nextafter(middle, high)), code_of(sign | (code + 1))) << code;
    }
  }
}

TEST(Fp4E2m1Test, FindsTheNearestForEveryBfloat16) {
  for (std::uint32_t upper = 0; upper < 0x7F80; ++upper) {
    const float value = std::bit_cast<float>(upper << 16);
    const std::uint32_t code = nearest_code(static_cast<double>(value));
    ASSERT_EQ(to_fp4_e2m1(value), code_of(code)) << value;
    ASSERT_EQ(to_fp4_e2m1(-value), code_of(8u | code)) << value;
  }
}

TEST(Fp4E2m1Test, SaturatesAbove6AndKeepsTheSignOfZero) {
  EXPECT_EQ(to_fp4_e2m1(6.5f), code_of(7));
  EXPECT_EQ(to_fp4_e2m1(-HUGE_VALF), code_of(15));
  EXPECT_EQ(to_fp4_e2m1(-0.0f), code_of(8));
  EXPECT_EQ(to_fp4_e2m1(-0.25f), code_of(8));
  EXPECT_EQ(to_fp4_e2m1(-std::numeric_limits<float>::denorm_min()), code_of(8));
}

TEST(Fp4E2m1Test, PacksTheEvenElementIntoTheLowNibble) {
  for (std::uint32_t even = 0; even < 16; ++even) {
    for (std::uint32_t odd = 0; odd < 16; ++odd) {
      const std::uint8_t byte = pack_fp4(code_of(even), code_of(odd));
      EXPECT_EQ(byte, even | odd << 4);
      EXPECT_EQ(even_fp4(byte), code_of(even));
      EXPECT_EQ(odd_fp4(byte), code_of(odd));
    }
  }
}

}  // namespace
}  // namespace locket::numerics
