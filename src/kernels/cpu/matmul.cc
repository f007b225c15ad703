#include <algorithm>
#include <array>
#include <vector>

#include "kernels/cpu/drivers.h"
#include "kernels/cpu/flush_scope.h"
#include "tensor/aligned_buffer.h"

namespace locket::kernels::cpu {
namespace {

// Packed activations that stay in the second cache level while the weights stream past.
constexpr std::size_t kTokenBlockBytes = 512 * 1024;
constexpr std::size_t kMaxTokenBlock = 96;
constexpr std::size_t kPanelLaneGroups = 2;

struct PackedTokens {
  tensor::AlignedBuffer buffer;
  std::size_t row_bytes = 0;
  std::size_t tokens = 0;
  ScaleRange after_sum;
};

std::size_t token_block(std::size_t row_bytes) {
  return std::clamp<std::size_t>(kTokenBlockBytes / row_bytes, 24, kMaxTokenBlock);
}

bool has_scales(WeightFormat format) { return tile_scales(format) != 0; }

void pack_tokens(const PanelKernels& kernels, const ValueScan& scan, const MatmulPart& part,
                 std::size_t first, PackedTokens& packed) {
  const std::size_t columns = part.weights.columns;
  ExponentSpan span;
  for (std::size_t t = 0; t < packed.tokens; ++t) {
    const float* row = part.x.data + (first + t) * part.x.stride;
    kernels.pack_x(row, columns, packed.buffer.data() + t * packed.row_bytes);
    if (!has_scales(part.weights.format)) continue;
    const ExponentSpan row_span = scan.exponent_span({row, columns});
    span.lowest = std::min(span.lowest, row_span.lowest);
    span.highest = std::max(span.highest, row_span.highest);
  }
  if (has_scales(part.weights.format)) {
    packed.after_sum = scales_after_sum(part.weights.format, span, kernels.mantissa);
  }
}

// Results [tokens][stride] of row group `group` go to their place; padded rows are dropped.
void store_rows(const MatmulPart& part, std::size_t first_token, std::size_t group,
                std::span<const float> results, std::size_t stride) {
  const std::size_t row = group * kTileLanes;
  const std::size_t count = std::min(kTileLanes, part.weights.rows - row);
  float* out = part.out + first_token * part.out_stride + row;
  for (std::size_t at = 0; at < results.size(); at += stride, out += part.out_stride) {
    std::copy_n(results.data() + at, count, out);
  }
}

const std::byte* group_tiles(const WeightMatrix& w, std::size_t group) {
  return w.tiles.data() + group * w.column_groups() * tile_bytes(w.format);
}

const std::byte* group_scales(const WeightMatrix& w, std::size_t group) {
  return w.scales.data() + group * w.column_groups() * tile_scales(w.format);
}

// Few tokens: weights are decoded in registers.
void multiply_few(const PanelKernels& kernels, const MatmulPart& part, const PackedTokens& packed,
                  std::size_t first_token) {
  alignas(64) float totals[kMostDirectTokens * kTileLanes];
  for (std::size_t group = part.first; group < part.last; ++group) {
    kernels.multiply_row_group(part.weights.format, {.tiles = group_tiles(part.weights, group),
                                                     .scales = group_scales(part.weights, group),
                                                     .groups = part.weights.column_groups(),
                                                     .after_sum = packed.after_sum,
                                                     .x = packed.buffer.data(),
                                                     .x_row_bytes = packed.row_bytes,
                                                     .tokens = packed.tokens,
                                                     .totals = totals});
    store_rows(part, first_token, group, {totals, packed.tokens * kTileLanes}, kTileLanes);
  }
}

// Decoded tiles of up to two lane groups.
struct Panel {
  tensor::AlignedBuffer tiles;
  alignas(64) std::array<float, kPanelLaneGroups* kPanelGroups* kTileLanes> scales = {};
};

// Many tokens: a panel of weights is decoded once and used for all of them.
class PanelMultiplier {
 public:
  PanelMultiplier(const PanelKernels& kernels, const MatmulPart& part)
      : kernels_(kernels),
        part_(part),
        in_place_(part.weights.format == kernels.tile_format),
        tile_bytes_(tile_bytes(kernels.tile_format)) {
    if (!in_place_) {
      panel_.tiles = tensor::AlignedBuffer(kPanelLaneGroups * kPanelGroups * tile_bytes_);
    }
  }

  // Row groups [group, group + lane_groups) for all packed tokens.
  void run(const PackedTokens& packed, std::size_t first_token, std::size_t group,
           std::size_t lane_groups) {
    const std::size_t stride = lane_groups * kTileLanes;
    totals_.assign(packed.tokens * stride, 0.0f);
    const std::size_t groups = part_.weights.column_groups();
    for (std::size_t column = 0; column < groups; column += kPanelGroups) {
      PanelProduct product = make_panel(packed, group, lane_groups, column);
      product.x = packed.buffer.data() + column * kernels_.group_bytes;
      product.x_row_bytes = packed.row_bytes;
      product.tokens = packed.tokens;
      product.totals = totals_.data();
      product.totals_stride = stride;
      kernels_.multiply(product);
    }
    for (std::size_t lane = 0; lane < lane_groups; ++lane) {
      const std::span<const float> results(totals_.data() + lane * kTileLanes,
                                           totals_.size() - lane * kTileLanes);
      store_rows(part_, first_token, group + lane, results, stride);
    }
  }

 private:
  PanelProduct make_panel(const PackedTokens& packed, std::size_t group, std::size_t lane_groups,
                          std::size_t column) {
    const WeightMatrix& w = part_.weights;
    const std::size_t groups = std::min(kPanelGroups, w.column_groups() - column);
    PanelProduct product{.lane_groups = lane_groups, .groups = groups};
    if (in_place_) {
      product.panel = group_tiles(w, group) + column * tile_bytes_;
      product.lane_group_bytes = w.column_groups() * tile_bytes_;
      return product;
    }
    product.panel = panel_.tiles.data();
    product.lane_group_bytes = groups * tile_bytes_;
    product.scales = has_scales(w.format) ? panel_.scales.data() : nullptr;
    for (std::size_t lane = 0; lane < lane_groups; ++lane) {
      kernels_.decode({.format = w.format,
                       .tiles = group_tiles(w, group + lane) + column * tile_bytes(w.format),
                       .scales = group_scales(w, group + lane) + column * tile_scales(w.format),
                       .groups = groups,
                       .after_sum = packed.after_sum},
                      panel_.tiles.data() + lane * groups * tile_bytes_,
                      panel_.scales.data() + lane * groups * kTileLanes);
    }
    return product;
  }

  const PanelKernels& kernels_;
  const MatmulPart& part_;
  bool in_place_;
  std::size_t tile_bytes_;
  Panel panel_;
  std::vector<float> totals_;  // [tokens][lane_groups * 16]
};

}  // namespace

void matmul_part(const PanelKernels& kernels, const ValueScan& scan, const MatmulPart& part) {
  const FlushScope flush;
  PackedTokens packed;
  packed.row_bytes = part.weights.column_groups() * kernels.group_bytes;
  const std::size_t block = std::min(token_block(packed.row_bytes), part.x.tokens);
  packed.buffer = tensor::AlignedBuffer(block * packed.row_bytes);
  PanelMultiplier multiplier(kernels, part);
  for (std::size_t first = 0; first < part.x.tokens; first += block) {
    packed.tokens = std::min(block, part.x.tokens - first);
    pack_tokens(kernels, scan, part, first, packed);
    if (packed.tokens <= kernels.direct_tokens) {
      multiply_few(kernels, part, packed, first);
      continue;
    }
    for (std::size_t group = part.first; group < part.last; group += kPanelLaneGroups) {
      multiplier.run(packed, first, group, std::min(kPanelLaneGroups, part.last - group));
    }
  }
}

}  // namespace locket::kernels::cpu
