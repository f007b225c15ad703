#include "kernels/int8_matmul.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "kernels/reference/reference.h"
#include "numerics/fp4_e2m1.h"

namespace locket::kernels::reference {
namespace {

constexpr std::size_t kTileRows = 16;

float group_scale(std::span<const float> group) {
  float largest = 0.0f;
  for (const float value : group) {
    if (!std::isfinite(value)) return std::numeric_limits<float>::quiet_NaN();
    largest = std::max(largest, std::fabs(value));
  }
  const float scale = largest / 127.0f;
  return scale < 0x1p-126f ? 0.0f : scale;
}

// Twice the weight (row, column) without its scale: -12..12.
int doubled_weight(const WeightMatrix& w, std::size_t row, std::size_t column) {
  const std::size_t tile = row / kTileRows * w.column_groups() + column / 32;
  const std::size_t nibble = (column % 32 / 8 * kTileRows + row % kTileRows) * 8 + column % 8;
  const auto byte = std::to_integer<std::uint8_t>(
      w.tiles.data()[tile * tile_bytes(WeightFormat::kFp4) + nibble / 2]);
  const numerics::Fp4E2m1 code =
      nibble % 2 == 0 ? numerics::even_fp4(byte) : numerics::odd_fp4(byte);
  return static_cast<int>(2.0f * numerics::to_float(code));
}

int scale_code(const WeightMatrix& w, std::size_t row, std::size_t column) {
  const std::size_t tile = row / kTileRows * w.column_groups() + column / 32;
  return std::to_integer<int>(w.scales.data()[tile * kTileRows + row % kTileRows]);
}

float chunk_value(const WeightMatrix& w, const std::int8_t* codes, std::size_t row,
                  std::size_t group) {
  double sum = 0.0;
  const std::size_t end = std::min(w.columns, (group + 1) * kInt8GroupColumns);
  for (std::size_t block = group * kInt8GroupColumns; block < end; block += kInt8BlockColumns) {
    int integer = 0;
    for (std::size_t column = block; column < block + kInt8BlockColumns; ++column) {
      integer += codes[int8_place(column)] * doubled_weight(w, row, column);
    }
    sum += std::ldexp(static_cast<double>(integer), scale_code(w, row, block) - 128);
  }
  return static_cast<float>(sum);
}

}  // namespace

void quantize_int8_row(std::span<const float> x, const Int8Row& row) {
  for (std::size_t first = 0; first < x.size(); first += kInt8GroupColumns) {
    const std::size_t group = first / kInt8GroupColumns;
    const auto values = x.subspan(first, std::min(kInt8GroupColumns, x.size() - first));
    std::int8_t* codes = row.group_codes(group);
    std::int32_t* offsets = row.group_offsets(group);
    std::fill_n(codes, kInt8GroupColumns, std::int8_t{0});
    std::fill_n(offsets, kInt8GroupBlocks, 0);
    const float scale = group_scale(values);
    row.group_scale(group) = scale;
    if (!(scale > 0.0f)) continue;
    for (std::size_t column = 0; column < values.size(); ++column) {
      const auto code = static_cast<std::int8_t>(std::nearbyint(values[column] / scale));
      codes[int8_place(column)] = code;
      offsets[column / kInt8BlockColumns] -= kInt8WeightOffset * code;
    }
  }
}

void int8_matmul_groups(const WeightMatrix& w, const Int8Rows& x, float* out,
                        std::size_t out_stride, std::size_t first, std::size_t last) {
  const std::size_t end = std::min(last * kTileRows, w.rows);
  for (std::size_t row = first * kTileRows; row < end; ++row) {
    for (std::size_t token = 0; token < x.tokens; ++token) {
      float total = 0.0f;
      for (std::size_t group = 0; group < x.groups(); ++group) {
        const std::size_t at = group * x.token_stride + token;
        const float chunk = chunk_value(w, x.codes + at * kInt8GroupColumns, row, group);
        total = std::fma(chunk, x.scales[at], total);
      }
      out[token * out_stride + row] = total;
    }
  }
}

}  // namespace locket::kernels::reference
