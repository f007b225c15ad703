// E8M0: a power of two, 2^(code - 127); code 0 is 2^-127 (a float32 denormal), code 255 is NaN.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

namespace locket::numerics {

struct E8m0 {
  std::uint8_t code = 0;
  friend bool operator==(E8m0, E8m0) = default;
};

inline constexpr std::uint8_t kE8m0NanCode = 255;

constexpr float to_float(E8m0 value) {
  if (value.code == kE8m0NanCode) return std::numeric_limits<float>::quiet_NaN();
  if (value.code == 0) return 0x1p-127f;
  return std::bit_cast<float>(std::uint32_t{value.code} << 23);
}

// The smallest power of two that is not below `value`, by its bits: exponent, plus one if the
// mantissa is not zero. REQUIRES: value is positive, normal and at most 2^127.
constexpr E8m0 round_up_to_e8m0(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t exponent = (bits >> 23) & 0xFFu;
  return {static_cast<std::uint8_t>(exponent + ((bits & 0x7FFFFFu) != 0 ? 1u : 0u))};
}

}  // namespace locket::numerics
