// Matrix products. Every output element is one sum in the order of sum_order.h, whatever the number
// of tokens, threads or the instruction set.
#pragma once

#include <cstddef>

#include "base/worker_pool.h"
#include "kernels/weight_matrix.h"

namespace locket::kernels {

// What the activations hold: kBf16 promises that every value is a bfloat16 value, which lets the
// kernels use bfloat16 products; both give the same bits.
enum class ActivationValues { kF32, kBf16 };

// Rows of activations: row t starts at data + t * stride.
struct ActivationRows {
  const float* data = nullptr;  // [tokens, columns]
  std::size_t stride = 0;       // floats from row to row
  std::size_t tokens = 0;
  ActivationValues values = ActivationValues::kF32;
};

// out[t * out_stride + n] = sum over k of x[t][k] * weight(n, k), float32, not rounded further.
// REQUIRES: rows of x hold w.columns values.
void matmul(const WeightMatrix& w, const ActivationRows& x, float* out, std::size_t out_stride,
            WorkerPool& workers);

}  // namespace locket::kernels
