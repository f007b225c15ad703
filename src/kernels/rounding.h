// Where a numerics mode rounds: `reference` casts to bfloat16 at the official places, `wide` and
// `plain` keep float32 everywhere. Activations are float32 in memory in every mode; in `reference`
// they hold bfloat16 values.
#pragma once

#include <span>

#include "numerics/bf16.h"

namespace locket::kernels {

enum class Rounding { kNone, kBf16 };

inline float round_value(float value, Rounding rounding) {
  return rounding == Rounding::kBf16 ? numerics::round_to_bf16(value) : value;
}

inline void round_values(std::span<float> values, Rounding rounding) {
  if (rounding == Rounding::kNone) return;
  for (float& value : values) value = numerics::round_to_bf16(value);
}

}  // namespace locket::kernels
