#include "hwy/base.h"
#if HWY_COMPILER_GCC_ACTUAL
// GCC 12 takes the undefined pass-through operand inside its own intrinsics for a fault.
HWY_DIAGNOSTICS_OFF(disable : 4700, ignored "-Wmaybe-uninitialized")
HWY_DIAGNOSTICS_OFF(disable : 4700, ignored "-Wuninitialized")
#endif
#include <algorithm>
#include <array>
#include <bit>
#include <immintrin.h>

#include "base/check.h"
#include "kernels/cpu/bf16_tables.h"
#include "kernels/cpu/fp4_digits.h"

namespace locket::kernels::cpu {
namespace {

constexpr std::size_t kFp4Bytes = tile_bytes(WeightFormat::kFp4);
constexpr int kOffset = 12;

// 2 * value + 12 of every code, four times: a lookup reads six bits, the upper two do not matter.
constexpr ByteTable raised_codes() {
  ByteTable table{};
  for (unsigned i = 0; i < 64; ++i) {
    const float value = numerics::to_float(numerics::Fp4E2m1{static_cast<std::uint8_t>(i % 16)});
    table.bytes[i] = static_cast<std::uint8_t>(static_cast<int>(2.0F * value) + kOffset);
  }
  return table;
}

constexpr ByteTable kRaised = raised_codes();

// Where the bytes of 16-bit integers of a group go in DigitGroup.
constexpr ByteTable digit_places() {
  ByteTable order{};
  for (unsigned i = 0; i < 64; ++i) {
    const unsigned eight = i / 16;
    const unsigned upper = i / 8 % 2;
    const unsigned odd = i / 4 % 2;
    const unsigned column = eight * 8 + i % 4 * 2 + odd;
    order.bytes[i] = static_cast<std::uint8_t>(column * 2 + upper);
  }
  return order;
}

constexpr ByteTable kDigitPlaces = digit_places();

}  // namespace
}  // namespace locket::kernels::cpu

HWY_PUSH_ATTRIBUTES("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vnni,avx512bf16,fma,avx2")
namespace locket::kernels::cpu {
namespace {

HWY_INLINE bool all_inside(const std::byte* scales, std::size_t count, const ScaleRange& range) {
  const __m128i first = _mm_set1_epi8(static_cast<char>(range.first));
  const __m128i span = _mm_set1_epi8(static_cast<char>(range.last - range.first));
  unsigned outside = 0;
  for (std::size_t i = 0; i < count; i += kTileLanes) {
    const __m128i codes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(scales + i));
    outside |= _mm_cmpgt_epu8_mask(_mm_sub_epi8(codes, first), span);
  }
  return outside == 0;
}

HWY_INLINE __m512 factors_of(const std::byte* scales) {
  const __m512i codes =
      _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(scales)));
  return _mm512_castsi512_ps(_mm512_slli_epi32(codes, 23));
}

HWY_INLINE __m512i broadcast(const std::int8_t* four) {
  std::int32_t bytes = 0;
  __builtin_memcpy(&bytes, four, sizeof bytes);
  return _mm512_set1_epi32(bytes);
}

// totals[t] += factors * sums of one tile with row t, by integers.
template <std::size_t kTokens>
HWY_INLINE void add_digits(const DigitProduct& p, std::size_t group, const __m512i (&weights)[8],
                           __m512 factors, __m512 (&totals)[kTokens]) {
#pragma GCC unroll 4
  for (std::size_t t = 0; t < kTokens; ++t) {
    const DigitGroup& x = p.digits[t * p.groups + group];
    const DigitScale& scale = p.digit_scales[t * p.groups + group];
    __m512i lower = _mm512_set1_epi32(scale.offset);
    __m512i upper = _mm512_setzero_si512();
#pragma GCC unroll 4
    for (std::size_t eight = 0; eight < 4; ++eight) {
      const auto& bytes = x.bytes[eight];
      lower = _mm512_dpbusd_epi32(lower, weights[eight * 2], broadcast(bytes[0]));
      upper = _mm512_dpbusd_epi32(upper, weights[eight * 2], broadcast(bytes[2]));
      lower = _mm512_dpbusd_epi32(lower, weights[eight * 2 + 1], broadcast(bytes[1]));
      upper = _mm512_dpbusd_epi32(upper, weights[eight * 2 + 1], broadcast(bytes[3]));
    }
    const __m512i sum = _mm512_add_epi32(lower, _mm512_slli_epi32(upper, 8));
    const __m512 exact = _mm512_mul_ps(_mm512_cvtepi32_ps(sum), _mm512_set1_ps(scale.unit));
    totals[t] = _mm512_fmadd_ps(exact, factors, totals[t]);
  }
}

// The same by pairs, in the order of sum_order.h.
template <std::size_t kTokens>
void add_pairs(const DigitProduct& p, std::size_t group, __m512 factors,
               __m512 (&totals)[kTokens]) {
  const __m512i table = _mm512_load_si512(kFp4.words.data());
  __m512 sums[kTokens];
  for (__m512& sum : sums) sum = _mm512_setzero_ps();
  for (std::size_t pair = 0; pair < kGroupPairs; ++pair) {
    const __m512i codes = _mm512_load_si512(p.tiles + group * kFp4Bytes + pair / 4 * 64);
    const __m512i moved =
        _mm512_srl_epi16(codes, _mm_cvtsi32_si128(static_cast<int>(pair % 4 * 4)));
    const __m512i weights = _mm512_permutexvar_epi16(moved, table);
    for (std::size_t t = 0; t < kTokens; ++t) {
      std::int32_t x = 0;
      __builtin_memcpy(&x, p.x + t * p.x_row_bytes + (group * kGroupPairs + pair) * 4, sizeof x);
      sums[t] = _mm512_dpbf16_ps(sums[t], (__m512bh)weights, (__m512bh)_mm512_set1_epi32(x));
    }
  }
  for (std::size_t t = 0; t < kTokens; ++t) {
    totals[t] = _mm512_fmadd_ps(sums[t], factors, totals[t]);
  }
}

template <std::size_t kTokens>
void multiply_groups(const DigitProduct& p) {
  const __m512i table = _mm512_load_si512(kRaised.bytes.data());
  __m512 totals[kTokens];
  for (__m512& total : totals) total = _mm512_setzero_ps();
  for (std::size_t group = 0; group < p.groups; ++group) {
    const std::byte* tile = p.tiles + group * kFp4Bytes;
    prefetch_ahead(tile, kFp4Bytes);
    const __m512 factors = factors_of(p.scales + group * kTileLanes);
    if (HWY_UNLIKELY(p.rough[group] != 0)) {
      add_pairs<kTokens>(p, group, factors, totals);
      continue;
    }
    __m512i weights[8];
#pragma GCC unroll 4
    for (std::size_t eight = 0; eight < 4; ++eight) {
      const __m512i codes = _mm512_load_si512(tile + eight * 64);
      weights[eight * 2] = _mm512_permutexvar_epi8(codes, table);
      weights[eight * 2 + 1] = _mm512_permutexvar_epi8(_mm512_srli_epi16(codes, 4), table);
    }
    add_digits<kTokens>(p, group, weights, factors, totals);
  }
  for (std::size_t t = 0; t < kTokens; ++t) _mm512_storeu_ps(p.totals + t * kTileLanes, totals[t]);
}

}  // namespace

// A group of zeros has unit 1. Exponents are kept far from both ends, so that the unit is normal.
bool digits_of(const float* x, DigitGroup& digits, DigitScale& scale) {
  const __m512 first = _mm512_loadu_ps(x);
  const __m512 second = _mm512_loadu_ps(x + 16);
  const float largest =
      _mm512_reduce_max_ps(_mm512_max_ps(_mm512_abs_ps(first), _mm512_abs_ps(second)));
  constexpr std::uint32_t kLowest = 64;
  constexpr std::uint32_t kHighest = 190;
  constexpr std::uint32_t kBits = 13;
  std::uint32_t exponent = std::bit_cast<std::uint32_t>(largest) >> 23;
  if (exponent == 0) exponent = 127 + kBits;
  if (exponent < kLowest || exponent > kHighest) return false;
  const float inverse = std::bit_cast<float>((254 + kBits - exponent) << 23);
  const __m512 scaled_first = _mm512_mul_ps(first, _mm512_set1_ps(inverse));
  const __m512 scaled_second = _mm512_mul_ps(second, _mm512_set1_ps(inverse));
  const __m512i low = _mm512_cvtps_epi32(scaled_first);
  const __m512i high = _mm512_cvtps_epi32(scaled_second);
  const auto whole = _mm512_cmp_ps_mask(_mm512_cvtepi32_ps(low), scaled_first, _CMP_EQ_OQ) &
                     _mm512_cmp_ps_mask(_mm512_cvtepi32_ps(high), scaled_second, _CMP_EQ_OQ);
  if (whole != 0xFFFF) return false;
  // The lower byte is signed: the upper one is rounded.
  const __m512i words = _mm512_inserti64x4(_mm512_castsi256_si512(_mm512_cvtepi32_epi16(low)),
                                           _mm512_cvtepi32_epi16(high), 1);
  const __m512i upper =
      _mm512_slli_epi16(_mm512_srai_epi16(_mm512_add_epi16(words, _mm512_set1_epi16(128)), 8), 8);
  const __m512i bytes = _mm512_mask_blend_epi8(0xAAAAAAAAAAAAAAAAu, words, upper);
  _mm512_store_si512(digits.bytes,
                     _mm512_permutexvar_epi8(_mm512_load_si512(kDigitPlaces.bytes.data()), bytes));
  scale.offset = -kOffset * _mm512_reduce_add_epi32(_mm512_add_epi32(low, high));
  scale.unit = std::bit_cast<float>((exponent - kBits - 1) << 23);
  return true;
}

bool multiply_digits(const DigitProduct& product) {
  static_assert(kMostDigitTokens == 4);
  LOCKET_DCHECK(product.tokens >= 1 && product.tokens <= kMostDigitTokens);
  const ScaleRange& range = product.after_sum;
  if (range.first > range.last) return false;
  if (!all_inside(product.scales, product.groups * kTileLanes, range)) return false;
  switch (product.tokens) {
    case 1:
      multiply_groups<1>(product);
      return true;
    case 2:
      multiply_groups<2>(product);
      return true;
    case 3:
      multiply_groups<3>(product);
      return true;
    default:
      multiply_groups<4>(product);
      return true;
  }
}

}  // namespace locket::kernels::cpu
HWY_POP_ATTRIBUTES
