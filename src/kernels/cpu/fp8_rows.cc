#include "kernels/cpu/fp8_rows.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "kernels/cpu/drivers.h"
#include "kernels/cpu/flush_scope.h"
#include "kernels/cpu/instruction_sets.h"
#include "tensor/aligned_buffer.h"

namespace locket::kernels::cpu {
namespace {

// Rows of x that stay in the second cache level beside the weights of some row groups.
constexpr std::size_t kBlockBytes = 768 * 1024;

// Up to a block of rows of x in parts of nearly the same size, each packed for multiply_fp8(). One
// row without a tail stays where it is.
class Fp8Rows {
 public:
  Fp8Rows(const WeightMatrix& w, std::size_t most_tokens)
      : weights_(w), groups_(w.column_groups()) {
    const std::size_t count = most_tokens * groups_ * kGroupColumns;
    if (count > small_.size() && !stays(most_tokens)) {
      large_ = tensor::AlignedBuffer(count * sizeof(float));
    }
  }
  Fp8Rows(const Fp8Rows&) = delete;
  Fp8Rows& operator=(const Fp8Rows&) = delete;

  // False: no scale may be applied to sums.
  bool take(const ValueScan& scan, const ActivationRows& x) {
    tokens_ = x.tokens;
    parts_ = (tokens_ + kMostFp8Tokens - 1) / kMostFp8Tokens;
    ExponentSpan span;
    for (std::size_t t = 0; t < tokens_; ++t) {
      const ExponentSpan row = scan.exponent_span({x.data + t * x.stride, weights_.columns});
      span.lowest = std::min(span.lowest, row.lowest);
      span.highest = std::max(span.highest, row.highest);
    }
    const bool is_bf16 = x.values == ActivationValues::kBf16;
    after_sum_ =
        scales_after_sum(weights_.format, span, is_bf16 ? MantissaBits::kBf16 : MantissaBits::kF32);
    if (after_sum_.first > after_sum_.last) return false;
    x_ = x.data;
    if (!stays(tokens_)) pack(x);
    return true;
  }

  std::size_t parts() const { return parts_; }
  // The first part is the largest.
  std::size_t first_token(std::size_t part) const { return (tokens_ * part + parts_ - 1) / parts_; }
  std::size_t tokens(std::size_t part) const { return first_token(part + 1) - first_token(part); }

  // totals [count][tokens(part)][16] of row groups from `group` on.
  bool multiply(std::size_t part, std::size_t group, std::size_t count, float* totals) const {
    const std::size_t tile = group * groups_;
    const WeightFormat format = weights_.format;
    return multiply_fp8({.format = format,
                         .tiles = weights_.tiles.data() + tile * tile_bytes(format),
                         .scales = weights_.scales.data() + tile * tile_scale_bytes(format),
                         .row_groups = count,
                         .groups = groups_,
                         .after_sum = after_sum_,
                         .x = x_ + first_token(part) * groups_ * kGroupColumns,
                         .tokens = tokens(part),
                         .totals = totals});
  }

 private:
  bool stays(std::size_t tokens) const {
    return tokens == 1 && weights_.columns % kGroupColumns == 0;
  }

  void pack(const ActivationRows& x) {
    float* packed = large_.size() > 0 ? reinterpret_cast<float*>(large_.data()) : small_.data();
    x_ = packed;
    for (std::size_t part = 0; part < parts_; ++part) {
      for (std::size_t k = 0; k < weights_.columns; k += kGroupColumns) {
        const std::size_t size = std::min(kGroupColumns, weights_.columns - k);
        for (std::size_t t = first_token(part); t < first_token(part + 1); ++t) {
          const float* from = x.data + t * x.stride + k;
          std::fill(std::copy_n(from, size, packed), packed + kGroupColumns, -0.0f);
          packed += kGroupColumns;
        }
      }
    }
  }

  const WeightMatrix& weights_;
  std::size_t groups_;
  std::size_t tokens_ = 0;
  std::size_t parts_ = 0;
  ScaleRange after_sum_;
  const float* x_ = nullptr;  // the rows as they are, or packed in one of:
  std::array<float, 2048> small_;
  tensor::AlignedBuffer large_;
};

// Some row groups times all rows. False: a scale was outside, and not all is written.
bool multiply_row_groups(const Fp8Rows& rows, const MatmulPart& part, std::size_t group,
                         std::size_t count) {
  alignas(64) float totals[kMostFp8RowGroups * kMostFp8Tokens * kTileLanes];
  for (std::size_t i = 0; i < rows.parts(); ++i) {
    const std::size_t floats = rows.tokens(i) * kTileLanes;
    if (!rows.multiply(i, group, count, totals)) return false;
    for (std::size_t r = 0; r < count; ++r) {
      store_rows(part, rows.first_token(i), group + r, {totals + r * floats, floats}, kTileLanes);
    }
  }
  return true;
}

}  // namespace

void fp8_matmul_part(const ValueScan& scan, const MatmulPart& part) {
  LOCKET_DCHECK(decoded_shift(part.weights.format) > 0);
  const FlushScope flush;
  const PanelKernels& any_scale = f32_panel_kernels(InstructionSet::kAvx512);
  const std::size_t row_bytes = part.weights.column_groups() * kGroupColumns * sizeof(float);
  const std::size_t block =
      std::min(std::max(kBlockBytes / row_bytes, kMostFp8Tokens), part.x.tokens);
  Fp8Rows rows(part.weights, block);
  for (std::size_t first = 0; first < part.x.tokens; first += block) {
    ActivationRows x = part.x;
    x.data += first * x.stride;
    x.tokens = std::min(block, part.x.tokens - first);
    MatmulPart here = {.weights = part.weights,
                       .x = x,
                       .out = part.out + first * part.out_stride,
                       .out_stride = part.out_stride,
                       .first = part.first,
                       .last = part.last};
    if (!rows.take(scan, x)) {
      matmul_part(any_scale, scan, here);
      continue;
    }
    const std::size_t at_once = fp8_row_groups(rows.tokens(0));
    for (std::size_t group = part.first; group < part.last; group += at_once) {
      here.first = group;
      here.last = std::min(group + at_once, part.last);
      if (multiply_row_groups(rows, here, group, here.last - group)) continue;
      matmul_part(any_scale, scan, here);
    }
  }
}

}  // namespace locket::kernels::cpu
