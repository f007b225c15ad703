// The hot kernels as a table of plain functions, one table per instruction set; filled once at
// start with the best that the machine has. Tests run every table against the reference.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "kernels/index_scores.h"
#include "kernels/matmul.h"
#include "kernels/rotary.h"
#include "kernels/rounding.h"
#include "kernels/sparse_attention.h"

namespace locket::kernels {

struct GateShape {
  float limit;
  float weight;
  Rounding rounding;
};

struct ElementwiseKernels {
  void (*rms_norm)(std::span<const float> x, std::span<const float> weight, float eps,
                   Rounding rounding, std::span<float> out);
  void (*swiglu)(std::span<const float> gate, std::span<const float> up, const GateShape& shape,
                 std::span<float> out);
  void (*rotate_pairs)(std::span<float> pairs, std::span<const float> cos,
                       std::span<const float> sin, RotaryDirection direction, Rounding rounding);
  void (*fake_quantize_fp8)(std::span<float> values);
};

struct KernelTable {
  std::string_view name;  // "reference", "avx2", "avx512", "avx512_bf16"
  // Output rows [first, last) of the product, in units of 16 (row groups), for all tokens.
  void (*matmul_groups)(const WeightMatrix& w, const ActivationRows& x, float* out,
                        std::size_t out_stride, std::size_t first, std::size_t last);
  void (*sparse_attention)(const AttentionInput& input, std::span<float> out);
  void (*index_scores)(const IndexScoreInput& input, std::span<float> scores);
  ElementwiseKernels elementwise;
};

// Plain scalar code; the specification of every other table.
const KernelTable& reference_kernels();

// Every table that runs on this machine, the reference first, the fastest last.
const std::vector<const KernelTable*>& available_kernels();

// The table that the functions of the public headers use.
const KernelTable& active_kernels();
// For tests and measurements: nullptr goes back to the fastest. Not thread-safe.
void set_active_kernels(const KernelTable* table);

}  // namespace locket::kernels
