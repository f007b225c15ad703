#include "kernels/hadamard.h"

#include <bit>
#include <cmath>
#include <cstddef>

#include "base/check.h"

namespace locket::kernels {

void hadamard_transform(std::span<float> values) {
  LOCKET_DCHECK(std::has_single_bit(values.size()));
  for (std::size_t step = 1; step < values.size(); step *= 2) {
    for (std::size_t first = 0; first < values.size(); first += 2 * step) {
      for (std::size_t i = first; i < first + step; ++i) {
        const float sum = values[i] + values[i + step];
        values[i + step] = values[i] - values[i + step];
        values[i] = sum;
      }
    }
  }
  const auto scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(values.size())));
  for (float& value : values) value *= scale;
}

}  // namespace locket::kernels
