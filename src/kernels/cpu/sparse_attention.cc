#include <algorithm>
#include <array>
#include <vector>

#include "kernels/cpu/drivers.h"
#include "kernels/cpu/flush_scope.h"
#include "kernels/elementary.h"
#include "tensor/aligned_buffer.h"

namespace locket::kernels::cpu {
namespace {

constexpr std::size_t kPanelLanes = 32;

// One call: slots in tiles of 64, every tile for all heads at once. `out` is the accumulator.
class Attention {
 public:
  Attention(const PanelKernels& kernels, const AttentionMath& math, const AttentionInput& input,
            std::span<float> out)
      : kernels_(kernels),
        math_(math),
        input_(input),
        out_(out),
        query_row_bytes_(group_count(input.head_dim) * kernels.group_bytes),
        query_(input.heads * query_row_bytes_),
        weights_(input.heads * kWeightGroups * kernels.group_bytes),
        panel_(2 * kPanelGroups * tile_bytes(kernels.tile_format)),
        scores_(input.heads * kAttentionTile),
        parts_(input.heads * kPanelLanes),
        heads_(input.heads) {}

  void run() {
    std::fill(out_.begin(), out_.end(), 0.0f);
    for (std::size_t h = 0; h < input_.heads; ++h) {
      kernels_.pack_x(input_.query.data() + h * input_.head_dim, input_.head_dim,
                      query_.data() + h * query_row_bytes_);
    }
    for (std::size_t first = 0; first < input_.used.size(); first += kAttentionTile) {
      add_tile(first, std::min(kAttentionTile, input_.used.size() - first));
    }
    for (std::size_t h = 0; h < input_.heads; ++h) {
      const float denominator =
          heads_[h].denominator + exp_value(input_.sink[h] - heads_[h].maximum);
      math_.divide(out_.subspan(h * input_.head_dim, input_.head_dim), denominator,
                   input_.rounding);
    }
  }

 private:
  static constexpr std::size_t kWeightGroups = kAttentionTile / kGroupColumns;

  void add_tile(std::size_t first, std::size_t count) {
    std::fill(scores_.begin(), scores_.end(), 0.0f);
    {
      const FlushScope flush;
      for (std::size_t slot = 0; slot < count; slot += kPanelLanes) {
        multiply_rows(first + slot, std::min(kPanelLanes, count - slot), scores_.data() + slot);
      }
    }
    weigh(first, count);
    for (std::size_t dim = 0; dim < input_.head_dim; dim += kPanelLanes) {
      const std::size_t dims = std::min(kPanelLanes, input_.head_dim - dim);
      std::fill(parts_.begin(), parts_.end(), 0.0f);
      multiply_values(first, count, dim, dims);
      math_.accumulate({.out = out_.data() + dim,
                        .out_stride = input_.head_dim,
                        .parts = parts_.data(),
                        .parts_stride = kPanelLanes,
                        .count = dims},
                       heads_);
    }
  }

  // Dot products of all heads with up to 32 rows; lanes = rows.
  void multiply_rows(std::size_t first, std::size_t count, float* scores) {
    constexpr std::size_t kColumns = kPanelGroups * kGroupColumns;
    for (std::size_t column = 0; column < input_.head_dim; column += kColumns) {
      const std::size_t columns = std::min(kColumns, input_.head_dim - column);
      const std::size_t groups = group_count(columns);
      kernels_.pack_rows({.rows = input_.rows.data() + first * input_.head_dim + column,
                          .stride = input_.head_dim,
                          .row_count = count,
                          .columns = columns},
                         panel_.data());
      kernels_.multiply({.panel = panel_.data(),
                         .lane_group_bytes = groups * tile_bytes(kernels_.tile_format),
                         .lane_groups = lane_group_count(count),
                         .groups = groups,
                         .x = query_.data() + column / kGroupColumns * kernels_.group_bytes,
                         .x_row_bytes = query_row_bytes_,
                         .tokens = input_.heads,
                         .totals = scores,
                         .totals_stride = kAttentionTile});
    }
  }

  void weigh(std::size_t first, std::size_t count) {
    std::array<std::uint32_t, kAttentionTile> used = {};
    for (std::size_t slot = 0; slot < count; ++slot) {
      used[slot] = input_.used[first + slot] != 0 ? 0xFFFFFFFFu : 0u;
    }
    const std::size_t row_bytes = kWeightGroups * kernels_.group_bytes;
    for (std::size_t h = 0; h < input_.heads; ++h) {
      float* scores = scores_.data() + h * kAttentionTile;
      math_.weigh({.scores = scores,
                   .used = used.data(),
                   .scale = input_.scale,
                   .rounding = input_.rounding},
                  heads_[h]);
      kernels_.pack_x(scores, count, weights_.data() + h * row_bytes);
    }
  }

  // Value products of all heads for up to 32 dimensions; lanes = dimensions.
  void multiply_values(std::size_t first, std::size_t count, std::size_t dim, std::size_t dims) {
    const FlushScope flush;
    const std::size_t groups = group_count(count);
    kernels_.pack_columns({.rows = input_.rows.data() + first * input_.head_dim + dim,
                           .stride = input_.head_dim,
                           .row_count = count,
                           .columns = dims},
                          panel_.data());
    kernels_.multiply({.panel = panel_.data(),
                       .lane_group_bytes = groups * tile_bytes(kernels_.tile_format),
                       .lane_groups = lane_group_count(dims),
                       .groups = groups,
                       .x = weights_.data(),
                       .x_row_bytes = kWeightGroups * kernels_.group_bytes,
                       .tokens = input_.heads,
                       .totals = parts_.data(),
                       .totals_stride = kPanelLanes});
  }

  const PanelKernels& kernels_;
  const AttentionMath& math_;
  const AttentionInput& input_;
  std::span<float> out_;  // [heads, head_dim]
  std::size_t query_row_bytes_;
  tensor::AlignedBuffer query_;    // packed
  tensor::AlignedBuffer weights_;  // packed weights of a tile
  tensor::AlignedBuffer panel_;
  std::vector<float> scores_;  // [heads][64]
  std::vector<float> parts_;   // [heads][32]
  std::vector<HeadState> heads_;
};

}  // namespace

void attend(const PanelKernels& kernels, const AttentionMath& math, const AttentionInput& input,
            std::span<float> out) {
  Attention(kernels, math, input, out).run();
}

}  // namespace locket::kernels::cpu
