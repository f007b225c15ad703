// The plain scalar kernels; see the public headers for what they compute.
#pragma once

#include <cstddef>
#include <span>

#include "kernels/kernel_table.h"

namespace locket::kernels::reference {

void matmul_groups(const WeightMatrix& w, const ActivationRows& x, float* out,
                   std::size_t out_stride, std::size_t first, std::size_t last);
void sparse_attention(const AttentionInput& input, std::span<float> out);
void index_scores(const IndexScoreInput& input, std::span<float> scores);
void rms_norm(std::span<const float> x, std::span<const float> weight, float eps, Rounding rounding,
              std::span<float> out);
void swiglu(std::span<const float> gate, std::span<const float> up, const GateShape& shape,
            std::span<float> out);
void rotate_pairs(std::span<float> pairs, std::span<const float> cos, std::span<const float> sin,
                  RotaryDirection direction, Rounding rounding);

}  // namespace locket::kernels::reference
