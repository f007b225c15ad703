#include "kernels/cpu/fp4_digits.h"

#include <algorithm>
#include <vector>

#include "base/check.h"
#include "kernels/cpu/drivers.h"
#include "kernels/cpu/flush_scope.h"
#include "kernels/cpu/instruction_sets.h"
#include "tensor/aligned_buffer.h"

namespace locket::kernels::cpu {
namespace {

constexpr WeightFormat kFormat = WeightFormat::kFp4;

// All rows of x, as pairs and as digits.
class DigitRows {
 public:
  DigitRows(const ValueScan& scan, const ActivationRows& x, std::size_t columns)
      : tokens_(x.tokens),
        groups_(group_count(columns)),
        row_bytes_(padded_row_bytes(groups_ * kernels_.group_bytes)),
        pairs_(tokens_ * row_bytes_),
        digits_(tokens_ * groups_),
        scales_(tokens_ * groups_),
        kinds_(groups_, DigitKind::kTwo) {
    ExponentSpan span;
    for (std::size_t t = 0; t < tokens_; ++t) {
      const float* row = x.data + t * x.stride;
      kernels_.pack_x(row, columns, pairs_.data() + t * row_bytes_);
      const ExponentSpan row_span = scan.exponent_span({row, columns});
      span.lowest = std::min(span.lowest, row_span.lowest);
      span.highest = std::max(span.highest, row_span.highest);
      for (std::size_t group = 0; group < groups_; ++group) {
        const std::size_t at = t * groups_ + group;
        kinds_[group] = std::max(kinds_[group],
                                 digits_of(row + group * kGroupColumns, digits_[at], scales_[at]));
      }
    }
    after_sum_ = scales_after_sum(kFormat, span, kernels_.mantissa);
  }

  // totals [count][tokens][16] of row groups from `group` on.
  void multiply(const WeightMatrix& w, std::size_t group, std::size_t count, float* totals) const {
    const std::byte* tiles = w.tiles.data() + group * groups_ * tile_bytes(kFormat);
    const std::byte* scales = w.scales.data() + group * groups_ * tile_scale_bytes(kFormat);
    const bool done = multiply_digits({.tiles = tiles,
                                       .scales = scales,
                                       .row_groups = count,
                                       .groups = groups_,
                                       .after_sum = after_sum_,
                                       .tokens = tokens_,
                                       .x = pairs_.data(),
                                       .x_row_bytes = row_bytes_,
                                       .digits = digits_.data(),
                                       .digit_scales = scales_.data(),
                                       .kinds = kinds_.data(),
                                       .totals = totals});
    for (std::size_t r = 0; r < count && !done; ++r) {
      const std::size_t tile = r * groups_;
      kernels_.multiply_row_group(kFormat, {.tiles = tiles + tile * tile_bytes(kFormat),
                                            .scales = scales + tile * tile_scale_bytes(kFormat),
                                            .groups = groups_,
                                            .after_sum = after_sum_,
                                            .x = pairs_.data(),
                                            .x_row_bytes = row_bytes_,
                                            .tokens = tokens_,
                                            .totals = totals + r * tokens_ * kTileLanes});
    }
  }

 private:
  const PanelKernels& kernels_ = bf16_panel_kernels();
  std::size_t tokens_;
  std::size_t groups_;
  std::size_t row_bytes_;
  tensor::AlignedBuffer pairs_;     // [tokens][row_bytes]
  std::vector<DigitGroup> digits_;  // [tokens][groups]
  std::vector<DigitScale> scales_;  // [tokens][groups]
  std::vector<DigitKind> kinds_;    // [groups]
  ScaleRange after_sum_;
};

}  // namespace

void digit_matmul_part(const ValueScan& scan, const MatmulPart& part) {
  LOCKET_DCHECK(part.weights.format == kFormat && part.x.values == ActivationValues::kBf16);
  LOCKET_DCHECK(part.x.tokens <= kMostDigitTokens);
  if (part.x.tokens == 0) return;
  const FlushScope flush;
  const DigitRows rows(scan, part.x, part.weights.columns);
  const std::size_t tokens = part.x.tokens;
  alignas(64) float totals[kMostDigitRowGroups * kMostDigitTokens * kTileLanes];
  std::size_t count = 0;
  for (std::size_t group = part.first; group < part.last; group += count) {
    count = std::min(digit_row_groups(tokens), part.last - group);
    rows.multiply(part.weights, group, count, totals);
    for (std::size_t r = 0; r < count; ++r) {
      store_rows(part, 0, group + r, {totals + r * tokens * kTileLanes, tokens * kTileLanes},
                 kTileLanes);
    }
  }
}

}  // namespace locket::kernels::cpu
