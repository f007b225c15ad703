#include "hwy/base.h"
#include "kernels/cpu/bf16_packing.h"
#if HWY_COMPILER_GCC_ACTUAL
// GCC 12 takes the undefined pass-through operand inside its own intrinsics for a fault.
HWY_DIAGNOSTICS_OFF(disable : 4700, ignored "-Wmaybe-uninitialized")
#endif
#include <immintrin.h>

#include "kernels/cpu/panel_packing.h"

HWY_PUSH_ATTRIBUTES("avx512f,avx512bw,avx512vl,avx2")
namespace locket::kernels::cpu {
namespace {

// Columns 8i .. 8i + 7 of one row: four dwords (k, k + 4).
HWY_INLINE __m128i pairs_of_eight(const float* x) {
  const __m128i low = _mm_loadu_si128(reinterpret_cast<const __m128i*>(x));
  const __m128i high = _mm_loadu_si128(reinterpret_cast<const __m128i*>(x + 4));
  return _mm_blend_epi16(_mm_srli_epi32(low, 16), high, 0xAA);
}

// Four rows of eight columns, transposed to four vectors of four lanes.
HWY_INLINE void transpose_four(const RowTile& tile, std::size_t lane, std::size_t eight,
                               float* out) {
  __m128 rows[4];
  for (std::size_t i = 0; i < 4; ++i) {
    rows[i] = _mm_castsi128_ps(pairs_of_eight(tile.row(lane + i) + eight * 8));
  }
  _MM_TRANSPOSE4_PS(rows[0], rows[1], rows[2], rows[3]);
  for (std::size_t i = 0; i < 4; ++i) {
    _mm_store_ps(out + (eight * 4 + i) * kTileLanes + lane, rows[i]);
  }
}

void pack_tile(const RowTile& tile, float* out) {
  for (std::size_t lane = 0; lane < kTileLanes; lane += 4) {
    for (std::size_t eight = 0; eight < 4; ++eight) transpose_four(tile, lane, eight, out);
  }
}

}  // namespace

void pack_bf16_x(const float* x, std::size_t count, std::byte* out) {
  auto* pairs = reinterpret_cast<__m128i*>(out);
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8) _mm_storeu_si128(pairs++, pairs_of_eight(x + i));
  const std::size_t end = group_count(count) * kGroupColumns;
  for (; i < end; i += 8) {
    float tail[8];
    for (std::size_t k = 0; k < 8; ++k) tail[k] = i + k < count ? x[i + k] : -0.0f;
    _mm_storeu_si128(pairs++, pairs_of_eight(tail));
  }
}

void pack_bf16_rows(const RowBlock& block, std::byte* panel) {
  auto* out = reinterpret_cast<float*>(panel);
  for (std::size_t row = 0; row < block.row_count; row += kTileLanes) {
    for (std::size_t column = 0; column < block.columns; column += kGroupColumns) {
      pack_tile(RowTile(block, row, column), out);
      out += kGroupPairs * kTileLanes;
    }
  }
}

}  // namespace locket::kernels::cpu
HWY_POP_ATTRIBUTES
