#include <algorithm>
#include <vector>

#include "kernels/cpu/drivers.h"
#include "kernels/cpu/flush_scope.h"
#include "tensor/aligned_buffer.h"

namespace locket::kernels::cpu {
namespace {

constexpr std::size_t kKeysAtOnce = 32;

// The query of all heads, packed for one set of kernels, and room for a panel of keys.
struct PackedQuery {
  const PanelKernels* kernels;
  std::size_t row_bytes;
  tensor::AlignedBuffer query;
  tensor::AlignedBuffer panel;
};

PackedQuery pack_query(const PanelKernels& kernels, const IndexScoreInput& input) {
  const std::size_t groups = group_count(input.dim);
  PackedQuery packed{.kernels = &kernels,
                     .row_bytes = groups * kernels.group_bytes,
                     .query = tensor::AlignedBuffer(input.heads * groups * kernels.group_bytes),
                     .panel = tensor::AlignedBuffer(lane_group_count(kKeysAtOnce) * groups *
                                                    tile_bytes(kernels.tile_format))};
  for (std::size_t h = 0; h < input.heads; ++h) {
    kernels.pack_x(input.query.data() + h * input.dim, input.dim,
                   packed.query.data() + h * packed.row_bytes);
  }
  return packed;
}

// dots [heads][32] of `keys` [count, dim] with every head.
void multiply_keys(PackedQuery& packed, std::span<const float> keys, const IndexScoreInput& input,
                   std::vector<float>& dots) {
  const std::size_t count = keys.size() / input.dim;
  const std::size_t groups = group_count(input.dim);
  std::fill(dots.begin(), dots.end(), 0.0f);
  const FlushScope flush;
  packed.kernels->pack_rows(
      {.rows = keys.data(), .stride = input.dim, .row_count = count, .columns = input.dim},
      packed.panel.data());
  packed.kernels->multiply({.panel = packed.panel.data(),
                            .lane_group_bytes = groups * tile_bytes(packed.kernels->tile_format),
                            .lane_groups = lane_group_count(count),
                            .groups = groups,
                            .x = packed.query.data(),
                            .x_row_bytes = packed.row_bytes,
                            .tokens = input.heads,
                            .totals = dots.data(),
                            .totals_stride = kKeysAtOnce});
}

}  // namespace

void score_keys(const IndexKernels& kernels, const IndexScoreInput& input,
                std::span<float> scores) {
  const AttentionMath& math = *kernels.math;
  const bool query_fits = kernels.bf16 != nullptr && kernels.scan->holds_bf16(input.query);
  PackedQuery exact = pack_query(*kernels.exact, input);
  PackedQuery bf16 = pack_query(query_fits ? *kernels.bf16 : *kernels.exact, input);
  std::vector<float> dots(input.heads * kKeysAtOnce);
  for (std::size_t first = 0; first < scores.size(); first += kKeysAtOnce) {
    const std::size_t count = std::min(kKeysAtOnce, scores.size() - first);
    const auto keys = input.keys.subspan(first * input.dim, count * input.dim);
    const bool keys_fit = query_fits && kernels.scan->holds_bf16(keys);
    multiply_keys(keys_fit ? bf16 : exact, keys, input, dots);
    math.combine_heads({.dots = dots.data(),
                        .dots_stride = kKeysAtOnce,
                        .weights = input.weights.first(input.heads),
                        .rounding = input.rounding == IndexScoreRounding::kBf16 ? Rounding::kBf16
                                                                                : Rounding::kNone,
                        .count = count},
                       scores.data() + first);
  }
}

}  // namespace locket::kernels::cpu
