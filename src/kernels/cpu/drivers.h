// The kernels of kernel_table.h over the primitives of one instruction set.
#pragma once

#include <cstddef>
#include <span>

#include "kernels/cpu/attention_math.h"
#include "kernels/cpu/panel.h"
#include "kernels/cpu/value_scan.h"
#include "kernels/index_scores.h"
#include "kernels/matmul.h"
#include "kernels/sparse_attention.h"

namespace locket::kernels::cpu {

// A range of row groups of a matrix product.
struct MatmulPart {
  const WeightMatrix& weights;
  const ActivationRows& x;
  float* out;
  std::size_t out_stride;
  std::size_t first;  // row group
  std::size_t last;
};

// Results [tokens][stride] of row group `group`, for the tokens from `first_token` on, go to their
// place; padded rows are dropped.
void store_rows(const MatmulPart& part, std::size_t first_token, std::size_t group,
                std::span<const float> results, std::size_t stride);

// REQUIRES: `kernels` can hold the activations and the weight format.
void matmul_part(const PanelKernels& kernels, const ValueScan& scan, const MatmulPart& part);

// The same in the tiles of AMX. REQUIRES: amx_is_usable(); FP4 weights, bfloat16 activations.
void amx_matmul_part(const ValueScan& scan, const MatmulPart& part);

// The same by integers. REQUIRES: AVX-512 with VNNI, VBMI and BF16; FP4 weights, 1 to
// kMostDigitTokens rows of bfloat16 activations.
void digit_matmul_part(const ValueScan& scan, const MatmulPart& part);

// The same by fused multiply-adds of float32. REQUIRES: AVX-512 with VBMI; FP8 weights.
void fp8_matmul_part(const ValueScan& scan, const MatmulPart& part);

void attend(InstructionSet set, const AttentionInput& input, std::span<float> out);

// `exact` takes any value; `bf16` may be null, else it takes the blocks whose values allow it.
struct IndexKernels {
  const PanelKernels* exact;
  const PanelKernels* bf16;
  const AttentionMath* math;
  const ValueScan* scan;
};

void score_keys(const IndexKernels& kernels, const IndexScoreInput& input, std::span<float> scores);

}  // namespace locket::kernels::cpu
