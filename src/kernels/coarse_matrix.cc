#include "kernels/coarse_matrix.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <span>

#include "base/check.h"

namespace locket::kernels {
namespace {

constexpr float kMostCode = 127.0f;
constexpr double kMostRowCode = 128.0 * 127.0;
// Below, scales would lose bits; such rows have codes of zero and are all rest.
constexpr float kLeastMagnitude = 0x1p-100f;
// Adding it rounds a float (a double) of small size to the nearest integer.
constexpr float kToInteger = 0x1.8p23f;
constexpr double kWideToInteger = 0x1.8p52;

using Lanes = std::array<float, kCoarseLanes>;
using WideLanes = std::array<double, kCoarseLanes>;

// Column `quad * 4 + index` of a row group: pairs (k, k + 4) lie in the halves of a double word.
void load_column(const std::byte* tiles, std::size_t quad, std::size_t index, Lanes& out) {
  std::array<std::uint32_t, kCoarseLanes> words;
  std::memcpy(words.data(), tiles + (quad / 2 * kCoarseQuad + index) * sizeof(words),
              sizeof(words));
  const unsigned shift = quad % 2 == 0 ? 16 : 0;
  for (std::size_t lane = 0; lane < kCoarseLanes; ++lane) {
    out[lane] = std::bit_cast<float>((words[lane] << shift) & 0xFFFF0000u);
  }
}

// Largest magnitudes, as bits: those of infinities and NaN are above all others.
std::array<std::int32_t, kCoarseLanes> largest_bits(const std::byte* tiles, std::size_t quads) {
  std::array<std::int32_t, kCoarseLanes> largest = {};
  Lanes values;
  for (std::size_t column = 0; column < quads * kCoarseQuad; ++column) {
    load_column(tiles, column / kCoarseQuad, column % kCoarseQuad, values);
    for (std::size_t lane = 0; lane < kCoarseLanes; ++lane) {
      const std::int32_t bits = std::bit_cast<std::int32_t>(values[lane]) & 0x7FFFFFFF;
      largest[lane] = std::max(largest[lane], bits);
    }
  }
  return largest;
}

struct RowScales {
  Lanes scale;
  Lanes inverse;
};

RowScales row_scales(const std::array<std::int32_t, kCoarseLanes>& largest) {
  RowScales scales = {};
  for (std::size_t lane = 0; lane < kCoarseLanes; ++lane) {
    const auto magnitude = std::bit_cast<float>(largest[lane]);
    if (!std::isfinite(magnitude) || magnitude < kLeastMagnitude) continue;
    scales.scale[lane] = magnitude / kMostCode;
    scales.inverse[lane] = 1.0f / scales.scale[lane];
  }
  return scales;
}

struct SquareSums {
  WideLanes values = {};
  WideLanes rests = {};
};

// The codes of one quad, and its shares of the squares.
void copy_quad(const std::byte* tiles, std::size_t quad, const RowScales& scales, std::byte* codes,
               SquareSums& squares) {
  std::array<std::uint32_t, kCoarseLanes> words = {};
  Lanes values;
  for (std::size_t index = 0; index < kCoarseQuad; ++index) {
    load_column(tiles, quad, index, values);
    for (std::size_t lane = 0; lane < kCoarseLanes; ++lane) {
      const float wanted = values[lane] * scales.inverse[lane];
      // NaN, of a weight that is not finite, becomes 0.
      const float code = std::fabs(wanted) < 128.0f ? (wanted + kToInteger) - kToInteger : 0.0f;
      const auto byte = static_cast<std::uint32_t>(static_cast<int>(code) + kCoarseOffset);
      words[lane] |= byte << (8 * index);
      const double value = static_cast<double>(values[lane]);
      const double rest =
          value - static_cast<double>(scales.scale[lane]) * static_cast<double>(code);
      squares.values[lane] += value * value;
      squares.rests[lane] += rest * rest;
    }
  }
  std::memcpy(codes, words.data(), sizeof(words));
}

// Not below the root of a sum of squares that has rounding errors.
double norm_above(double squares) { return std::sqrt(squares) * (1.0 + 0x1p-30) + 0x1p-120; }

float rounded_up(double norm) { return static_cast<float>(norm * (1.0 + 0x1p-20)); }

void copy_row_group(const WeightMatrix& w, std::size_t group, CoarseMatrix& copy) {
  const std::byte* tiles =
      w.tiles.data() + group * w.column_groups() * tile_bytes(WeightFormat::kBf16);
  const std::size_t quads = copy.quads();
  const auto largest = largest_bits(tiles, quads);
  const RowScales scales = row_scales(largest);
  std::byte* codes = copy.codes.data() + group * quads * kCoarseLanes * kCoarseQuad;
  SquareSums squares;
  for (std::size_t quad = 0; quad < quads; ++quad) {
    copy_quad(tiles, quad, scales, codes + quad * kCoarseLanes * kCoarseQuad, squares);
  }
  for (std::size_t lane = 0; lane < kCoarseLanes; ++lane) {
    const std::size_t row = group * kCoarseLanes + lane;
    const bool finite = std::isfinite(std::bit_cast<float>(largest[lane]));
    copy.scales[row] = scales.scale[lane];
    copy.norms[row] = finite ? rounded_up(norm_above(squares.values[lane])) : HUGE_VALF;
    copy.rests[row] = finite ? rounded_up(norm_above(squares.rests[lane])) : HUGE_VALF;
  }
}

void code_row(std::span<const float> x, std::size_t token, CoarseRows& rows) {
  float largest = 0.0f;
  double squares = 0.0;
  for (const float value : x) {
    largest = std::max(largest, std::fabs(value));
    squares += static_cast<double>(value) * static_cast<double>(value);
  }
  rows.norms[token] = std::isfinite(squares) ? norm_above(squares) : HUGE_VAL;
  rows.rests[token] = rows.norms[token];
  if (!std::isfinite(squares) || largest < kLeastMagnitude) return;
  const double scale = static_cast<double>(largest) / kMostRowCode;
  rows.scales[token] = scale;
  std::int16_t* codes = rows.codes.data() + token * rows.quads * kCoarseQuad;
  std::int8_t* planes = rows.planes.data() + token * rows.quads * kCoarseQuad * 2;
  double rest_squares = 0.0;
  for (std::size_t k = 0; k < x.size(); ++k) {
    const double code = (static_cast<double>(x[k]) / scale + kWideToInteger) - kWideToInteger;
    const double rest = static_cast<double>(x[k]) - scale * code;
    rest_squares += rest * rest;
    const int integer = static_cast<int>(code);
    const int high = (integer + 64) >> 7;
    codes[k] = static_cast<std::int16_t>(integer);
    std::int8_t* plane = planes + k / kCoarseQuad * kCoarseQuad * 2 + k % kCoarseQuad;
    plane[0] = static_cast<std::int8_t>(high);
    plane[kCoarseQuad] = static_cast<std::int8_t>(integer - high * 128);
    rows.sums[token] += integer;
  }
  // scale * code has more bits than a double: its rounding is far below the scale.
  rows.rests[token] = norm_above(rest_squares) + rows.norms[token] * 0x1p-40;
}

}  // namespace

CoarseMatrix coarse_copy(const WeightMatrix& w, WorkerPool& workers) {
  LOCKET_CHECK(w.format == WeightFormat::kBf16 && w.columns <= kMostCoarseColumns);
  CoarseMatrix copy;
  copy.rows = w.rows;
  copy.columns = w.columns;
  const std::size_t lanes = copy.row_groups() * kCoarseLanes;
  copy.codes = tensor::AlignedBuffer(lanes * copy.quads() * kCoarseQuad);
  copy.scales.resize(lanes);
  copy.norms.resize(lanes);
  copy.rests.resize(lanes);
  const std::size_t grain = WorkerPool::grain_for(kCoarseLanes * w.columns * 4);
  workers.parallel_for(copy.row_groups(), grain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t group = begin; group < end; ++group) copy_row_group(w, group, copy);
  });
  return copy;
}

std::size_t coarse_bytes(std::size_t rows, std::size_t columns) {
  const std::size_t lanes = (rows + kCoarseLanes - 1) / kCoarseLanes * kCoarseLanes;
  const std::size_t codes = lanes * coarse_quads(columns) * kCoarseQuad;
  return tensor::AlignedBuffer::taken_bytes(codes) + lanes * 3 * sizeof(float);
}

CoarseRows coarse_rows(const ActivationRows& x, std::size_t columns) {
  LOCKET_CHECK(x.tokens >= 1 && x.tokens <= kMostCoarseRows);
  CoarseRows rows;
  rows.tokens = x.tokens;
  rows.quads = coarse_quads(columns);
  rows.codes.resize(x.tokens * rows.quads * kCoarseQuad);
  rows.planes.resize(rows.codes.size() * 2);
  rows.sums.resize(x.tokens);
  rows.scales.resize(x.tokens);
  rows.norms.resize(x.tokens);
  rows.rests.resize(x.tokens);
  for (std::size_t token = 0; token < x.tokens; ++token) {
    code_row({x.data + token * x.stride, columns}, token, rows);
  }
  return rows;
}

// g is taken a hundredth larger than its first term, which covers the others, and the roundings of
// upper() with it.
CoarseBound::CoarseBound(const CoarseMatrix& w, const CoarseRows& x, std::size_t token)
    : w_(w), scale_(x.scales[token]), x_norm_(x.norms[token]) {
  constexpr double kTiny = 0x1p-100;
  const std::size_t roundings = 32 + (w.columns + 31) / 32;
  const double sum_error = 1.01 * static_cast<double>(roundings) * 0x1p-24;
  per_rest_ = (x_norm_ + x.rests[token]) * (1.0 + 0x1p-20);
  per_norm_ = x.rests[token] * (1.0 + 0x1p-20) + sum_error * x_norm_ + kTiny;
  least_ = kTiny * (1.0 + x_norm_);
}

}  // namespace locket::kernels
