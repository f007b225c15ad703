#include <algorithm>
#include <vector>

#include "base/check.h"
#include "kernels/cpu/amx_fp4.h"
#include "kernels/cpu/drivers.h"
#include "kernels/cpu/flush_scope.h"
#include "kernels/cpu/instruction_sets.h"
#include "tensor/aligned_buffer.h"

namespace locket::kernels::cpu {
namespace {

constexpr WeightFormat kFormat = WeightFormat::kFp4;
constexpr std::size_t kPanelTileBytes = tile_bytes(WeightFormat::kBf16);
// Packed activations that stay in the second cache level while the weights stream past.
constexpr std::size_t kTokenBytes = 1280 * 1024;
constexpr std::size_t kMaxTokens = 256;

std::size_t most_tokens(std::size_t row_bytes) {
  const std::size_t fitting = kTokenBytes / row_bytes / kAmxTokens * kAmxTokens;
  return std::clamp(fitting, 2 * kAmxTokens, kMaxTokens);
}

// Tokens in blocks of equal size, the last one filled up with rows of zeros.
struct TokenBlocks {
  explicit TokenBlocks(std::size_t count)
      : tokens(count),
        blocks((count + kAmxTokens - 1) / kAmxTokens),
        rows((count + blocks - 1) / blocks) {}

  std::size_t tokens;
  std::size_t blocks;
  std::size_t rows;  // of a block
};

class TileMultiplier {
 public:
  TileMultiplier(const ValueScan& scan, const MatmulPart& part)
      : scan_(scan),
        part_(part),
        groups_(part.weights.column_groups()),
        row_bytes_(padded_row_bytes(groups_ * kernels_.group_bytes)),
        panel_(kAmxLaneGroups * kPanelGroups * kPanelTileBytes),
        factors_(kAmxLaneGroups * kPanelGroups * kTileLanes * sizeof(float)) {}

  void run() {
    const std::size_t most = most_tokens(row_bytes_);
    for (std::size_t first = 0; first < part_.x.tokens; first += most) {
      const TokenBlocks blocks(std::min(most, part_.x.tokens - first));
      if (pack(first, blocks)) {
        multiply(first, blocks);
      } else {
        multiply_without_tiles(first, blocks.tokens);
      }
    }
  }

 private:
  // False: too many groups of the rows are loose for tiles to be of use.
  bool pack(std::size_t first, const TokenBlocks& blocks) {
    const std::size_t rows = blocks.blocks * blocks.rows;
    if (x_.size() < rows * row_bytes_) x_ = tensor::AlignedBuffer(rows * row_bytes_);
    loose_.assign(blocks.blocks * groups_, 0);
    std::size_t loose_count = 0;
    ExponentSpan span;
    for (std::size_t t = 0; t < blocks.tokens; ++t) {
      const auto bit = static_cast<std::uint16_t>(1U << t % blocks.rows);
      const AmxRow row =
          pack_amx_row(part_.x.data + (first + t) * part_.x.stride, groups_,
                       x_.data() + t * row_bytes_, bit, loose_.data() + t / blocks.rows * groups_);
      span.lowest = std::min(span.lowest, row.span.lowest);
      span.highest = std::max(span.highest, row.span.highest);
      loose_count += row.loose_groups;
    }
    std::fill(x_.data() + blocks.tokens * row_bytes_, x_.data() + rows * row_bytes_, std::byte{0});
    after_sum_ = scales_after_sum(kFormat, span, kernels_.mantissa);
    constexpr std::size_t kFewestFirm = 16;
    return loose_count * kFewestFirm <= blocks.tokens * groups_;
  }

  void multiply(std::size_t first, const TokenBlocks& blocks) {
    const AmxScope scope(blocks.rows);
    for (std::size_t group = part_.first; group < part_.last; group += kAmxLaneGroups) {
      const std::size_t lane_groups = std::min(kAmxLaneGroups, part_.last - group);
      const std::size_t stride = lane_groups * kTileLanes;
      totals_.assign(blocks.blocks * blocks.rows * stride, 0.0f);
      if (blocks.blocks > 1 || !multiply_stream(block_of(group, lane_groups, 0, groups_),
                                                product(blocks, lane_groups, 0, groups_))) {
        multiply_panels(blocks, group, lane_groups);
      }
      for (std::size_t lane = 0; lane < lane_groups; ++lane) {
        const std::size_t at = lane * kTileLanes;
        const std::size_t size = blocks.tokens * stride;
        store_rows(part_, first, group + lane, {totals_.data() + at, size - at}, stride);
      }
    }
  }

  void multiply_panels(const TokenBlocks& blocks, std::size_t group, std::size_t lane_groups) {
    for (std::size_t column = 0; column < groups_; column += kPanelGroups) {
      const std::size_t groups = std::min(kPanelGroups, groups_ - column);
      const Fp4Block block = block_of(group, lane_groups, column, groups);
      if (decode_scaled(block, panel_.data())) {
        multiply_tiles(product(blocks, lane_groups, column, groups));
      } else {
        multiply_any_scales(block, blocks.tokens, x_.data() + column * kernels_.group_bytes);
      }
    }
  }

  Fp4Block block_of(std::size_t group, std::size_t lane_groups, std::size_t column,
                    std::size_t groups) const {
    const std::size_t tile = group * groups_ + column;
    return {.tiles = part_.weights.tiles.data() + tile * tile_bytes(kFormat),
            .scales = part_.weights.scales.data() + tile * tile_scale_bytes(kFormat),
            .lane_groups = lane_groups,
            .lane_group_tiles = groups_,
            .groups = groups,
            .after_sum = after_sum_};
  }

  AmxProduct product(const TokenBlocks& blocks, std::size_t lane_groups, std::size_t column,
                     std::size_t groups) {
    return {.panel = panel_.data(),
            .lane_groups = lane_groups,
            .groups = groups,
            .x = x_.data() + column * kernels_.group_bytes,
            .x_row_bytes = row_bytes_,
            .loose = loose_.data() + column,
            .loose_stride = groups_,
            .blocks = blocks.blocks,
            .block_rows = blocks.rows,
            .totals = totals_.data()};
  }

  void multiply_any_scales(const Fp4Block& block, std::size_t tokens, const std::byte* x) {
    auto* factors = reinterpret_cast<float*>(factors_.data());
    for (std::size_t lane = 0; lane < block.lane_groups; ++lane) {
      const std::size_t tile = lane * block.lane_group_tiles;
      kernels_.decode({.format = kFormat,
                       .tiles = block.tiles + tile * tile_bytes(kFormat),
                       .scales = block.scales + tile * tile_scale_bytes(kFormat),
                       .groups = block.groups,
                       .after_sum = block.after_sum},
                      panel_.data() + lane * block.groups * kPanelTileBytes,
                      factors + lane * block.groups * kTileLanes);
    }
    kernels_.multiply({.panel = panel_.data(),
                       .lane_group_bytes = block.groups * kPanelTileBytes,
                       .lane_groups = block.lane_groups,
                       .groups = block.groups,
                       .scales = factors,
                       .x = x,
                       .x_row_bytes = row_bytes_,
                       .tokens = tokens,
                       .totals = totals_.data(),
                       .totals_stride = block.lane_groups * kTileLanes});
  }

  void multiply_without_tiles(std::size_t first, std::size_t tokens) {
    ActivationRows x = part_.x;
    x.data += first * x.stride;
    x.tokens = tokens;
    matmul_part(kernels_, scan_,
                {.weights = part_.weights,
                 .x = x,
                 .out = part_.out + first * part_.out_stride,
                 .out_stride = part_.out_stride,
                 .first = part_.first,
                 .last = part_.last});
  }

  const PanelKernels& kernels_ = bf16_panel_kernels();
  const ValueScan& scan_;
  const MatmulPart& part_;
  std::size_t groups_;
  std::size_t row_bytes_;
  tensor::AlignedBuffer x_;           // packed, [tokens in blocks][row_bytes]
  std::vector<std::uint16_t> loose_;  // [blocks][groups]
  ScaleRange after_sum_;
  tensor::AlignedBuffer panel_;
  tensor::AlignedBuffer factors_;  // of panels that tiles cannot take
  std::vector<float> totals_;      // [tokens in blocks][lane_groups * 16]
};

}  // namespace

void amx_matmul_part(const ValueScan& scan, const MatmulPart& part) {
  LOCKET_DCHECK(part.weights.format == kFormat && part.x.values == ActivationValues::kBf16);
  const FlushScope flush;
  TileMultiplier(scan, part).run();
}

}  // namespace locket::kernels::cpu
