// The int8 products with AVX2: vpmaddubsw adds two products of bytes in 16 bits. A weight is at
// most 24 and a code 127, so four such pairs, 24384, still fit.
#include <array>
#include <immintrin.h>

#include "hwy/base.h"
#include "kernels/cpu/int8_kernels.h"
#include "kernels/cpu/panel.h"
#include "numerics/fp4_e2m1.h"

namespace locket::kernels::cpu {
namespace {

constexpr std::size_t kHalfLanes = 8;
constexpr std::size_t kHalves = kInt8Lanes / kHalfLanes;
constexpr std::size_t kDirectTokens = 4;

struct alignas(32) WeightTable {
  std::array<std::uint8_t, 32> bytes;
};

constexpr WeightTable weight_table() {
  WeightTable table{};
  for (unsigned i = 0; i < 32; ++i) {
    const float weight = numerics::to_float(numerics::Fp4E2m1{static_cast<std::uint8_t>(i % 16)});
    table.bytes[i] = static_cast<std::uint8_t>(static_cast<int>(2.0f * weight) + kInt8WeightOffset);
  }
  return table;
}

constexpr WeightTable kWeights = weight_table();

}  // namespace
}  // namespace locket::kernels::cpu

HWY_PUSH_ATTRIBUTES("avx2,fma")
namespace locket::kernels::cpu {
namespace {

HWY_INLINE __m256i load(const void* at) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(at));
}

HWY_INLINE __m256i broadcast(const std::int8_t* at) {
  std::int32_t four;
  __builtin_memcpy(&four, at, sizeof(four));
  return _mm256_set1_epi32(four);
}

// The scale codes of eight rows of one block.
HWY_INLINE __m256i scale_codes(const std::byte* scales, std::size_t block, std::size_t half) {
  const std::byte* at = scales + block * kInt8Lanes + half * kHalfLanes;
  return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(at)));
}

// Sums of one block of kTokens tokens, for eight rows.
template <std::size_t kTokens>
HWY_INLINE void sum_block(const std::byte* tile, const std::int8_t* codes,
                          __m256i (&sums)[kTokens]) {
  const __m256i table = load(kWeights.bytes.data());
  const __m256i nibble = _mm256_set1_epi8(15);
  const __m256i ones = _mm256_set1_epi16(1);
  __m256i even_sums[kTokens];
  __m256i odd_sums[kTokens];
#pragma GCC unroll 4
  for (std::size_t t = 0; t < kTokens; ++t) even_sums[t] = odd_sums[t] = _mm256_setzero_si256();
#pragma GCC unroll 4
  for (std::size_t i = 0; i < 4; ++i) {
    const __m256i pairs = load(tile + i * 64);
    const __m256i even = _mm256_shuffle_epi8(table, _mm256_and_si256(pairs, nibble));
    const __m256i odd =
        _mm256_shuffle_epi8(table, _mm256_and_si256(_mm256_srli_epi16(pairs, 4), nibble));
#pragma GCC unroll 4
    for (std::size_t t = 0; t < kTokens; ++t) {
      const std::int8_t* at = codes + t * kInt8GroupColumns + i * 8;
      even_sums[t] = _mm256_add_epi16(even_sums[t], _mm256_maddubs_epi16(even, broadcast(at)));
      odd_sums[t] = _mm256_add_epi16(odd_sums[t], _mm256_maddubs_epi16(odd, broadcast(at + 4)));
    }
  }
#pragma GCC unroll 4
  for (std::size_t t = 0; t < kTokens; ++t) {
    sums[t] = _mm256_add_epi32(_mm256_madd_epi16(even_sums[t], ones),
                               _mm256_add_epi32(sums[t], _mm256_madd_epi16(odd_sums[t], ones)));
  }
}

// 2^(code - 128) of four codes.
HWY_INLINE __m256d power(__m128i codes) {
  const __m256i exponent =
      _mm256_add_epi64(_mm256_cvtepi32_epi64(codes), _mm256_set1_epi64x(1023 - 128));
  return _mm256_castsi256_pd(_mm256_slli_epi64(exponent, 52));
}

// The definition, in double.
HWY_INLINE __m256 add_in_double(const __m256i (&blocks)[kInt8GroupBlocks],
                                const __m256i (&codes)[kInt8GroupBlocks]) {
  __m256d low = _mm256_setzero_pd();
  __m256d high = _mm256_setzero_pd();
#pragma GCC unroll 4
  for (std::size_t b = 0; b < kInt8GroupBlocks; ++b) {
    const __m256d first = _mm256_cvtepi32_pd(_mm256_castsi256_si128(blocks[b]));
    const __m256d second = _mm256_cvtepi32_pd(_mm256_extracti128_si256(blocks[b], 1));
    low = _mm256_add_pd(low, _mm256_mul_pd(first, power(_mm256_castsi256_si128(codes[b]))));
    high = _mm256_add_pd(high, _mm256_mul_pd(second, power(_mm256_extracti128_si256(codes[b], 1))));
  }
  return _mm256_set_m128(_mm256_cvtpd_ps(high), _mm256_cvtpd_ps(low));
}

// What the scale codes of eight rows allow, and how they are applied then.
struct ChunkScales {
  __m256i codes[kInt8GroupBlocks];
  __m256i lowest;
  bool integers;

  ChunkScales(const std::byte* scales, std::size_t half) {
#pragma GCC unroll 4
    for (std::size_t b = 0; b < kInt8GroupBlocks; ++b) codes[b] = scale_codes(scales, b, half);
    lowest = _mm256_min_epi32(_mm256_min_epi32(codes[0], codes[1]),
                              _mm256_min_epi32(codes[2], codes[3]));
    const __m256i highest = _mm256_max_epi32(_mm256_max_epi32(codes[0], codes[1]),
                                             _mm256_max_epi32(codes[2], codes[3]));
    const __m256i too_wide = _mm256_cmpgt_epi32(_mm256_sub_epi32(highest, lowest),
                                                _mm256_set1_epi32(int{kMostInt8Span}));
    const __m256i too_low = _mm256_cmpgt_epi32(_mm256_set1_epi32(int{kLeastInt8Scale}), lowest);
    const __m256i either = _mm256_or_si256(too_wide, too_low);
    integers = _mm256_testz_si256(either, either) != 0;
  }

  __m256 value(const __m256i (&blocks)[kInt8GroupBlocks]) const {
    if (!integers) return add_in_double(blocks, codes);
    __m256i sum = _mm256_setzero_si256();
#pragma GCC unroll 4
    for (std::size_t b = 0; b < kInt8GroupBlocks; ++b) {
      const __m256i shift = _mm256_sub_epi32(codes[b], lowest);
      sum = _mm256_add_epi32(sum, _mm256_sllv_epi32(blocks[b], shift));
    }
    const __m256i factor = _mm256_slli_epi32(_mm256_sub_epi32(lowest, _mm256_set1_epi32(1)), 23);
    return _mm256_mul_ps(_mm256_cvtepi32_ps(sum), _mm256_castsi256_ps(factor));
  }
};

template <std::size_t kTokens>
void add_half_chunk(const Int8RowsProduct& p, std::size_t chunk, std::size_t half) {
  const std::byte* tiles = p.tiles + chunk * kInt8ChunkBytes + half * kHalfLanes * 4;
  const ChunkScales scales(p.scales + chunk * kInt8ChunkScales, half);
  const std::size_t before = chunk * p.x.token_stride;
  const std::int8_t* codes = p.x.codes + before * kInt8GroupColumns;
  const std::int32_t* offsets = p.x.offsets + before * kInt8GroupBlocks;
  __m256i blocks[kTokens][kInt8GroupBlocks];
#pragma GCC unroll 4
  for (std::size_t b = 0; b < kInt8GroupBlocks; ++b) {
    __m256i sums[kTokens];
#pragma GCC unroll 4
    for (std::size_t t = 0; t < kTokens; ++t) {
      sums[t] = _mm256_set1_epi32(offsets[t * kInt8GroupBlocks + b]);
    }
    sum_block<kTokens>(tiles + b * 256, codes + b * kInt8BlockColumns, sums);
#pragma GCC unroll 4
    for (std::size_t t = 0; t < kTokens; ++t) blocks[t][b] = sums[t];
  }
#pragma GCC unroll 4
  for (std::size_t t = 0; t < kTokens; ++t) {
    float* total = p.totals + t * p.totals_stride + half * kHalfLanes;
    const __m256 scale = _mm256_set1_ps(p.x.scales[before + t]);
    _mm256_storeu_ps(total,
                     _mm256_fmadd_ps(scales.value(blocks[t]), scale, _mm256_loadu_ps(total)));
  }
}

template <std::size_t kTokens>
void multiply_rows_of(const Int8RowsProduct& p) {
  for (std::size_t chunk = 0; chunk < p.chunks; ++chunk) {
    prefetch_ahead(p.tiles + chunk * kInt8ChunkBytes, kInt8ChunkBytes);
    for (std::size_t half = 0; half < kHalves; ++half) add_half_chunk<kTokens>(p, chunk, half);
  }
}

void multiply_rows(const Int8RowsProduct& p) {
  static_assert(kDirectTokens == 4);
  switch (p.x.tokens) {
    case 1:
      return multiply_rows_of<1>(p);
    case 2:
      return multiply_rows_of<2>(p);
    case 3:
      return multiply_rows_of<3>(p);
    default:
      return multiply_rows_of<4>(p);
  }
}

}  // namespace
}  // namespace locket::kernels::cpu
HWY_POP_ATTRIBUTES

namespace locket::kernels::cpu {

const Int8Kernels& avx2_int8_kernels() {
  static const Int8Kernels kernels = {
      .direct_tokens = kDirectTokens,
      .panel_from = 0,
      .token_block = 0,
      .multiply_rows = multiply_rows,
      .decode = nullptr,
      .multiply_panel = nullptr,
      .begin_panels = nullptr,
      .end_panels = nullptr,
  };
  return kernels;
}

}  // namespace locket::kernels::cpu
