#include "numerics/fp8_e4m3.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <gtest/gtest.h>
#include <limits>

namespace locket::numerics {
namespace {

double defined_value(std::uint32_t code) {
  const int exponent = static_cast<int>(code >> 3 & 15u);
  const double mantissa = static_cast<double>(code & 7u) / 8.0;
  const double sign = (code & 0x80u) != 0 ? -1.0 : 1.0;
  if (exponent == 0) return sign * std::ldexp(mantissa, -6);
  return sign * std::ldexp(1.0 + mantissa, exponent - 7);
}

bool is_nan_code(std::uint32_t code) { return (code & 0x7Fu) == 0x7Fu; }

// By search through all positive codes; ties to the even code.
std::uint32_t nearest_code(double value) {
  const double magnitude = std::min(value, 1000.0);  // so that double tells the distances apart
  std::uint32_t best = 0;
  for (std::uint32_t code = 1; code <= 0x7E; ++code) {
    const double distance = std::fabs(defined_value(code) - magnitude);
    const double best_distance = std::fabs(defined_value(best) - magnitude);
    if (distance < best_distance || (distance == best_distance && code % 2 == 0)) best = code;
  }
  return best;
}

Fp8E4m3 code_of(std::uint32_t code) { return {static_cast<std::uint8_t>(code)}; }

TEST(Fp8E4m3Test, HasTheDefinedValueForEveryCode) {
  for (std::uint32_t code = 0; code < 256; ++code) {
    const float value = to_float(code_of(code));
    if (is_nan_code(code)) {
      EXPECT_TRUE(std::isnan(value)) << code;
      continue;
    }
    EXPECT_EQ(static_cast<double>(value), defined_value(code)) << code;
    EXPECT_EQ(std::signbit(value), code >= 0x80) << code;
  }
  EXPECT_EQ(to_float(code_of(0x7E)), kFp8E4m3Max);
  EXPECT_EQ(to_float(code_of(0x01)), 0x1p-9f);
}

TEST(Fp8E4m3Test, GivesEveryCodeBack) {
  for (std::uint32_t code = 0; code < 256; ++code) {
    if (is_nan_code(code)) continue;
    EXPECT_EQ(to_fp8_e4m3(to_float(code_of(code))), code_of(code)) << code;
  }
}

TEST(Fp8E4m3Test, RoundsTiesToTheEvenCodeAndNeighboursToTheNearer) {
  for (std::uint32_t code = 0; code < 0x7E; ++code) {
    const float low = to_float(code_of(code));
    const float high = to_float(code_of(code + 1));
    const float middle = (low + high) / 2.0f;
    const std::uint32_t even = code + code % 2;
    for (const std::uint32_t sign : {0u, 0x80u}) {
      const float s = sign == 0 ? 1.0f : -1.0f;
      EXPECT_EQ(to_fp8_e4m3(s * middle), code_of(sign | even)) << code;
      EXPECT_EQ(to_fp8_e4m3(s * std::nextafter(middle, low)), code_of(sign | code)) << code;
      EXPECT_EQ(to_fp8_e4m3(s * std::nextafter(middle, high)), code_of(sign | (code + 1))) << code;
    }
  }
}

TEST(Fp8E4m3Test, FindsTheNearestForEveryBfloat16) {
  for (std::uint32_t upper = 0; upper < 0x7F80; ++upper) {
    const float value = std::bit_cast<float>(upper << 16);
    const std::uint32_t code = nearest_code(static_cast<double>(value));
    ASSERT_EQ(to_fp8_e4m3(value), code_of(code)) << value;
    ASSERT_EQ(to_fp8_e4m3(-value), code_of(0x80u | code)) << value;
  }
}

TEST(Fp8E4m3Test, SaturatesAbove448) {
  for (const float value : {449.0f, 464.0f, 465.0f, 480.0f, 1e30f, HUGE_VALF}) {
    EXPECT_EQ(to_fp8_e4m3(value), code_of(0x7E)) << value;
    EXPECT_EQ(to_fp8_e4m3(-value), code_of(0xFE)) << value;
  }
}

TEST(Fp8E4m3Test, KeepsNanAndTheSignOfZero) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(to_fp8_e4m3(nan), code_of(0x7F));
  EXPECT_EQ(to_fp8_e4m3(-nan), code_of(0xFF));
  EXPECT_EQ(to_fp8_e4m3(0.0f), code_of(0x00));
  EXPECT_EQ(to_fp8_e4m3(-0.0f), code_of(0x80));
  EXPECT_EQ(to_fp8_e4m3(-std::numeric_limits<float>::denorm_min()), code_of(0x80));
}

}  // namespace
}  // namespace locket::numerics
