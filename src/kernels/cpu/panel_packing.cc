#include "kernels/cpu/panel_packing.h"

#include <algorithm>
#include <xmmintrin.h>

namespace locket::kernels::cpu {
namespace {

constexpr std::array<float, kGroupColumns> kZeroRow = {};

// Four rows of four columns, transposed to four columns of four lanes.
void transpose_four(const RowTile& tile, std::size_t lane, std::size_t column, float* out) {
  __m128 a = _mm_loadu_ps(tile.row(lane) + column);
  __m128 b = _mm_loadu_ps(tile.row(lane + 1) + column);
  __m128 c = _mm_loadu_ps(tile.row(lane + 2) + column);
  __m128 d = _mm_loadu_ps(tile.row(lane + 3) + column);
  _MM_TRANSPOSE4_PS(a, b, c, d);
  float* target = out + column * kTileLanes + lane;
  _mm_store_ps(target, a);
  _mm_store_ps(target + kTileLanes, b);
  _mm_store_ps(target + 2 * kTileLanes, c);
  _mm_store_ps(target + 3 * kTileLanes, d);
}

void pack_tile(const RowTile& tile, float* out) {
  for (std::size_t lane = 0; lane < kTileLanes; lane += 4) {
    for (std::size_t k = 0; k < kGroupColumns; k += 4) transpose_four(tile, lane, k, out);
  }
}

}  // namespace

RowTile::RowTile(const RowBlock& block, std::size_t first_row, std::size_t first_column) {
  const std::size_t columns = std::min(kGroupColumns, block.columns - first_column);
  for (std::size_t lane = 0; lane < kTileLanes; ++lane) {
    const std::size_t row = first_row + lane;
    if (row >= block.row_count) {
      rows_[lane] = kZeroRow.data();
      continue;
    }
    rows_[lane] = block.rows + row * block.stride + first_column;
    if (columns == kGroupColumns) continue;
    float* copy = copies_.data() + lane * kGroupColumns;
    std::copy_n(rows_[lane], columns, copy);
    std::fill(copy + columns, copy + kGroupColumns, 0.0f);
    rows_[lane] = copy;
  }
}

void pack_f32_x(const float* x, std::size_t count, std::byte* out) {
  auto* values = reinterpret_cast<float*>(out);
  std::copy_n(x, count, values);
  std::fill(values + count, values + group_count(count) * kGroupColumns, -0.0f);
}

void pack_f32_rows(const RowBlock& block, std::byte* panel) {
  auto* out = reinterpret_cast<float*>(panel);
  for (std::size_t row = 0; row < block.row_count; row += kTileLanes) {
    for (std::size_t column = 0; column < block.columns; column += kGroupColumns) {
      pack_tile(RowTile(block, row, column), out);
      out += kTileLanes * kGroupColumns;
    }
  }
}

}  // namespace locket::kernels::cpu
