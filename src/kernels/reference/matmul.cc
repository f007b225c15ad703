#include <algorithm>

#include "kernels/reference/reference.h"
#include "kernels/sum_order.h"

namespace locket::kernels::reference {

void matmul_groups(const WeightMatrix& w, const ActivationRows& x, float* out,
                   std::size_t out_stride, std::size_t first, std::size_t last) {
  const std::size_t end = std::min(last * kLanes, w.rows);
  for (std::size_t row = first * kLanes; row < end; ++row) {
    for (std::size_t token = 0; token < x.tokens; ++token) {
      const float* values = x.data + token * x.stride;
      out[token * out_stride + row] = ordered_dot(
          w.columns, [&](std::size_t k) { return values[k]; },
          [&](std::size_t k) { return weight_at(w, row, k); });
    }
  }
}

}  // namespace locket::kernels::reference
