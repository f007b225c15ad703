#include "kernels/double_dot.h"

#include <array>
#include <cstddef>

#include "kernels/sum_order.h"

namespace locket::kernels {

double dot_in_double(std::span<const float> a, std::span<const float> b) {
  std::array<double, kLanes> lanes = {};
  const std::size_t whole = a.size() / kLanes * kLanes;
  for (std::size_t i = 0; i < whole; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      lanes[lane] += static_cast<double>(a[i + lane]) * static_cast<double>(b[i + lane]);
    }
  }
  for (std::size_t i = whole; i < a.size(); ++i) {
    lanes[i - whole] += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  }
  for (std::size_t half = kLanes / 2; half > 0; half /= 2) {
    for (std::size_t lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  }
  return lanes[0];
}

}  // namespace locket::kernels
