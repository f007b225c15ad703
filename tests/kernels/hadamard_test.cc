#include "kernels/hadamard.h"

#include <bit>
#include <cmath>
#include <gtest/gtest.h>
#include <vector>

#include "tests/model/mechanism_inputs.h"

namespace locket::kernels {
namespace {

// Entry (row, column) of Sylvester's matrix: -1 for an odd number of common ones.
double sylvester(std::size_t row, std::size_t column) {
  return std::popcount(row & column) % 2 == 0 ? 1.0 : -1.0;
}

TEST(HadamardTest, MultipliesWithSylvestersMatrix) {
  for (const std::size_t size : {1, 2, 4, 32, 64, 128}) {
    const std::vector<float> x = model::random_floats(5, size);
    std::vector<float> y = x;
    hadamard_transform(y);
    for (std::size_t row = 0; row < size; ++row) {
      double sum = 0;
      for (std::size_t i = 0; i < size; ++i) sum += sylvester(row, i) * static_cast<double>(x[i]);
      EXPECT_NEAR(y[row], sum / std::sqrt(static_cast<double>(size)), 1e-6) << size;
    }
  }
}

TEST(HadamardTest, IsItsOwnInverseAndSpreadsOneValueOverAll) {
  std::vector<float> x(64, 0.0f);
  x[5] = 8.0f;
  hadamard_transform(x);
  for (const float value : x) EXPECT_EQ(std::abs(value), 1.0f);
  hadamard_transform(x);
  for (std::size_t i = 0; i < x.size(); ++i) EXPECT_EQ(x[i], i == 5 ? 8.0f : 0.0f);
}

}  // namespace
}  // namespace locket::kernels
