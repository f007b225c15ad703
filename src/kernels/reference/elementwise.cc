#include <algorithm>
#include <cmath>
#include <cstddef>

#include "kernels/elementary.h"
#include "kernels/reference/reference.h"
#include "kernels/rms_norm.h"

namespace locket::kernels::reference {

void rms_norm(std::span<const float> x, std::span<const float> weight, float eps, Rounding rounding,
              std::span<float> out) {
  const float rstd = reciprocal_rms(x, eps);
  for (std::size_t i = 0; i < x.size(); ++i) {
    out[i] = round_value(x[i] * rstd * weight[i], rounding);
  }
}

void rotate_pairs(std::span<float> pairs, std::span<const float> cos, std::span<const float> sin,
                  RotaryDirection direction, Rounding rounding) {
  const float sign = direction == RotaryDirection::kForward ? 1.0f : -1.0f;
  for (std::size_t i = 0; i < cos.size(); ++i) {
    const float real = pairs[2 * i];
    const float imaginary = pairs[2 * i + 1];
    const float s = sign * sin[i];
    pairs[2 * i] = round_value(real * cos[i] - imaginary * s, rounding);
    pairs[2 * i + 1] = round_value(real * s + imaginary * cos[i], rounding);
  }
}

void swiglu(std::span<const float> gate, std::span<const float> up, const GateShape& shape,
            std::span<float> out) {
  for (std::size_t i = 0; i < gate.size(); ++i) {
    const float g = std::min(gate[i], shape.limit);
    const float u = std::clamp(up[i], -shape.limit, shape.limit);
    out[i] = round_value(silu(g) * u * shape.weight, shape.rounding);
  }
}

}  // namespace locket::kernels::reference
