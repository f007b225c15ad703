// bfloat16: the upper half of a float32. Rounding is to nearest, ties to even; NaN stays NaN.
#pragma once

#include <bit>
#include <cstdint>

namespace locket::numerics {

struct Bf16 {
  std::uint16_t bits = 0;
  friend bool operator==(Bf16, Bf16) = default;
};

constexpr float to_float(Bf16 value) {
  return std::bit_cast<float>(std::uint32_t{value.bits} << 16);
}

constexpr Bf16 to_bf16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) {  // NaN: keep the sign, make it quiet
    return {static_cast<std::uint16_t>((bits >> 16) | 0x0040u)};
  }
  return {static_cast<std::uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16)};
}

// The value after one cast to bfloat16 and back ("round" of the model's description).
constexpr float round_to_bf16(float value) { return to_float(to_bf16(value)); }

}  // namespace locket::numerics
