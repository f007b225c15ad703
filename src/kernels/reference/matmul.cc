#include <algorithm>

#include "kernels/reference/reference.h"
#include "kernels/sum_order.h"

namespace locket::kernels::reference {
namespace {

float dot(const WeightMatrix& w, std::size_t row, const float* x) {
  const auto value = [&](std::size_t k) { return x[k]; };
  if (w.format == WeightFormat::kFp8F32) {
    return scaled_dot(
        w.columns, value, [&](std::size_t k) { return code_at(w, row, k); },
        [&](std::size_t k) { return scale_at(w, row, k); });
  }
  return ordered_dot(w.columns, value, [&](std::size_t k) { return weight_at(w, row, k); });
}

}  // namespace

void matmul_groups(const WeightMatrix& w, const ActivationRows& x, float* out,
                   std::size_t out_stride, std::size_t first, std::size_t last) {
  const std::size_t end = std::min(last * kLanes, w.rows);
  for (std::size_t row = first * kLanes; row < end; ++row) {
    for (std::size_t token = 0; token < x.tokens; ++token) {
      const float* values = x.data + token * x.stride;
      out[token * out_stride + row] = dot(w, row, values);
    }
  }
}

}  // namespace locket::kernels::reference
