// Rotary position embedding on adjacent pairs (2i, 2i + 1): a float32 complex product, one
// rounding.
#pragma once

#include <span>

#include "kernels/rounding.h"

namespace locket::kernels {

enum class RotaryDirection { kForward, kInverse };

// Rotates `pairs` [2 * n] in place by the angles whose cosines and sines are cos, sin [n].
void rotate_pairs(std::span<float> pairs, std::span<const float> cos, std::span<const float> sin,
                  RotaryDirection direction, Rounding rounding);

}  // namespace locket::kernels
