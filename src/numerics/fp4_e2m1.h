// FP4 E2M1: 1 sign, 2 exponent bits, 1 mantissa bit. Codes 0..7 are 0, .5, 1, 1.5, 2, 3, 4, 6; bit
// 3 is the sign. Stored two codes a byte, the low nibble is the even element.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace locket::numerics {

struct Fp4E2m1 {
  std::uint8_t code = 0;  // 0..15
  friend bool operator==(Fp4E2m1, Fp4E2m1) = default;
};

inline constexpr float kFp4E2m1Max = 6.0f;
inline constexpr std::array<float, 16> kFp4E2m1Values = {0.0f,  0.5f,  1.0f,  1.5f,  2.0f,  3.0f,
                                                         4.0f,  6.0f,  -0.0f, -0.5f, -1.0f, -1.5f,
                                                         -2.0f, -3.0f, -4.0f, -6.0f};

constexpr float to_float(Fp4E2m1 value) { return kFp4E2m1Values[value.code & 15u]; }

// Round to nearest, ties to the even code; beyond 6 saturates. Keeps the sign of zero: a negative
// value that rounds to zero has code 8.
constexpr Fp4E2m1 to_fp4_e2m1(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const float magnitude = std::bit_cast<float>(bits & 0x7FFFFFFFu);
  const int code = (magnitude > 0.25f) + (magnitude >= 0.75f) + (magnitude > 1.25f) +
                   (magnitude >= 1.75f) + (magnitude > 2.5f) + (magnitude >= 3.5f) +
                   (magnitude > 5.0f);
  return {static_cast<std::uint8_t>(static_cast<std::uint32_t>(code) | ((bits >> 28) & 8u))};
}

// The two codes of one byte.
constexpr std::uint8_t pack_fp4(Fp4E2m1 even, Fp4E2m1 odd) {
  return static_cast<std::uint8_t>(even.code | (odd.code << 4));
}
constexpr Fp4E2m1 even_fp4(std::uint8_t byte) { return {static_cast<std::uint8_t>(byte & 15u)}; }
constexpr Fp4E2m1 odd_fp4(std::uint8_t byte) { return {static_cast<std::uint8_t>(byte >> 4)}; }

}  // namespace locket::numerics
