// When the scale of a tile may be applied to the finished sum of a group instead of to every
// weight. The bits are the same as long as nothing in the group overflows or comes near the
// denormals, with and without the scale. Every product is a multiple of the smallest bit of the
// activations times the smallest bit of the codes, so the exponents of the activations decide it.
#pragma once

#include <cstddef>
#include <cstdint>

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

// Codes for which scale * weight is normal or zero for every weight.
ScaleRange normal_scales(WeightFormat format);

// value * 2^(code - 127) with a denormal result flushed; correct under FlushScope, too.
float scaled_weight(float value, std::uint8_t code);

// Weight (row, column) of a tile without its scale.
float code_value(WeightFormat format, const std::byte* tile, std::size_t row, std::size_t column);

}  // namespace locket::kernels::cpu
