// When the scale of a tile may be applied to the finished sum of a group instead of to every
// weight. The bits are the same as long as nothing in the group overflows or comes near the
// denormals, with and without the scale. Every product is a multiple of the smallest bit of the
// activations times the smallest bit of the codes, so the exponents of the activations decide it.
//
// Kernels multiply decoded weights, which are larger than the codes by 2^decoded_shift(format); a
// scale that is applied after the sum takes that back. The code of a float32 scale (kFp8F32) is its
// biased exponent. Such scales always come after the sum: outside the range, the weights are the
// codes as they are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/fp8_tile.h"
#include "kernels/weight_matrix.h"

namespace locket::kernels::cpu {

// Biased exponents of the normal values seen so far; denormals and zeros do not count.
struct ExponentSpan {
  unsigned lowest = 255;
  unsigned highest = 0;
};

// Scale codes first..last; none if first > last.
struct ScaleRange {
  unsigned first = 1;
  unsigned last = 0;

  bool contains(unsigned code) const { return first <= code && code <= last; }
};

// Mantissa bits of the activations.
enum class MantissaBits : unsigned { kBf16 = 7, kF32 = 23 };

// Codes that may be applied after the sum, for activations within `span`.
ScaleRange scales_after_sum(WeightFormat format, ExponentSpan span, MantissaBits mantissa);

constexpr unsigned decoded_shift(WeightFormat format) {
  const bool is_fp8 = format == WeightFormat::kFp8 || format == WeightFormat::kFp8F32;
  return is_fp8 ? kFp8TileShift : 0;
}

// Codes for which scale * weight is normal or zero for every weight, and scale * 2^-shift too.
ScaleRange normal_scales(WeightFormat format);

// Of the one scale of an FP8 tile: its code, and the bits of scale * 2^-kFp8TileShift.
template <WeightFormat kFormat>
inline unsigned tile_scale_code(const std::byte* scales) {
  if constexpr (kFormat == WeightFormat::kFp8) return std::to_integer<unsigned>(scales[0]);
  std::uint32_t bits = 0;
  std::memcpy(&bits, scales, sizeof bits);
  return bits >> 23 & 0xFFu;
}

// REQUIRES: the code is in a range of scales_after_sum() or normal_scales().
template <WeightFormat kFormat>
inline std::uint32_t tile_factor_bits(const std::byte* scales) {
  if constexpr (kFormat == WeightFormat::kFp8) {
    return (std::to_integer<std::uint32_t>(scales[0]) - kFp8TileShift) << 23;
  }
  std::uint32_t bits = 0;
  std::memcpy(&bits, scales, sizeof bits);
  return bits - (kFp8TileShift << 23);
}

// value * 2^(code - 127) with a denormal result flushed; correct under FlushScope, too.
float scaled_weight(float value, std::uint8_t code);

// Weight (row, column) of a tile without its scale.
float code_value(WeightFormat format, const std::byte* tile, std::size_t row, std::size_t column);

}  // namespace locket::kernels::cpu
