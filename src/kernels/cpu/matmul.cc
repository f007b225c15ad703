#include <algorithm>
#include <array>
#include <vector>

#include "kernels/cpu/drivers.h"
#include "kernels/cpu/flush_scope.h"
#include "tensor/aligned_buffer.h"

namespace locket::kernels::cpu {
namespace {

// Packed activations that stay in the second cache level while the weights stream past, in numbers
// that the kernels take without a rest.
constexpr std::size_t kTokenBlockBytes = 1024 * 1024;
constexpr std::size_t kTokenStep = 24;
constexpr std::size_t kMaxTokenBlock = 96;
constexpr std::size_t kPanelLaneGroups = 2;
// Few short rows are packed without asking for memory: that would take longer than small products.
constexpr std::size_t kSmallBytes = 8192;

// Packed rows of activations in slices of columns, [slices][tokens][slice_groups]: one slice where
// weights are decoded in registers, else one a panel.
class PackedTokens {
 public:
  // For at most `most_tokens` rows of `groups` column groups.
  PackedTokens(const PanelKernels& kernels, std::size_t groups, std::size_t most_tokens) {
    const bool few = most_tokens <= kernels.direct_tokens;
    slice_groups_ = few ? groups : kPanelGroups;
    slices_ = (groups + slice_groups_ - 1) / slice_groups_;
    row_bytes_ =
        few ? padded_row_bytes(groups * kernels.group_bytes) : slice_row_bytes(kernels.group_bytes);
    slice_bytes_ = most_tokens * row_bytes_;
    if (slices_ * slice_bytes_ > kSmallBytes)
      large_ = tensor::AlignedBuffer(slices_ * slice_bytes_);
    data_ = large_.size() > 0 ? large_.data() : small_.data();
  }
  PackedTokens(const PackedTokens&) = delete;
  PackedTokens& operator=(const PackedTokens&) = delete;

  // Takes the rows from `first` on.
  void pack(const PanelKernels& kernels, const ValueScan& scan, const MatmulPart& part,
            std::size_t first, std::size_t tokens);

  std::size_t tokens() const { return tokens_; }
  const ScaleRange& after_sum() const { return after_sum_; }
  std::size_t row_bytes() const { return row_bytes_; }
  const std::byte* slice(std::size_t index) const { return data_ + index * slice_bytes_; }

 private:
  alignas(64) std::array<std::byte, kSmallBytes> small_;
  tensor::AlignedBuffer large_;
  std::byte* data_;  // in one of them
  std::size_t slice_groups_;
  std::size_t slices_;
  std::size_t row_bytes_;  // of a slice
  std::size_t slice_bytes_;
  std::size_t tokens_ = 0;
  ScaleRange after_sum_;
};

std::size_t token_block(std::size_t row_bytes) {
  const std::size_t fitting = kTokenBlockBytes / row_bytes / kTokenStep * kTokenStep;
  return std::clamp(fitting, kTokenStep, kMaxTokenBlock);
}

// Scales that may have to be applied to every weight instead of to the sum of a group.
bool has_scales(WeightFormat format) { return tile_scale_bytes(format) != 0 && !is_affine(format); }

void PackedTokens::pack(const PanelKernels& kernels, const ValueScan& scan, const MatmulPart& part,
                        std::size_t first, std::size_t tokens) {
  tokens_ = tokens;
  const std::size_t columns = part.weights.columns;
  const std::size_t slice_columns = slice_groups_ * kGroupColumns;
  ExponentSpan span;
  for (std::size_t t = 0; t < tokens; ++t) {
    const float* row = part.x.data + (first + t) * part.x.stride;
    for (std::size_t slice = 0; slice < slices_; ++slice) {
      const std::size_t column = slice * slice_columns;
      kernels.pack_x(row + column, std::min(slice_columns, columns - column),
                     data_ + slice * slice_bytes_ + t * row_bytes_);
    }
    if (!has_scales(part.weights.format)) continue;
    const ExponentSpan row_span = scan.exponent_span({row, columns});
    span.lowest = std::min(span.lowest, row_span.lowest);
    span.highest = std::max(span.highest, row_span.highest);
  }
  if (has_scales(part.weights.format)) {
    after_sum_ = scales_after_sum(part.weights.format, span, kernels.mantissa);
  }
}

const std::byte* group_tiles(const WeightMatrix& w, std::size_t group) {
  return w.tiles.data() + group * w.column_groups() * tile_bytes(w.format);
}

const std::byte* group_scales(const WeightMatrix& w, std::size_t group) {
  return w.scales.data() + group * w.column_groups() * tile_scale_bytes(w.format);
}

// Few tokens: weights are decoded in registers.
void multiply_few(const PanelKernels& kernels, const MatmulPart& part, const PackedTokens& packed,
                  std::size_t first_token) {
  alignas(64) float totals[kMostDirectTokens * kTileLanes];
  for (std::size_t group = part.first; group < part.last; ++group) {
    kernels.multiply_row_group(part.weights.format, {.tiles = group_tiles(part.weights, group),
                                                     .scales = group_scales(part.weights, group),
                                                     .groups = part.weights.column_groups(),
                                                     .after_sum = packed.after_sum(),
                                                     .x = packed.slice(0),
                                                     .x_row_bytes = packed.row_bytes(),
                                                     .tokens = packed.tokens(),
                                                     .totals = totals});
    store_rows(part, first_token, group, {totals, packed.tokens() * kTileLanes}, kTileLanes);
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
        tile_bytes_(tile_bytes(kernels.tile_format)) {}

  // Row groups [group, group + lane_groups) for all packed tokens.
  void run(const PackedTokens& packed, std::size_t first_token, std::size_t group,
           std::size_t lane_groups) {
    if (!in_place_ && panel_.tiles.size() == 0) {
      panel_.tiles = tensor::AlignedBuffer(kPanelLaneGroups * kPanelGroups * tile_bytes_);
    }
    const std::size_t stride = lane_groups * kTileLanes;
    totals_.assign(packed.tokens() * stride, 0.0f);
    const std::size_t groups = part_.weights.column_groups();
    for (std::size_t column = 0; column < groups; column += kPanelGroups) {
      PanelProduct product = make_panel(packed, group, lane_groups, column);
      product.x = packed.slice(column / kPanelGroups);
      product.x_row_bytes = packed.row_bytes();
      product.tokens = packed.tokens();
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
      kernels_.decode(
          {.format = w.format,
           .tiles = group_tiles(w, group + lane) + column * tile_bytes(w.format),
           .scales = group_scales(w, group + lane) + column * tile_scale_bytes(w.format),
           .groups = groups,
           .after_sum = packed.after_sum()},
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

void store_rows(const MatmulPart& part, std::size_t first_token, std::size_t group,
                std::span<const float> results, std::size_t stride) {
  const std::size_t row = group * kTileLanes;
  const std::size_t count = std::min(kTileLanes, part.weights.rows - row);
  float* out = part.out + first_token * part.out_stride + row;
  for (std::size_t at = 0; at < results.size(); at += stride, out += part.out_stride) {
    std::copy_n(results.data() + at, count, out);
  }
}

void matmul_part(const PanelKernels& kernels, const ValueScan& scan, const MatmulPart& part) {
  const FlushScope flush;
  const std::size_t groups = part.weights.column_groups();
  const std::size_t block = std::min(token_block(groups * kernels.group_bytes), part.x.tokens);
  PackedTokens packed(kernels, groups, block);
  PanelMultiplier multiplier(kernels, part);
  for (std::size_t first = 0; first < part.x.tokens; first += block) {
    packed.pack(kernels, scan, part, first, std::min(block, part.x.tokens - first));
    if (block <= kernels.direct_tokens) {
      multiply_few(kernels, part, packed, first);
      continue;
    }
    for (std::size_t group = part.first; group < part.last; group += kPanelLaneGroups) {
      multiplier.run(packed, first, group, std::min(kPanelLaneGroups, part.last - group));
    }
  }
}

}  // namespace locket::kernels::cpu
