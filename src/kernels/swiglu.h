// The gated unit of an expert: round(silu(min(gate, limit)) * clamp(up, -limit, limit) * weight).
#pragma once

#include <span>

#include "kernels/rounding.h"

namespace locket::kernels {

// gate, up, out [n]; out may be gate. `weight` is 1 for the shared expert.
void swiglu(std::span<const float> gate, std::span<const float> up, float limit, float weight,
            Rounding rounding, std::span<float> out);

}  // namespace locket::kernels
