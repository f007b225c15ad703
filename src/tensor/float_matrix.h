// An owned matrix of float32 activations [rows, columns], row-major. Zero-filled when made.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace locket::tensor {

class FloatMatrix {
 public:
  FloatMatrix() = default;
  FloatMatrix(std::size_t rows, std::size_t columns)
      : rows_(rows), columns_(columns), values_(rows * columns) {}

  std::size_t rows() const { return rows_; }
  std::size_t columns() const { return columns_; }
  bool empty() const { return values_.empty(); }

  std::span<float> row(std::size_t index) {
    return std::span(values_).subspan(index * columns_, columns_);
  }
  std::span<const float> row(std::size_t index) const {
    return std::span(values_).subspan(index * columns_, columns_);
  }
  std::span<float> values() { return values_; }
  std::span<const float> values() const { return values_; }

 private:
  std::size_t rows_ = 0;
  std::size_t columns_ = 0;
  std::vector<float> values_;
};

}  // namespace locket::tensor
