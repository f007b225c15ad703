// Dot products of float32 vectors summed in double: for the few sums whose error would spread over
// everything (the mixes of the hyper-connections). Element i goes to lane i mod 16, products and
// sums in double without fusing, the lanes are added as a tree of halves; rounded once by the
// caller.
#pragma once

#include <span>

namespace locket::kernels {

// REQUIRES: a.size() == b.size().
double dot_in_double(std::span<const float> a, std::span<const float> b);

}  // namespace locket::kernels
