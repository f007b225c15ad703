// Many tokens with tiles: 16 tokens x 16 rows x 64 columns an instruction. A chunk's decoded
// weights (two row groups, 128 columns) stay in four tiles while all tokens pass.
#include "hwy/base.h"
#if HWY_COMPILER_GCC_ACTUAL
// GCC 12 takes the undefined pass-through operand inside its own intrinsics for a fault.
HWY_DIAGNOSTICS_OFF(disable : 4700, ignored "-Wmaybe-uninitialized")
HWY_DIAGNOSTICS_OFF(disable : 4700, ignored "-Wuninitialized")
#endif
#include <array>
#include <immintrin.h>

#include "kernels/cpu/amx.h"
#include "kernels/cpu/int8_avx512.h"

namespace locket::kernels::cpu {
namespace {

constexpr std::size_t kTileTokens = 16;
constexpr std::size_t kTileColumns = 64;
constexpr std::size_t kTileSums = kTileTokens * kInt8Lanes;

// Integer sums of 16 tokens with up to two lane groups.
struct alignas(64) TileSums {
  std::array<std::int32_t, 2 * kTileSums> values;
};

}  // namespace
}  // namespace locket::kernels::cpu

HWY_PUSH_ATTRIBUTES("amx-tile,amx-int8,avx512f,avx512bw,avx512dq,avx512vl,fma,avx2")
namespace locket::kernels::cpu {
namespace {

// Tiles 0, 1: sums of the lane groups; 2, 3: codes of 64 columns each; 4, 5: weights of the first
// lane group, 6, 7 of the second.
template <std::size_t kLaneGroups>
HWY_INLINE void load_weights(const std::byte* panel) {
  _tile_loadd(4, panel, 64);
  _tile_loadd(5, panel + kInt8PanelBytes / 2, 64);
  if constexpr (kLaneGroups == 2) {
    _tile_loadd(6, panel + kInt8PanelBytes, 64);
    _tile_loadd(7, panel + kInt8PanelBytes * 3 / 2, 64);
  }
}

template <std::size_t kLaneGroups>
HWY_INLINE void store_tiles(TileSums& sums) {
  _tile_stored(0, sums.values.data(), 64);
  if constexpr (kLaneGroups == 2) _tile_stored(1, sums.values.data() + kTileSums, 64);
}

template <std::size_t kLaneGroups>
HWY_INLINE void multiply_half(const std::int8_t* codes) {
  _tile_zero(0);
  _tile_loadd(2, codes, kInt8GroupColumns);
  _tile_dpbssd(0, 2, 4);
  if constexpr (kLaneGroups == 2) {
    _tile_zero(1);
    _tile_dpbssd(1, 2, 6);
  }
}

template <std::size_t kLaneGroups>
HWY_INLINE void multiply_other_half(const std::int8_t* codes) {
  _tile_loadd(3, codes + kTileColumns, kInt8GroupColumns);
  _tile_dpbssd(0, 3, 5);
  if constexpr (kLaneGroups == 2) _tile_dpbssd(1, 3, 7);
}

// Where the sums of 16 tokens go.
template <std::size_t kLaneGroups>
struct SumTarget {
  __m512 factors[kLaneGroups];
  const float* scales;  // [tokens]
  float* totals;        // [tokens][stride]
  std::size_t stride;

  void advance() {
    scales += kTileTokens;
    totals += kTileTokens * stride;
  }
};

// totals += sums * factor * scale, for tokens [first, last).
template <std::size_t kLaneGroups>
HWY_INLINE void add_sums(const TileSums& sums, const SumTarget<kLaneGroups>& target,
                         std::size_t first, std::size_t last) {
#pragma GCC unroll 4
  for (std::size_t t = first; t < last; ++t) {
    const __m512 scale = _mm512_set1_ps(target.scales[t]);
#pragma GCC unroll 2
    for (std::size_t l = 0; l < kLaneGroups; ++l) {
      const __m512i integer = _mm512_load_si512(&sums.values[l * kTileSums + t * kInt8Lanes]);
      const __m512 value = _mm512_mul_ps(_mm512_cvtepi32_ps(integer), target.factors[l]);
      float* at = target.totals + t * target.stride + l * kInt8Lanes;
      _mm512_storeu_ps(at, _mm512_fmadd_ps(value, scale, _mm512_loadu_ps(at)));
    }
  }
}

// Three turns of the loop work on a tile of tokens: one multiplies, the next stores the tiles, the
// third adds the stored sums up. That keeps the tile unit, the stores and the vectors busy at the
// same time; the parts are mixed because a processor looks only so far ahead.
template <std::size_t kLaneGroups>
void multiply_lanes(const Int8PanelProduct& p) {
  TileSums sums[2];
  SumTarget<kLaneGroups> target = {
      .factors = {}, .scales = p.x.scales, .totals = p.totals, .stride = p.totals_stride};
  for (std::size_t l = 0; l < kLaneGroups; ++l) {
    target.factors[l] = _mm512_loadu_ps(p.factors + l * kInt8Lanes);
  }
  const std::int8_t* codes = p.x.codes;
  const std::size_t tiles = (p.x.tokens + kTileTokens - 1) / kTileTokens;
  load_weights<kLaneGroups>(p.panel);
  for (std::size_t turn = 0; turn < tiles; ++turn, codes += kTileTokens * kInt8GroupColumns) {
    const TileSums& stored = sums[turn % 2];
    if (turn >= 1) store_tiles<kLaneGroups>(sums[(turn + 1) % 2]);
    if (turn >= 2) add_sums(stored, target, 0, 8);
    multiply_half<kLaneGroups>(codes);
    if (turn >= 2) add_sums(stored, target, 8, 12);
    multiply_other_half<kLaneGroups>(codes);
    if (turn < 2) continue;
    add_sums(stored, target, 12, kTileTokens);
    target.advance();
  }
  store_tiles<kLaneGroups>(sums[(tiles + 1) % 2]);
  if (tiles >= 2) {
    add_sums(sums[tiles % 2], target, 0, kTileTokens);
    target.advance();
  }
  add_sums(sums[(tiles + 1) % 2], target, 0, p.x.tokens - (tiles - 1) * kTileTokens);
}

void multiply_panel(const Int8PanelProduct& p) {
  if (p.lane_groups == 2) return multiply_lanes<2>(p);
  multiply_lanes<1>(p);
}

void begin_panels() { load_tile_config({}); }

void end_panels() { release_tiles(); }

}  // namespace
}  // namespace locket::kernels::cpu
HWY_POP_ATTRIBUTES

namespace locket::kernels::cpu {

const Int8Kernels& amx_int8_kernels() {
  static const Int8Kernels kernels = {
      .direct_tokens = kInt8DirectTokens,
      .panel_from = 7,
      .token_block = 192,
      .multiply_rows = multiply_int8_rows,
      .decode = decode_int8_signed,
      .multiply_panel = multiply_panel,
      .begin_panels = begin_panels,
      .end_panels = end_panels,
  };
  return kernels;
}

}  // namespace locket::kernels::cpu
