// FP8 E4M3 (OCP, "fn"): 1 sign, 4 exponent bits with bias 7, 3 mantissa bits; no infinities; codes
// 0x7F and 0xFF are NaN; the largest value is 448, the smallest 2^-9.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace locket::numerics {

struct Fp8E4m3 {
  std::uint8_t code = 0;
  friend bool operator==(Fp8E4m3, Fp8E4m3) = default;
};

inline constexpr float kFp8E4m3Max = 448.0f;

constexpr float to_float(Fp8E4m3 value) {
  const std::uint32_t exponent = (value.code >> 3) & 15u;
  const std::uint32_t mantissa = value.code & 7u;
  const float sign = (value.code & 0x80u) != 0 ? -1.0f : 1.0f;
  if (exponent == 15 && mantissa == 7) return std::numeric_limits<float>::quiet_NaN();
  if (exponent == 0) return sign * static_cast<float>(mantissa) * 0x1p-9f;
  return sign * std::bit_cast<float>((exponent + 120u) << 23 | mantissa << 20);
}

// Value of every code.
inline constexpr std::array<float, 256> kFp8E4m3Values = [] {
  std::array<float, 256> values = {};
  for (std::size_t code = 0; code < values.size(); ++code) {
    values[code] = to_float(Fp8E4m3{static_cast<std::uint8_t>(code)});
  }
  return values;
}();

// Round to nearest, ties to even; beyond 448 saturates; NaN gives NaN. Keeps the sign of zero.
constexpr Fp8E4m3 to_fp8_e4m3(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint32_t>((bits >> 24) & 0x80u);
  const std::uint32_t magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) return {static_cast<std::uint8_t>(sign | 0x7Fu)};
  if (magnitude < 0x3C800000u) {  // below 2^-6: steps of 2^-9; adding 2^23 rounds to integers
    const float steps = std::bit_cast<float>(magnitude) * 512.0f;
    const float rounded = (steps + 0x1p23f) - 0x1p23f;
    return {static_cast<std::uint8_t>(sign | static_cast<std::uint32_t>(rounded))};
  }
  const std::uint32_t rounded = magnitude + 0x7FFFFu + ((magnitude >> 20) & 1u);
  const std::uint32_t code = (rounded >> 20) - (120u << 3);
  return {static_cast<std::uint8_t>(sign | (code > 0x7Eu ? 0x7Eu : code))};
}

}  // namespace locket::numerics
