// The Hadamard transform that V3.2 and V4 mix index queries and keys with before they are
// quantized: it spreads a large value over all of them. Sylvester's order, scaled by n^-1/2, so
// that dot products stay as they are.
#pragma once

#include <span>

namespace locket::kernels {

// In place. Stages with steps of 1, 2, 4, ... values, each a sum and a difference in float32; the
// scale at the end. REQUIRES: the size is a power of two.
void hadamard_transform(std::span<float> values);

}  // namespace locket::kernels
