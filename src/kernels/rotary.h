// Rotary position embedding: a float32 complex product of each pair of values, one rounding. Pairs
// are neighbours (2i, 2i + 1), or stand in the two halves (i, i + n): two ways to lay out the same.
#pragma once

#include <span>

#include "kernels/rounding.h"

namespace locket::kernels {

enum class RotaryDirection { kForward, kInverse };

// Rotates `pairs` [2 * n] in place by the angles whose cosines and sines are cos, sin [n].
void rotate_pairs(std::span<float> pairs, std::span<const float> cos, std::span<const float> sin,
                  RotaryDirection direction, Rounding rounding);

// The same for pairs (i, i + n) of `values` [2 * n]. Plain code: few values are laid out so.
void rotate_halves(std::span<float> values, std::span<const float> cos, std::span<const float> sin,
                   RotaryDirection direction, Rounding rounding);

}  // namespace locket::kernels
