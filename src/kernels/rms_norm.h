// Root-mean-square norm: out = round(x * rstd * weight), rstd = 1 / sqrt(mean(x^2) + eps),
// statistics and products in float32, one rounding.
#pragma once

#include <span>

#include "kernels/rounding.h"

namespace locket::kernels {

// 1 / sqrt(mean(x^2) + eps).
float reciprocal_rms(std::span<const float> x, float eps);

// x, weight, out [n]; out may be x.
void rms_norm(std::span<const float> x, std::span<const float> weight, float eps, Rounding rounding,
              std::span<float> out);

}  // namespace locket::kernels
