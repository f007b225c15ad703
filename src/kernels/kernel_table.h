// The hot kernels as a table of plain functions, one table per instruction set; filled once at
// start with the best that the machine has. Tests run every table against the reference.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "kernels/coarse_matrix.h"
#include "kernels/index_scan.h"
#include "kernels/index_scores.h"
#include "kernels/int8_matmul.h"
#include "kernels/matmul.h"
#include "kernels/rotary.h"
#include "kernels/rounding.h"
#include "kernels/sparse_attention.h"
#include "kernels/streams.h"
#include "kernels/top_k.h"

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

struct StreamKernels {
  void (*dots_in_double)(std::span<const float> rows, std::span<const float> x,
                         std::span<double> sums);
  void (*collapse)(std::span<const float> streams, std::span<const float> weights,
                   Rounding rounding, std::span<float> out);
  void (*expand)(const StreamExpansion& expansion, std::span<float> streams);
  void (*mix_coefficients)(const StreamMixing& mixing, std::span<const float> mixes,
                           const StreamCoefficients& out);
  void (*round_to_bf16)(std::span<float> values);
};

struct Int8Functions {
  void (*quantize_row)(std::span<const float> x, const Int8Row& row);
  // As matmul_groups below. REQUIRES: w is kFp4.
  void (*matmul_groups)(const WeightMatrix& w, const Int8Rows& x, float* out,
                        std::size_t out_stride, std::size_t first, std::size_t last);
};

// As the functions of top_k.h.
struct SelectionKernels {
  std::size_t (*ranks_from)(const ScoreStretch& stretch, float least, std::uint64_t* ranks);
  void (*block_maxima)(std::span<const float> scores, std::size_t size, std::span<float> maxima);
};

struct KernelTable {
  std::string_view name;  // "reference", "avx2", "avx512", "avx512_bf16", "avx512_amx"
  // Output rows [first, last) of the product, in units of 16 (row groups), for all tokens.
  void (*matmul_groups)(const WeightMatrix& w, const ActivationRows& x, float* out,
                        std::size_t out_stride, std::size_t first, std::size_t last);
  void (*sparse_attention)(const AttentionInput& input, std::span<float> out);
  void (*index_scores)(const IndexScoreInput& input, std::span<float> scores);
  void (*index_scan)(const IndexScan& scan);
  SelectionKernels selection;
  ElementwiseKernels elementwise;
  StreamKernels streams;
  Int8Functions int8;
  // Exact sums of code products for row groups [first, last): out [tokens][(last - first) * 16].
  void (*coarse_sums)(const CoarseMatrix& w, const CoarseRows& x, std::size_t first,
                      std::size_t last, std::int64_t* out);
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
