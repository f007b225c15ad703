#include "hwy/base.h"
#if HWY_COMPILER_GCC_ACTUAL
// GCC 12 takes the undefined pass-through operand inside its own intrinsics for a fault.
HWY_DIAGNOSTICS_OFF(disable : 4700, ignored "-Wmaybe-uninitialized")
HWY_DIAGNOSTICS_OFF(disable : 4700, ignored "-Wuninitialized")
#endif
#include <algorithm>
#include <array>
#include <immintrin.h>
#include <utility>

#include "base/check.h"
#include "kernels/cpu/fp8_decoder_avx512-inl.h"
#include "kernels/cpu/fp8_rows.h"

HWY_PUSH_ATTRIBUTES("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,fma,avx2")
namespace locket::kernels::cpu {
namespace {

constexpr std::size_t kFp8Bytes = tile_bytes(WeightFormat::kFp8);
// Column groups whose factors are made at once.
constexpr std::size_t kStretch = 64;
constexpr std::size_t kGroupsAhead = 4;  // that are asked for from memory

// What sums are multiplied by, of up to kStretch tiles. False: a scale was outside.
struct alignas(64) Factors {
  std::uint32_t bits[kMostFp8RowGroups][kStretch];
};

HWY_INLINE __m512i sixteen_scales(WeightFormat format, const std::byte* scales, __mmask16 which) {
  if (format == WeightFormat::kFp8F32) return _mm512_maskz_loadu_epi32(which, scales);
  return _mm512_slli_epi32(_mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(which, scales)), 23);
}

// Factors of `count` tiles. False: a scale is outside.
HWY_INLINE bool make_factors(const Fp8Product& p, const std::byte* scales, std::size_t count,
                             std::uint32_t* factors) {
  const __m512i shift = _mm512_set1_epi32(static_cast<int>(kFp8TileShift << 23));
  const __m512i first = _mm512_set1_epi32(static_cast<int>(p.after_sum.first));
  const __m512i last = _mm512_set1_epi32(static_cast<int>(p.after_sum.last));
  unsigned outside = 0;
  for (std::size_t i = 0; i < count; i += 16) {
    const auto which = static_cast<__mmask16>((1u << std::min<std::size_t>(count - i, 16)) - 1);
    const __m512i bits = sixteen_scales(p.format, scales + i * tile_scale_bytes(p.format), which);
    const __m512i code = _mm512_and_si512(_mm512_srli_epi32(bits, 23), _mm512_set1_epi32(0xFF));
    outside |= _mm512_mask_cmplt_epu32_mask(which, code, first);
    outside |= _mm512_mask_cmpgt_epu32_mask(which, code, last);
    _mm512_store_si512(factors + i, _mm512_sub_epi32(bits, shift));
  }
  return outside == 0;
}

// sums += one column of weights times the same one of all tokens; `x` is at that of the first.
template <std::size_t kRows, std::size_t kTokens>
HWY_INLINE void add_products(const __m512 (&weights)[kRows], const float* x,
                             __m512 (&sums)[kRows][kTokens]) {
#pragma GCC unroll 16
  for (std::size_t t = 0; t < kTokens; ++t) {
    const __m512 value = _mm512_set1_ps(x[t * kGroupColumns]);
#pragma GCC unroll 4
    for (std::size_t r = 0; r < kRows; ++r) {
      sums[r][t] = _mm512_fmadd_ps(weights[r], value, sums[r][t]);
    }
  }
}

// The upper, then the lower of pairs of columns 4 apart; `x` is at the lower.
template <std::size_t kRows, std::size_t kTokens>
HWY_INLINE void add_pairs(const __m512i (&pairs)[kRows], const float* x,
                          __m512 (&sums)[kRows][kTokens]) {
  const __m512i upper = _mm512_set1_epi32(static_cast<int>(0xFFFF0000u));
  __m512 weights[kRows];
#pragma GCC unroll 4
  for (std::size_t r = 0; r < kRows; ++r) {
    weights[r] = _mm512_castsi512_ps(_mm512_and_si512(pairs[r], upper));
  }
  add_products<kRows, kTokens>(weights, x + 4, sums);
#pragma GCC unroll 4
  for (std::size_t r = 0; r < kRows; ++r) {
    weights[r] = _mm512_castsi512_ps(_mm512_slli_epi32(pairs[r], 16));
  }
  add_products<kRows, kTokens>(weights, x, sums);
}

// Sums of one tile of each row group.
template <std::size_t kRows, std::size_t kTokens>
HWY_INLINE void add_tiles(const Fp8Lookup& lookup, const std::byte* tile, std::size_t row_bytes,
                          std::size_t ahead, const float* x, __m512 (&sums)[kRows][kTokens]) {
  for (std::size_t eight = 0; eight < 4; ++eight, tile += 128, x += 8) {
#pragma GCC unroll 2
    for (std::size_t half = 0; half < 2; ++half) {
      __m512i first[kRows];
      __m512i second[kRows];
#pragma GCC unroll 4
      for (std::size_t r = 0; r < kRows; ++r) {
        const std::byte* codes = tile + r * row_bytes + half * 64;
        _mm_prefetch(reinterpret_cast<const char*>(codes + ahead), _MM_HINT_T0);
        lookup.pairs(_mm512_load_si512(codes), first[r], second[r]);
      }
      add_pairs<kRows, kTokens>(first, x + half * 2, sums);
      add_pairs<kRows, kTokens>(second, x + half * 2 + 1, sums);
    }
  }
}

// totals += factors * sums of column groups [first, last).
template <std::size_t kRows, std::size_t kTokens>
HWY_INLINE void add_groups(const Fp8Product& p, const Factors& factors, std::size_t first,
                           std::size_t last) {
  const Fp8Lookup lookup;
  const std::size_t row_bytes = p.groups * kFp8Bytes;
  for (std::size_t group = first; group < last; ++group) {
    __m512 sums[kRows][kTokens];
#pragma GCC unroll 16
    for (std::size_t i = 0; i < kRows * kTokens; ++i) {
      sums[i / kTokens][i % kTokens] = _mm512_setzero_ps();
    }
    // Behind the end of a row group stands its neighbour; the next ones begin after all of these.
    const std::size_t skipped = group + kGroupsAhead < p.groups ? 0 : (kRows - 1) * row_bytes;
    add_tiles<kRows, kTokens>(lookup, p.tiles + group * kFp8Bytes, row_bytes,
                              kGroupsAhead * kFp8Bytes + skipped,
                              p.x + group * kGroupColumns * kTokens, sums);
#pragma GCC unroll 4
    for (std::size_t r = 0; r < kRows; ++r) {
      const __m512 factor =
          _mm512_castsi512_ps(_mm512_set1_epi32(static_cast<int>(factors.bits[r][group - first])));
#pragma GCC unroll 16
      for (std::size_t t = 0; t < kTokens; ++t) {
        float* total = p.totals + (r * kTokens + t) * kTileLanes;
        _mm512_store_ps(total, _mm512_fmadd_ps(sums[r][t], factor, _mm512_load_ps(total)));
      }
    }
  }
}

template <std::size_t kRows, std::size_t kTokens>
bool multiply(const Fp8Product& p) {
  std::fill_n(p.totals, kRows * kTokens * kTileLanes, 0.0f);
  Factors factors;
  for (std::size_t first = 0; first < p.groups; first += kStretch) {
    const std::size_t count = std::min(kStretch, p.groups - first);
    for (std::size_t r = 0; r < kRows; ++r) {
      const std::byte* scales = p.scales + (r * p.groups + first) * tile_scale_bytes(p.format);
      if (!make_factors(p, scales, count, factors.bits[r])) return false;
    }
    add_groups<kRows, kTokens>(p, factors, first, first + count);
  }
  return true;
}

// All row groups at once, or one after the other.
template <std::size_t kTokens>
bool multiply_tokens(const Fp8Product& p) {
  constexpr std::size_t kRows = fp8_row_groups(kTokens);
  if (p.row_groups == kRows) return multiply<kRows, kTokens>(p);
  Fp8Product one = p;
  one.row_groups = 1;
  for (std::size_t r = 0; r < p.row_groups; ++r) {
    if (!multiply<1, kTokens>(one)) return false;
    one.tiles += p.groups * kFp8Bytes;
    one.scales += p.groups * tile_scale_bytes(p.format);
    one.totals += kTokens * kTileLanes;
  }
  return true;
}

using Multiply = bool (*)(const Fp8Product& product);

template <std::size_t... kIndex>
constexpr std::array<Multiply, sizeof...(kIndex)> by_tokens(
    std::index_sequence<kIndex...> /*indices*/) {
  return {multiply_tokens<kIndex + 1>...};
}

}  // namespace

bool multiply_fp8(const Fp8Product& product) {
  static constexpr auto kByTokens = by_tokens(std::make_index_sequence<kMostFp8Tokens>());
  LOCKET_DCHECK(product.tokens >= 1 && product.tokens <= kMostFp8Tokens);
  LOCKET_DCHECK(product.row_groups <= fp8_row_groups(product.tokens));
  return kByTokens[product.tokens - 1](product);
}

}  // namespace locket::kernels::cpu
HWY_POP_ATTRIBUTES
