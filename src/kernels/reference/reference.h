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
void index_scan(const IndexScan& scan);
std::size_t ranks_from(const ScoreStretch& stretch, float least, std::uint64_t* ranks);
void block_maxima(std::span<const float> scores, std::size_t size, std::span<float> maxima);
void rms_norm(std::span<const float> x, std::span<const float> weight, float eps, Rounding rounding,
              std::span<float> out);
void swiglu(std::span<const float> gate, std::span<const float> up, const GateShape& shape,
            std::span<float> out);
void rotate_pairs(std::span<float> pairs, std::span<const float> cos, std::span<const float> sin,
                  RotaryDirection direction, Rounding rounding);
void dots_in_double(std::span<const float> rows, std::span<const float> x, std::span<double> sums);
void collapse_streams(std::span<const float> streams, std::span<const float> weights,
                      Rounding rounding, std::span<float> out);
void expand_streams(const StreamExpansion& expansion, std::span<float> streams);
void mix_coefficients(const StreamMixing& mixing, std::span<const float> mixes,
                      const StreamCoefficients& out);
void round_to_bf16(std::span<float> values);
void quantize_int8_row(std::span<const float> x, const Int8Row& row);
void int8_matmul_groups(const WeightMatrix& w, const Int8Rows& x, float* out,
                        std::size_t out_stride, std::size_t first, std::size_t last);
void coarse_sums(const CoarseMatrix& w, const CoarseRows& x, std::size_t first, std::size_t last,
                 std::int64_t* out);

}  // namespace locket::kernels::reference
