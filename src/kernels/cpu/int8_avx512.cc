// FP4 codes become bytes by one table lookup each; vpdpbusd multiplies four of them at a time.
#include "hwy/base.h"
#if HWY_COMPILER_GCC_ACTUAL
// GCC 12 takes the undefined pass-through operand inside its own intrinsics for a fault.
HWY_DIAGNOSTICS_OFF(disable : 4700, ignored "-Wmaybe-uninitialized")
HWY_DIAGNOSTICS_OFF(disable : 4700, ignored "-Wuninitialized")
#endif
#include <array>
#include <immintrin.h>

#include "kernels/cpu/int8_avx512.h"
#include "kernels/cpu/panel.h"
#include "numerics/fp4_e2m1.h"

namespace locket::kernels::cpu {
namespace {

struct alignas(64) Bytes {
  std::array<std::uint8_t, 64> bytes;
};

// Entry nibble | shift << 4 = (2w << shift) + offset.
constexpr Bytes weight_table(unsigned shift_mask, int offset) {
  Bytes table{};
  for (unsigned i = 0; i < 64; ++i) {
    const float weight = numerics::to_float(numerics::Fp4E2m1{static_cast<std::uint8_t>(i % 16)});
    const int value = static_cast<int>(2.0f * weight) * (1 << (i / 16 & shift_mask)) + offset;
    table.bytes[i] = static_cast<std::uint8_t>(value);
  }
  return table;
}

// Byte `block * 16 + lane` into the low byte or into all bytes of dword `lane`.
constexpr Bytes lane_bytes(unsigned block) {
  Bytes order{};
  for (unsigned i = 0; i < 64; ++i) {
    order.bytes[i] = static_cast<std::uint8_t>(block * 16 + i / 4);
  }
  return order;
}

// A lookup reads six bits; where there is no shift, the upper two do not matter.
constexpr Bytes kDirectWeights = weight_table(0, kInt8WeightOffset);
constexpr Bytes kSignedWeights = weight_table(3, 0);
constexpr int kFoldedOffset = kInt8WeightOffset << kMostFoldedSpan;
constexpr Bytes kUnsignedWeights = weight_table(3, kFoldedOffset);
constexpr std::array<Bytes, kInt8GroupBlocks> kLaneBytes = {lane_bytes(0), lane_bytes(1),
                                                            lane_bytes(2), lane_bytes(3)};
constexpr std::size_t kBlockVectors = 4;  // of FP4 codes
constexpr __mmask64 kLowBytes = 0x1111111111111111u;

}  // namespace
}  // namespace locket::kernels::cpu

HWY_PUSH_ATTRIBUTES("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vnni,fma,avx2")
namespace locket::kernels::cpu {
namespace {

HWY_INLINE __m512i load(const void* at) { return _mm512_loadu_si512(at); }

HWY_INLINE __m512i broadcast(const std::int8_t* at) {
  std::int32_t four;
  __builtin_memcpy(&four, at, sizeof(four));
  return _mm512_set1_epi32(four);
}

// Per lane over the four blocks, in every quarter.
HWY_INLINE __m512i lowest_code(__m512i codes) {
  const __m512i half = _mm512_min_epu8(codes, _mm512_shuffle_i32x4(codes, codes, 0x4E));
  return _mm512_min_epu8(half, _mm512_shuffle_i32x4(half, half, 0xB1));
}

HWY_INLINE __m512i highest_code(__m512i codes) {
  const __m512i half = _mm512_max_epu8(codes, _mm512_shuffle_i32x4(codes, codes, 0x4E));
  return _mm512_max_epu8(half, _mm512_shuffle_i32x4(half, half, 0xB1));
}

HWY_INLINE bool any_above(__m512i bytes, unsigned most) {
  return _mm512_cmpgt_epu8_mask(bytes, _mm512_set1_epi8(static_cast<char>(most))) != 0;
}

// 2^(code - distance - 128) of the first quarter's codes. REQUIRES: code - distance >= 2.
HWY_INLINE __m512 power_of_code(__m512i codes, unsigned distance) {
  const __m512i wide = _mm512_cvtepu8_epi32(_mm512_castsi512_si128(codes));
  const __m512i less = _mm512_set1_epi32(static_cast<int>(distance + 1));
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_sub_epi32(wide, less), 23));
}

// sums += products of four bytes a lane. In the form of the intrinsic, GCC 12 keeps copies of the
// sums on the stack.
HWY_INLINE void add_products(__m512i& sums, __m512i weights, __m512i codes) {
  asm("vpdpbusd %2, %1, %0" : "+v"(sums) : "v"(weights), "v"(codes));
}

// Sums of one block of 32 columns of kTokens tokens.
template <std::size_t kTokens>
HWY_INLINE void sum_block(const std::byte* tile, __m512i table, const std::int8_t* codes,
                          __m512i (&sums)[kTokens]) {
#pragma GCC unroll 4
  for (std::size_t i = 0; i < kBlockVectors; ++i) {
    const __m512i nibbles = load(tile + i * 64);
    const __m512i even = _mm512_permutexvar_epi8(nibbles, table);
    const __m512i odd = _mm512_permutexvar_epi8(_mm512_srli_epi16(nibbles, 4), table);
#pragma GCC unroll 8
    for (std::size_t t = 0; t < kTokens; ++t) {
      add_products(sums[t], even, broadcast(codes + t * kInt8GroupColumns + i * 8));
    }
#pragma GCC unroll 8
    for (std::size_t t = 0; t < kTokens; ++t) {
      add_products(sums[t], odd, broadcast(codes + t * kInt8GroupColumns + i * 8 + 4));
    }
  }
}

// The definition: blocks [4][16] with their scales, in double.
HWY_INLINE __m512 add_in_double(const __m512i (&blocks)[kInt8GroupBlocks],
                                const std::byte* scales) {
  __m512d low = _mm512_setzero_pd();
  __m512d high = _mm512_setzero_pd();
  for (std::size_t b = 0; b < kInt8GroupBlocks; ++b) {
    const auto* codes = reinterpret_cast<const __m128i*>(scales + b * kInt8Lanes);
    const __m128i both = _mm_loadu_si128(codes);
    const __m512i bias = _mm512_set1_epi64(1023 - 128);
    const auto power = [&](__m128i eight) {
      const __m512i exponent = _mm512_add_epi64(_mm512_cvtepu8_epi64(eight), bias);
      return _mm512_castsi512_pd(_mm512_slli_epi64(exponent, 52));
    };
    const __m512d first = _mm512_cvtepi32_pd(_mm512_castsi512_si256(blocks[b]));
    const __m512d second = _mm512_cvtepi32_pd(_mm512_extracti64x4_epi64(blocks[b], 1));
    low = _mm512_add_pd(low, _mm512_mul_pd(first, power(both)));
    high = _mm512_add_pd(high, _mm512_mul_pd(second, power(_mm_srli_si128(both, 8))));
  }
  const __m512 result = _mm512_castps256_ps512(_mm512_cvtpd_ps(low));
  return _mm512_insertf32x8(result, _mm512_cvtpd_ps(high), 1);
}

// A chunk whose scales go too far apart, or too low, for integers; for one token.
HWY_NOINLINE __m512 chunk_in_double(const std::byte* tiles, const std::byte* scales,
                                    const std::int8_t* codes, const std::int32_t* offsets) {
  const __m512i table = load(kDirectWeights.bytes.data());
  __m512i blocks[kInt8GroupBlocks];
  for (std::size_t b = 0; b < kInt8GroupBlocks; ++b) {
    __m512i sum[1] = {_mm512_set1_epi32(offsets[b])};
    sum_block<1>(tiles + b * 256, table, codes + b * kInt8BlockColumns, sum);
    blocks[b] = sum[0];
  }
  return add_in_double(blocks, scales);
}

// Sums of the four blocks, each shifted by its distance from the lowest scale.
template <std::size_t kTokens>
HWY_INLINE void sum_chunk(const std::byte* tiles, __m512i table, __m512i above, const Int8Rows& x,
                          __m512i (&sums)[kTokens]) {
#pragma GCC unroll 4
  for (std::size_t b = 0; b < kInt8GroupBlocks; ++b) {
    __m512i block[kTokens];
#pragma GCC unroll 8
    for (std::size_t t = 0; t < kTokens; ++t) {
      block[t] = _mm512_set1_epi32(x.offsets[t * kInt8GroupBlocks + b]);
    }
    sum_block<kTokens>(tiles + b * 256, table, x.codes + b * kInt8BlockColumns, block);
    const __m512i order = load(kLaneBytes[b].bytes.data());
    const __m512i shift = _mm512_maskz_permutexvar_epi8(kLowBytes, order, above);
#pragma GCC unroll 8
    for (std::size_t t = 0; t < kTokens; ++t) {
      const __m512i shifted = _mm512_sllv_epi32(block[t], shift);
      sums[t] = b == 0 ? shifted : _mm512_add_epi32(sums[t], shifted);
    }
  }
}

template <std::size_t kTokens>
void multiply_rows(const Int8RowsProduct& p) {
  const __m512i table = load(kDirectWeights.bytes.data());
  Int8Rows x = p.x;
  __m512 totals[kTokens];
#pragma GCC unroll 8
  for (std::size_t t = 0; t < kTokens; ++t) {
    totals[t] = _mm512_loadu_ps(p.totals + t * p.totals_stride);
  }
  for (std::size_t chunk = 0; chunk < p.chunks; ++chunk) {
    const std::byte* tiles = p.tiles + chunk * kInt8ChunkBytes;
    const std::byte* scales = p.scales + chunk * kInt8ChunkScales;
    prefetch_ahead(tiles, kInt8ChunkBytes);
    prefetch_ahead(scales, kInt8ChunkScales);
    const __m512i codes = load(scales);
    const __m512i lowest = lowest_code(codes);
    const __m512i above = _mm512_sub_epi8(codes, lowest);
    const __mmask64 too_low =
        _mm512_cmplt_epu8_mask(lowest, _mm512_set1_epi8(static_cast<char>(kLeastInt8Scale)));
    if (HWY_LIKELY(too_low == 0 && !any_above(above, kMostInt8Span))) {
      __m512i sums[kTokens];
      sum_chunk<kTokens>(tiles, table, above, x, sums);
      const __m512 factor = power_of_code(lowest, 0);
#pragma GCC unroll 8
      for (std::size_t t = 0; t < kTokens; ++t) {
        const __m512 value = _mm512_mul_ps(_mm512_cvtepi32_ps(sums[t]), factor);
        totals[t] = _mm512_fmadd_ps(value, _mm512_set1_ps(x.scales[t]), totals[t]);
      }
    } else {
#pragma GCC unroll 8
      for (std::size_t t = 0; t < kTokens; ++t) {
        const __m512 value = chunk_in_double(tiles, scales, x.codes + t * kInt8GroupColumns,
                                             x.offsets + t * kInt8GroupBlocks);
        totals[t] = _mm512_fmadd_ps(value, _mm512_set1_ps(x.scales[t]), totals[t]);
      }
    }
    x.codes += x.token_stride * kInt8GroupColumns;
    x.scales += x.token_stride;
    x.offsets += x.token_stride * kInt8GroupBlocks;
  }
#pragma GCC unroll 8
  for (std::size_t t = 0; t < kTokens; ++t) {
    _mm512_storeu_ps(p.totals + t * p.totals_stride, totals[t]);
  }
}

// Vectors of 16 lanes x 4 columns: the even columns of eight, then the odd ones.
HWY_INLINE bool decode(const std::byte* tiles, const std::byte* scales, const Bytes& weights,
                       std::byte* panel, float* factors) {
  const __m512i table = load(weights.bytes.data());
  prefetch_ahead(tiles, kInt8ChunkBytes);
  prefetch_ahead(scales, kInt8ChunkScales);
  const __m512i codes = load(scales);
  const __m512i highest = highest_code(codes);
  const __m512i below = _mm512_sub_epi8(highest, codes);
  constexpr unsigned kLeast = kLeastInt8Scale + kMostFoldedSpan;
  const __mmask64 too_low =
      _mm512_cmplt_epu8_mask(highest, _mm512_set1_epi8(static_cast<char>(kLeast)));
  if (too_low != 0 || any_above(below, kMostFoldedSpan)) return false;
  _mm512_store_ps(factors, power_of_code(highest, kMostFoldedSpan));
  const __m512i shifts = _mm512_slli_epi16(
      _mm512_sub_epi8(_mm512_set1_epi8(static_cast<char>(kMostFoldedSpan)), below), 4);
  const __m512i nibble = _mm512_set1_epi8(15);
  constexpr int kFirstAndSecondOrThird = 0xEA;
  for (std::size_t b = 0; b < kInt8GroupBlocks; ++b) {
    const __m512i shift = _mm512_permutexvar_epi8(load(kLaneBytes[b].bytes.data()), shifts);
    for (std::size_t i = 0; i < kBlockVectors; ++i) {
      const __m512i pairs = load(tiles + (b * kBlockVectors + i) * 64);
      const __m512i even = _mm512_ternarylogic_epi32(pairs, nibble, shift, kFirstAndSecondOrThird);
      const __m512i odd = _mm512_ternarylogic_epi32(_mm512_srli_epi16(pairs, 4), nibble, shift,
                                                    kFirstAndSecondOrThird);
      std::byte* out = panel + (b * kBlockVectors + i) * 128;
      _mm512_store_si512(out, _mm512_permutexvar_epi8(even, table));
      _mm512_store_si512(out + 64, _mm512_permutexvar_epi8(odd, table));
    }
  }
  return true;
}

// Loops over tokens and lane groups are written as one, which GCC takes apart completely.
template <std::size_t kLaneGroups, std::size_t kTokens>
HWY_INLINE void multiply_block(const Int8PanelProduct& p, std::size_t token) {
  constexpr std::size_t kSums = kTokens * kLaneGroups;
  const Int8Rows x = p.x.part(token, kTokens);
  const std::byte* panel = p.panel;
  const std::size_t stride = p.totals_stride;
  float* totals = p.totals + token * stride;
  __m512i sums[kSums];
#pragma GCC unroll 24
  for (std::size_t i = 0; i < kSums; ++i) {
    const std::int32_t* offsets = x.offsets + i / kLaneGroups * kInt8GroupBlocks;
    const std::int32_t sum = offsets[0] + offsets[1] + offsets[2] + offsets[3];
    sums[i] = _mm512_set1_epi32(sum * (1 << kMostFoldedSpan));
  }
  for (std::size_t four = 0; four < kInt8GroupColumns / 4; ++four) {
    __m512i weights[kLaneGroups];
#pragma GCC unroll 2
    for (std::size_t l = 0; l < kLaneGroups; ++l) {
      weights[l] = load(panel + l * kInt8PanelBytes + four * 64);
    }
#pragma GCC unroll 24
    for (std::size_t i = 0; i < kSums; ++i) {
      const __m512i values = broadcast(x.codes + i / kLaneGroups * kInt8GroupColumns + four * 4);
      add_products(sums[i], weights[i % kLaneGroups], values);
    }
  }
#pragma GCC unroll 24
  for (std::size_t i = 0; i < kSums; ++i) {
    const std::size_t t = i / kLaneGroups;
    const std::size_t lane = i % kLaneGroups * kInt8Lanes;
    const __m512 factor = _mm512_loadu_ps(p.factors + lane);
    const __m512 value = _mm512_mul_ps(_mm512_cvtepi32_ps(sums[i]), factor);
    float* total = totals + t * stride + lane;
    const __m512 scale = _mm512_set1_ps(x.scales[t]);
    _mm512_storeu_ps(total, _mm512_fmadd_ps(value, scale, _mm512_loadu_ps(total)));
  }
}

template <std::size_t kLaneGroups>
void multiply_lanes(const Int8PanelProduct& p) {
  std::size_t token = 0;
  for (; token + 12 <= p.x.tokens; token += 12) multiply_block<kLaneGroups, 12>(p, token);
  for (; token + 4 <= p.x.tokens; token += 4) multiply_block<kLaneGroups, 4>(p, token);
  for (; token < p.x.tokens; ++token) multiply_block<kLaneGroups, 1>(p, token);
}

void multiply_panel(const Int8PanelProduct& p) {
  if (p.lane_groups == 2) return multiply_lanes<2>(p);
  multiply_lanes<1>(p);
}

void no_tiles() {}

}  // namespace

void multiply_int8_rows(const Int8RowsProduct& product) {
  static_assert(kInt8DirectTokens == 8);
  switch (product.x.tokens) {
    case 1:
      return multiply_rows<1>(product);
    case 2:
      return multiply_rows<2>(product);
    case 3:
      return multiply_rows<3>(product);
    case 4:
      return multiply_rows<4>(product);
    case 5:
      return multiply_rows<5>(product);
    case 6:
      return multiply_rows<6>(product);
    case 7:
      return multiply_rows<7>(product);
    default:
      return multiply_rows<8>(product);
  }
}

bool decode_int8_signed(const std::byte* tiles, const std::byte* scales, std::byte* panel,
                        float* factors) {
  return decode(tiles, scales, kSignedWeights, panel, factors);
}

bool decode_int8_unsigned(const std::byte* tiles, const std::byte* scales, std::byte* panel,
                          float* factors) {
  return decode(tiles, scales, kUnsignedWeights, panel, factors);
}

}  // namespace locket::kernels::cpu
HWY_POP_ATTRIBUTES

namespace locket::kernels::cpu {

const Int8Kernels& vnni_int8_kernels() {
  static const Int8Kernels kernels = {
      .direct_tokens = kInt8DirectTokens,
      .panel_from = 12,
      .token_block = 192,
      .multiply_rows = multiply_int8_rows,
      .decode = decode_int8_unsigned,
      .multiply_panel = multiply_panel,
      .begin_panels = no_tiles,
      .end_panels = no_tiles,
  };
  return kernels;
}

}  // namespace locket::kernels::cpu
