#include <cmath>
#include <cstddef>

#include "kernels/kernel_table.h"
#include "kernels/quantize.h"
#include "kernels/rms_norm.h"
#include "kernels/rotary.h"
#include "kernels/sum_order.h"
#include "kernels/swiglu.h"

namespace locket::kernels {

float reciprocal_rms(std::span<const float> x, float eps) {
  const float squares = ordered_sum(x.size(), [&](std::size_t i) { return x[i] * x[i]; });
  return 1.0f / std::sqrt(squares / static_cast<float>(x.size()) + eps);
}

void rms_norm(std::span<const float> x, std::span<const float> weight, float eps, Rounding rounding,
              std::span<float> out) {
  active_kernels().elementwise.rms_norm(x, weight, eps, rounding, out);
}

void rotate_pairs(std::span<float> pairs, std::span<const float> cos, std::span<const float> sin,
                  RotaryDirection direction, Rounding rounding) {
  active_kernels().elementwise.rotate_pairs(pairs, cos, sin, direction, rounding);
}

void rotate_halves(std::span<float> values, std::span<const float> cos, std::span<const float> sin,
                   RotaryDirection direction, Rounding rounding) {
  const float sign = direction == RotaryDirection::kForward ? 1.0f : -1.0f;
  const std::span<float> real = values.first(cos.size());
  const std::span<float> imaginary = values.subspan(cos.size(), cos.size());
  for (std::size_t i = 0; i < cos.size(); ++i) {
    const float a = real[i];
    const float b = imaginary[i];
    const float s = sign * sin[i];
    real[i] = round_value(a * cos[i] - b * s, rounding);
    imaginary[i] = round_value(a * s + b * cos[i], rounding);
  }
}

void swiglu(std::span<const float> gate, std::span<const float> up, float limit, float weight,
            Rounding rounding, std::span<float> out) {
  active_kernels().elementwise.swiglu(
      gate, up, {.limit = limit, .weight = weight, .rounding = rounding}, out);
}

void fake_quantize_fp8(std::span<float> values) {
  active_kernels().elementwise.fake_quantize_fp8(values);
}

}  // namespace locket::kernels
