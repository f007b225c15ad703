#include "hwy/base.h"
#include "kernels/cpu/bf16_fma.h"
#if HWY_COMPILER_GCC_ACTUAL
// GCC 12 takes the undefined pass-through operand inside its own intrinsics for a fault.
HWY_DIAGNOSTICS_OFF(disable : 4700, ignored "-Wmaybe-uninitialized")
#endif
#include <array>
#include <immintrin.h>
#include <utility>

#include "base/check.h"
#include "kernels/cpu/instruction_sets.h"
#include "kernels/cpu/panel_packing.h"

HWY_PUSH_ATTRIBUTES("avx512f,avx512bw,avx512dq,avx512vl,fma,avx2")
namespace locket::kernels::cpu {
namespace {

constexpr std::size_t kTileBytes = tile_bytes(WeightFormat::kBf16);
constexpr std::size_t kXGroupBytes = kGroupColumns * sizeof(float);
constexpr std::size_t kMostTokens = 12;
// Known here, so that the rows of x need one address for all.
constexpr std::size_t kXStride = slice_row_bytes(kXGroupBytes) / sizeof(float);

// sums[t] += w * x of row t, at one column.
template <std::size_t kLaneGroups, std::size_t kTokens>
HWY_INLINE void add_products(const __m512 (&w)[kLaneGroups], const float* x,
                             __m512 (&sums)[kTokens][kLaneGroups]) {
#pragma GCC unroll 12
  for (std::size_t t = 0; t < kTokens; ++t) {
    const __m512 value = _mm512_set1_ps(x[t * kXStride]);
    for (std::size_t l = 0; l < kLaneGroups; ++l) {
      sums[t][l] = _mm512_fmadd_ps(w[l], value, sums[t][l]);
    }
  }
}

// Sums of one column group: kLaneGroups lane groups times kTokens rows of x.
template <std::size_t kLaneGroups, std::size_t kTokens>
HWY_INLINE void sum_group(const std::byte* w, std::size_t lane_group_bytes, const float* x,
                          __m512 (&sums)[kTokens][kLaneGroups]) {
  const __m512i upper = _mm512_set1_epi32(static_cast<int>(0xFFFF0000u));
  for (std::size_t eight = 0; eight < 4; ++eight, w += 4 * 64, x += 8) {
#pragma GCC unroll 4
    for (std::size_t q = 0; q < 4; ++q) {
      __m512 first[kLaneGroups];
      __m512 second[kLaneGroups];
      for (std::size_t l = 0; l < kLaneGroups; ++l) {
        const __m512i both = _mm512_load_si512(w + l * lane_group_bytes + q * 64);
        first[l] = _mm512_castsi512_ps(_mm512_and_si512(both, upper));
        second[l] = _mm512_castsi512_ps(_mm512_slli_epi32(both, 16));
      }
      add_products<kLaneGroups, kTokens>(first, x + q + 4, sums);
      add_products<kLaneGroups, kTokens>(second, x + q, sums);
    }
  }
}

// Asks for this group of the rows of the next block: they come from the second cache level.
template <std::size_t kTokens>
HWY_INLINE void prefetch_rows(const float* x) {
#pragma GCC unroll 12
  for (std::size_t t = 0; t < kTokens; ++t) {
    _mm_prefetch(reinterpret_cast<const char*>(x + t * kXStride), _MM_HINT_T0);
    _mm_prefetch(reinterpret_cast<const char*>(x + t * kXStride + 16), _MM_HINT_T0);
  }
}

// All column groups of a panel.
template <std::size_t kLaneGroups, std::size_t kTokens>
void multiply_block(const PanelProduct& p, std::size_t lane_group, std::size_t token) {
  const auto* x = reinterpret_cast<const float*>(p.x) + token * kXStride;
  const std::byte* w = p.panel + lane_group * p.lane_group_bytes;
  float* totals = p.totals + token * p.totals_stride + lane_group * kTileLanes;
  for (std::size_t group = 0; group < p.groups; ++group, w += kTileBytes, x += kGroupColumns) {
    __m512 sums[kTokens][kLaneGroups];
#pragma GCC unroll 24
    for (std::size_t i = 0; i < kTokens * kLaneGroups; ++i) {
      sums[i / kLaneGroups][i % kLaneGroups] = _mm512_setzero_ps();
    }
    prefetch_rows<kTokens>(x + kTokens * kXStride);
    sum_group<kLaneGroups, kTokens>(w, p.lane_group_bytes, x, sums);
    for (std::size_t l = 0; l < kLaneGroups; ++l) {
      const std::size_t at = ((lane_group + l) * p.groups + group) * kTileLanes;
      const __m512 factor =
          p.scales != nullptr ? _mm512_loadu_ps(p.scales + at) : _mm512_set1_ps(1.0f);
#pragma GCC unroll 12
      for (std::size_t t = 0; t < kTokens; ++t) {
        float* total = totals + t * p.totals_stride + l * kTileLanes;
        _mm512_storeu_ps(total, _mm512_fmadd_ps(sums[t][l], factor, _mm512_loadu_ps(total)));
      }
    }
  }
}

using Block = void (*)(const PanelProduct& p, std::size_t lane_group, std::size_t token);

// Blocks of 1 .. kMostTokens tokens.
template <std::size_t kLaneGroups, std::size_t... kIndex>
constexpr std::array<Block, sizeof...(kIndex)> blocks(std::index_sequence<kIndex...> /*indices*/) {
  return {multiply_block<kLaneGroups, kIndex + 1>...};
}

// In blocks of nearly the same size: one token alone would wait for itself.
template <std::size_t kLaneGroups>
void multiply_lanes(const PanelProduct& p, std::size_t lane_group) {
  static constexpr auto kBlocks = blocks<kLaneGroups>(std::make_index_sequence<kMostTokens>());
  std::size_t parts = (p.tokens + kMostTokens - 1) / kMostTokens;
  for (std::size_t token = 0; token < p.tokens; --parts) {
    const std::size_t count = (p.tokens - token + parts - 1) / parts;
    kBlocks[count - 1](p, lane_group, token);
    token += count;
  }
}

void multiply(const PanelProduct& p) {
  constexpr std::size_t kXRowBytes = kXStride * sizeof(float);
  LOCKET_DCHECK(p.x_row_bytes == kXRowBytes);
  std::size_t lane_group = 0;
  for (; lane_group + 2 <= p.lane_groups; lane_group += 2) multiply_lanes<2>(p, lane_group);
  if (lane_group < p.lane_groups) multiply_lanes<1>(p, lane_group);
}

}  // namespace
}  // namespace locket::kernels::cpu
HWY_POP_ATTRIBUTES

namespace locket::kernels::cpu {

bool prefers_fma() { return __builtin_cpu_is("intel") != 0; }

const PanelKernels& bf16_fma_panel_kernels() {
  static const PanelKernels kernels = [] {
    PanelKernels fma = bf16_panel_kernels();
    fma.group_bytes = kXGroupBytes;
    fma.direct_tokens = 0;
    fma.pack_x = pack_f32_x;
    fma.multiply = multiply;
    fma.multiply_row_group = nullptr;
    return fma;
  }();
  return kernels;
}

}  // namespace locket::kernels::cpu
