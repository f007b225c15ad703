// Weights of the shapes of the release with random codes, and activations as the model has them.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "kernels/matmul.h"
#include "kernels/weight_matrix.h"

namespace locket::bench {

// A packed matrix of random codes with usual scales.
kernels::WeightMatrix random_weights(kernels::WeightFormat format, std::size_t rows,
                                     std::size_t columns);

// Rows of E4M3 values with a scale per 32, [tokens, columns].
class RandomRows {
 public:
  RandomRows(std::size_t tokens, std::size_t columns);

  kernels::ActivationRows first(std::size_t tokens) const;
  std::span<const float> row() const { return {values_.data(), columns_}; }

 private:
  std::size_t columns_;
  std::vector<float> values_;
};

// gate, up [2304, 5120] and down [5120, 2304] of one expert.
struct Expert {
  std::array<kernels::WeightMatrix, 3> matrices;
};

Expert random_expert(kernels::WeightFormat format);

// The FP8 matrices that one layer reads for every token.
std::vector<kernels::WeightMatrix> random_dense_layer();

}  // namespace locket::bench
