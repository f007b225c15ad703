// A compact copy of a weight matrix, half its size, and how far a product with the copy may lie
// from the product with the matrix. largest_product.h finds the largest output of a product with
// it, reading little of the matrix itself.
//
// A row w becomes w' = scale * code with codes of 8 bits, a row x of activations x' = scale * code
// with codes of 15 bits; the sum of the products of the codes is an exact integer on every machine.
// With |.| for the Euclidean norm, Cauchy and Schwarz give
//
//   |x.w - x'.w'| = |x.(w - w') + (x - x').w'| <= |x| |w - w'| + |x - x'| (|w| + |w - w'|)
//
// and the float32 sum of sum_order.h lies within (g |x| |w| + t) of x.w: a product takes part in at
// most 32 + ceil(K / 32) roundings of relative size 2^-24, and flushing takes at most 2^-126 a step
// and 2^-126 times a factor for each denormal input. No sum on the way overflows while |x| |w|
// stays below 2^127. CoarseBound has the constants; norms are rounded up.
//
// A matrix is immutable once made, and thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/worker_pool.h"
#include "kernels/matmul.h"
#include "kernels/weight_matrix.h"
#include "tensor/aligned_buffer.h"

namespace locket::kernels {

inline constexpr std::size_t kCoarseLanes = 16;
inline constexpr std::size_t kCoarseQuad = 4;  // columns side by side
inline constexpr int kCoarseOffset = 128;      // of stored codes, which are not negative
// Rows of activations at once, and columns that sums of 32 bits have room for.
inline constexpr std::size_t kMostCoarseRows = 8;
inline constexpr std::size_t kMostCoarseColumns = 65536;

constexpr std::size_t coarse_quads(std::size_t columns) {
  return (columns + kCoarseQuad - 1) / kCoarseQuad;
}

struct CoarseMatrix {
  std::size_t rows = 0;
  std::size_t columns = 0;
  tensor::AlignedBuffer codes;  // [row groups][quads][16 rows][4]: code + kCoarseOffset, a byte
  std::vector<float> scales;    // [row groups * 16]
  std::vector<float> norms;     // |w|; infinite where a weight is not finite
  std::vector<float> rests;     // |w - w'|

  std::size_t row_groups() const { return (rows + kCoarseLanes - 1) / kCoarseLanes; }
  std::size_t quads() const { return coarse_quads(columns); }
};

// REQUIRES: w is kBf16 with at most kMostCoarseColumns columns.
CoarseMatrix coarse_copy(const WeightMatrix& w, WorkerPool& workers);

// Memory that the copy of a matrix takes.
std::size_t coarse_bytes(std::size_t rows, std::size_t columns);

// Rows of activations, 1 to kMostCoarseRows. A code is 128 * high + low, -16256 to 16256.
struct CoarseRows {
  std::size_t tokens = 0;
  std::size_t quads = 0;
  std::vector<std::int16_t> codes;  // [tokens][quads][4], zeros behind the columns
  std::vector<std::int8_t> planes;  // [tokens][quads][2][4]: high, then low
  std::vector<std::int64_t> sums;   // [tokens], of the codes
  std::vector<double> scales;       // [tokens]
  std::vector<double> norms;        // |x|; infinite where a value is not finite
  std::vector<double> rests;        // |x - x'|

  const std::int16_t* token_codes(std::size_t token) const {
    return codes.data() + token * quads * kCoarseQuad;
  }
  const std::int8_t* token_planes(std::size_t token) const {
    return planes.data() + token * quads * kCoarseQuad * 2;
  }
};

// REQUIRES: 1 to kMostCoarseRows tokens.
CoarseRows coarse_rows(const ActivationRows& x, std::size_t columns);

// What the outputs of one row of activations cannot exceed.
class CoarseBound {
 public:
  CoarseBound(const CoarseMatrix& w, const CoarseRows& x, std::size_t token);

  // At least the float32 product with row `row`, given the integer sum of the codes; infinite where
  // that may not be finite.
  double upper(std::size_t row, std::int64_t sum) const {
    const double norm = w_.norms[row];
    const double bound = scale_ * w_.scales[row] * static_cast<double>(sum) +
                         per_rest_ * w_.rests[row] + per_norm_ * norm + least_;
    return norm * x_norm_ < kNoOverflow ? bound : kUnbounded;
  }

 private:
  static constexpr double kNoOverflow = 0x1p127;
  static constexpr double kUnbounded = std::numeric_limits<double>::infinity();

  const CoarseMatrix& w_;
  double scale_;
  double x_norm_;
  double per_rest_;
  double per_norm_;
  double least_;
};

}  // namespace locket::kernels
