// Products of FP4 weights with activations in int8: the expert products of numerics mode `fast`
// (docs/numerics.md).
//
// Activations: one float32 scale per row and group of 128 columns, scale = largest magnitude / 127,
// codes = value / scale to nearest even, in -127..127. A group whose scale would be below 2^-126
// becomes zero (scale 0); one with an infinity or NaN becomes NaN (codes 0, scale NaN). The last
// group may be short; it is padded with zeros.
//
// Product, per row n, token t and group g of 128 columns:
//
//   block b of 32 columns: the exact integer sum of code * 2w, times 2^(weight scale code - 128)
//   chunk(n, t, g) = the four blocks added in double, b ascending, rounded once to float32
//   out(t, n) = fma(chunk, scale(t, g), out) from zero, g ascending
//
// The double sum is exact while the scale codes of a row's group span at most 35, so kernels may
// form it in integers. Infinities and denormals follow IEEE 754; nothing is flushed.
//
// Codes of 8 consecutive columns lie in the order 0 2 4 6 1 3 5 7: low nibbles of an FP4 dword
// first. Kernels read a weight as 2w + 12, which is not negative; a block's offset, -12 times the
// sum of its codes, takes that back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/worker_pool.h"
#include "kernels/weight_matrix.h"
#include "tensor/aligned_buffer.h"

namespace locket::kernels {

inline constexpr std::size_t kInt8GroupColumns = 128;
inline constexpr std::size_t kInt8BlockColumns = 32;
inline constexpr std::size_t kInt8GroupBlocks = kInt8GroupColumns / kInt8BlockColumns;
inline constexpr int kInt8WeightOffset = 12;
// Rows behind the last one that kernels may read (and not use).
inline constexpr std::size_t kInt8SpareRows = 15;

constexpr std::size_t int8_groups(std::size_t columns) {
  return (columns + kInt8GroupColumns - 1) / kInt8GroupColumns;
}

// Place of a column's code within its group.
constexpr std::size_t int8_place(std::size_t column) {
  return column % kInt8GroupColumns / 8 * 8 + column % 2 * 4 + column % 8 / 2;
}

// Rows as kernels read them: a view. Group by group, the rows of a group side by side.
struct Int8Rows {
  const std::int8_t* codes = nullptr;     // [groups, token_stride, 128]; 64-byte aligned
  const float* scales = nullptr;          // [groups, token_stride]
  const std::int32_t* offsets = nullptr;  // [groups, token_stride, 4]
  std::size_t tokens = 0;
  std::size_t token_stride = 0;
  std::size_t columns = 0;

  std::size_t groups() const { return int8_groups(columns); }
  // The rows from `first` on.
  Int8Rows part(std::size_t first, std::size_t count) const {
    return {.codes = codes + first * kInt8GroupColumns,
            .scales = scales + first,
            .offsets = offsets + first * kInt8GroupBlocks,
            .tokens = count,
            .token_stride = token_stride,
            .columns = columns};
  }
};

// One row that is being written; the strides lead from group to group.
struct Int8Row {
  std::int8_t* codes = nullptr;
  float* scales = nullptr;
  std::int32_t* offsets = nullptr;
  std::size_t token_stride = 0;

  std::int8_t* group_codes(std::size_t group) const {
    return codes + group * token_stride * kInt8GroupColumns;
  }
  float& group_scale(std::size_t group) const { return scales[group * token_stride]; }
  std::int32_t* group_offsets(std::size_t group) const {
    return offsets + group * token_stride * kInt8GroupBlocks;
  }
};

// Owned rows, reusable: memory is only allocated when it has to grow. Different rows may be written
// by different threads.
class Int8Matrix {
 public:
  Int8Matrix() = default;
  Int8Matrix(std::size_t tokens, std::size_t columns) { resize(tokens, columns); }

  // What the rows hold afterwards is not specified.
  void resize(std::size_t tokens, std::size_t columns);
  std::size_t tokens() const { return tokens_; }
  std::size_t columns() const { return columns_; }
  Int8Row row(std::size_t token);
  Int8Rows rows() const;
  // REQUIRES: as many columns.
  void copy_row(const Int8Rows& from, std::size_t from_token, std::size_t token);

 private:
  std::size_t tokens_ = 0;
  std::size_t columns_ = 0;
  tensor::AlignedBuffer codes_;
  tensor::AlignedBuffer scales_;
  tensor::AlignedBuffer offsets_;
};

// x [columns of the matrix].
void quantize_int8(std::span<const float> x, const Int8Row& row);

// out[t * out_stride + n]. REQUIRES: w is kFp4, x has w.columns columns.
void int8_matmul(const WeightMatrix& w, const Int8Rows& x, float* out, std::size_t out_stride,
                 WorkerPool& workers);

}  // namespace locket::kernels
