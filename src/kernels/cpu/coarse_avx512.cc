// Four codes of a row in a double word times the two planes of the activations by vpdpbusd. The
// sums of a plane stay below 255 * 127 * 65536 < 2^31.
#include "hwy/base.h"
#if HWY_COMPILER_GCC_ACTUAL
// GCC 12 takes the undefined pass-through operand inside its own intrinsics for a fault.
HWY_DIAGNOSTICS_OFF(disable : 4700, ignored "-Wmaybe-uninitialized")
HWY_DIAGNOSTICS_OFF(disable : 4700, ignored "-Wuninitialized")
#endif
#include <array>
#include <immintrin.h>

#include "kernels/cpu/coarse_sums.h"
#include "kernels/cpu/panel.h"

HWY_PUSH_ATTRIBUTES("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,fma,avx2")
namespace locket::kernels::cpu {
namespace {

constexpr std::size_t kQuadBytes = kCoarseLanes * kCoarseQuad;
constexpr std::size_t kPlaneBytes = kCoarseQuad * 2;  // of a quad of activations

HWY_INLINE __m512i broadcast(const std::int8_t* at) {
  std::int32_t four;
  __builtin_memcpy(&four, at, sizeof(four));
  return _mm512_set1_epi32(four);
}

// In the form of the intrinsic, GCC 12 keeps copies of the sums on the stack.
HWY_INLINE void add_products(__m512i& sums, __m512i weights, __m512i codes) {
  asm("vpdpbusd %2, %1, %0" : "+v"(sums) : "v"(weights), "v"(codes));
}

HWY_INLINE __m512i combine(__m256i high, __m256i low, __m512i offset) {
  const __m512i upper = _mm512_slli_epi64(_mm512_cvtepi32_epi64(high), 7);
  return _mm512_sub_epi64(_mm512_add_epi64(upper, _mm512_cvtepi32_epi64(low)), offset);
}

HWY_INLINE void store_sums(__m512i high, __m512i low, std::int64_t offset, std::int64_t* out) {
  const __m512i offsets = _mm512_set1_epi64(offset);
  _mm512_storeu_si512(out,
                      combine(_mm512_castsi512_si256(high), _mm512_castsi512_si256(low), offsets));
  _mm512_storeu_si512(out + 8, combine(_mm512_extracti64x4_epi64(high, 1),
                                       _mm512_extracti64x4_epi64(low, 1), offsets));
}

// One row group. Few tokens have sums of even and odd quads, to keep the multipliers busy.
template <std::size_t kTokens>
HWY_INLINE void sum_row_group(const std::byte* codes, const CoarseRows& x, std::size_t stride,
                              std::int64_t* out) {
  constexpr std::size_t kChains = kTokens <= 2 ? 2 : 1;
  __m512i high[kChains][kTokens];
  __m512i low[kChains][kTokens];
#pragma GCC unroll 16
  for (std::size_t i = 0; i < kChains * kTokens; ++i) {
    high[i / kTokens][i % kTokens] = low[i / kTokens][i % kTokens] = _mm512_setzero_si512();
  }
  const std::int8_t* planes[kTokens];
  for (std::size_t t = 0; t < kTokens; ++t) planes[t] = x.token_planes(t);
  const auto add = [&](std::size_t quad, std::size_t chain) {
    const __m512i weights = _mm512_loadu_si512(codes + quad * kQuadBytes);
#pragma GCC unroll 8
    for (std::size_t t = 0; t < kTokens; ++t) {
      const std::int8_t* at = planes[t] + quad * kPlaneBytes;
      add_products(high[chain][t], weights, broadcast(at));
      add_products(low[chain][t], weights, broadcast(at + kCoarseQuad));
    }
  };
  std::size_t quad = 0;
  for (; quad + 4 <= x.quads; quad += 4) {
    prefetch_ahead(codes + quad * kQuadBytes, 4 * kQuadBytes);
#pragma GCC unroll 4
    for (std::size_t i = 0; i < 4; ++i) add(quad + i, i % kChains);
  }
  for (; quad < x.quads; ++quad) add(quad, 0);
#pragma GCC unroll 8
  for (std::size_t t = 0; t < kTokens; ++t) {
    if constexpr (kChains == 2) {
      high[0][t] = _mm512_add_epi32(high[0][t], high[1][t]);
      low[0][t] = _mm512_add_epi32(low[0][t], low[1][t]);
    }
    store_sums(high[0][t], low[0][t], kCoarseOffset * x.sums[t], out + t * stride);
  }
}

template <std::size_t kTokens>
void sum_row_groups(const CoarseMatrix& w, const CoarseRows& x, std::size_t first, std::size_t last,
                    std::int64_t* out) {
  const std::size_t stride = (last - first) * kCoarseLanes;
  for (std::size_t group = first; group < last; ++group) {
    sum_row_group<kTokens>(w.codes.data() + group * x.quads * kQuadBytes, x, stride,
                           out + (group - first) * kCoarseLanes);
  }
}

}  // namespace
}  // namespace locket::kernels::cpu
HWY_POP_ATTRIBUTES

namespace locket::kernels::cpu {

void vnni_coarse_sums(const CoarseMatrix& w, const CoarseRows& x, std::size_t first,
                      std::size_t last, std::int64_t* out) {
  constexpr std::array kByTokens = {sum_row_groups<1>, sum_row_groups<2>, sum_row_groups<3>,
                                    sum_row_groups<4>, sum_row_groups<5>, sum_row_groups<6>,
                                    sum_row_groups<7>, sum_row_groups<8>};
  static_assert(kByTokens.size() == kMostCoarseRows);
  kByTokens[x.tokens - 1](w, x, first, last, out);
}

}  // namespace locket::kernels::cpu
