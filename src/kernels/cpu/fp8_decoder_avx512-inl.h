// The two lookups of fp8_tile.h for 64 codes. Included by .cc files that have included immintrin.h
// and hwy/base.h and are compiled for AVX-512 with VBMI by attributes.
#pragma once

#include "kernels/fp8_tile.h"

HWY_PUSH_ATTRIBUTES("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,fma,avx2")
namespace locket::kernels::cpu {

struct Fp8Lookup {
  __m512i lower;
  __m512i upper;
  __m512i high_of_lower;
  __m512i bits_of_upper;

  HWY_INLINE Fp8Lookup()
      : lower(_mm512_load_si512(kFp8Tile.lower.data())),
        upper(_mm512_load_si512(kFp8Tile.upper.data())),
        high_of_lower(_mm512_set1_epi8(static_cast<char>(0xBF))),
        bits_of_upper(_mm512_set1_epi8(static_cast<char>(0xC0))) {}

  // One vector of a tile as pairs of bfloat16, of columns (k, k + 4) and (k + 1, k + 5).
  HWY_INLINE void pairs(__m512i codes, __m512i& first, __m512i& second) const {
    constexpr int kLowerAndCodesOrMask = 0xE0;
    constexpr int kUpperOrCodesAndMask = 0xF8;
    const __m512i low = _mm512_ternarylogic_epi32(_mm512_permutexvar_epi8(codes, lower), codes,
                                                  high_of_lower, kLowerAndCodesOrMask);
    const __m512i high = _mm512_ternarylogic_epi32(_mm512_permutexvar_epi8(codes, upper), codes,
                                                   bits_of_upper, kUpperOrCodesAndMask);
    first = _mm512_unpacklo_epi8(low, high);
    second = _mm512_unpackhi_epi8(low, high);
  }
};

}  // namespace locket::kernels::cpu
HWY_POP_ATTRIBUTES
