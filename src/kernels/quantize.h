// The fast form of the fake quantizer that runs before every FP8 or FP4 matrix product.
#pragma once

#include <span>

namespace locket::kernels {

// In place, the bits of numerics::fake_quantize_fp8. REQUIRES: a whole number of groups of 32.
void fake_quantize_fp8(std::span<float> values);

}  // namespace locket::kernels
