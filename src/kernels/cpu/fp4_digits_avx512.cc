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
// How far ahead of its use memory is asked for.
constexpr std::size_t kAheadBytes = 2048;
constexpr std::size_t kScalesAheadBytes = 256;

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

// Where the third bytes go, 32 in the order of the columns.
constexpr ByteTable third_places() {
  ByteTable order{};
  for (unsigned i = 0; i < 32; ++i) {
    order.bytes[i] = static_cast<std::uint8_t>(i / 8 * 8 + i % 4 * 2 + i / 4 % 2);
  }
  return order;
}

constexpr ByteTable kThirdPlaces = third_places();

}  // namespace
}  // namespace locket::kernels::cpu

HWY_PUSH_ATTRIBUTES("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vnni,avx512bf16,fma,avx2")
namespace locket::kernels::cpu {
namespace {

HWY_INLINE __m128i scales_at(const std::byte* scales) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(scales));
}

HWY_INLINE __m512 factors_of(__m128i scales) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu8_epi32(scales), 23));
}

HWY_INLINE __m512i broadcast(const std::int8_t* four) {
  std::int32_t bytes = 0;
  __builtin_memcpy(&bytes, four, sizeof bytes);
  return _mm512_set1_epi32(bytes);
}

// totals[t] += factors * sums of one tile with row t, by integers.
template <DigitKind kKind, std::size_t kTokens>
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
    if constexpr (kKind == DigitKind::kThree) {
      __m512i third = _mm512_setzero_si512();
#pragma GCC unroll 8
      for (std::size_t i = 0; i < 8; ++i) {
        third = _mm512_dpbusd_epi32(third, weights[i], broadcast(x.third[i / 2][i % 2]));
      }
      upper = _mm512_add_epi32(upper, _mm512_slli_epi32(third, 8));
    }
    const __m512i sum = _mm512_add_epi32(lower, _mm512_slli_epi32(upper, 8));
    const __m512 exact = _mm512_mul_ps(_mm512_cvtepi32_ps(sum), _mm512_set1_ps(scale.unit));
    totals[t] = _mm512_fmadd_ps(exact, factors, totals[t]);
  }
}

// The same by pairs, in the order of sum_order.h. Seldom: out of the way of the loop above.
template <std::size_t kTokens>
HWY_NOINLINE void add_pairs(const DigitProduct& p, std::size_t row, std::size_t group,
                            float* totals) {
  const std::size_t at = row * p.groups + group;
  const __m512i table = _mm512_load_si512(kFp4.words.data());
  const __m512 factors = factors_of(scales_at(p.scales + at * kTileLanes));
  const std::byte* tile = p.tiles + at * kFp4Bytes;
  const std::byte* x = p.x + group * kGroupPairs * sizeof(std::uint32_t);
  __m512 sums[kTokens];
  for (__m512& sum : sums) sum = _mm512_setzero_ps();
#pragma GCC unroll 4
  for (std::size_t eight = 0; eight < 4; ++eight) {
    const __m512i codes = _mm512_load_si512(tile + eight * 64);
    const __m512i weights[4] = {
        _mm512_permutexvar_epi16(codes, table),
        _mm512_permutexvar_epi16(_mm512_srli_epi16(codes, 4), table),
        _mm512_permutexvar_epi16(_mm512_srli_epi16(codes, 8), table),
        _mm512_permutexvar_epi16(_mm512_srli_epi16(codes, 12), table),
    };
#pragma GCC unroll 16
    for (std::size_t i = 0; i < 4 * kTokens; ++i) {
      const std::size_t t = i % kTokens;
      std::int32_t pair = 0;
      __builtin_memcpy(&pair, x + t * p.x_row_bytes + (eight * 4 + i / kTokens) * 4, sizeof pair);
      sums[t] = _mm512_dpbf16_ps(sums[t], (__m512bh)weights[i / kTokens],
                                 (__m512bh)_mm512_set1_epi32(pair));
    }
  }
  for (std::size_t t = 0; t < kTokens; ++t) {
    float* total = totals + t * kTileLanes;
    _mm512_storeu_ps(total, _mm512_fmadd_ps(sums[t], factors, _mm512_loadu_ps(total)));
  }
}

// One tile of row group `row` times all tokens. False: a scale was outside.
template <std::size_t kTokens>
HWY_INLINE bool add_tile(const DigitProduct& p, std::size_t row, std::size_t group,
                         std::size_t ahead, __m512i table, __m512 (&totals)[kTokens]) {
  const std::size_t at = row * p.groups + group;
  const std::byte* tile = p.tiles + at * kFp4Bytes;
  prefetch_lines(tile + ahead, kFp4Bytes);
  prefetch_lines(p.scales + at * kTileLanes + kScalesAheadBytes, 1);
  const __m128i first = _mm_set1_epi8(static_cast<char>(p.after_sum.first));
  const __m128i span = _mm_set1_epi8(static_cast<char>(p.after_sum.last - p.after_sum.first));
  const __m128i scales = scales_at(p.scales + at * kTileLanes);
  const bool is_inside = _mm_cmpgt_epu8_mask(_mm_sub_epi8(scales, first), span) == 0;
  const __m512 factors = factors_of(scales);
  const DigitKind kind = p.kinds[group];
  if (HWY_UNLIKELY(kind == DigitKind::kNone)) {
    float* stored = p.totals + row * kTokens * kTileLanes;
    for (std::size_t t = 0; t < kTokens; ++t) _mm512_storeu_ps(stored + t * kTileLanes, totals[t]);
    add_pairs<kTokens>(p, row, group, stored);
    for (std::size_t t = 0; t < kTokens; ++t) totals[t] = _mm512_loadu_ps(stored + t * kTileLanes);
    return is_inside;
  }
  __m512i weights[8];
#pragma GCC unroll 4
  for (std::size_t eight = 0; eight < 4; ++eight) {
    const __m512i codes = _mm512_load_si512(tile + eight * 64);
    weights[eight * 2] = _mm512_permutexvar_epi8(codes, table);
    weights[eight * 2 + 1] = _mm512_permutexvar_epi8(_mm512_srli_epi16(codes, 4), table);
  }
  if (HWY_LIKELY(kind == DigitKind::kTwo)) {
    add_digits<DigitKind::kTwo>(p, group, weights, factors, totals);
  } else {
    add_digits<DigitKind::kThree>(p, group, weights, factors, totals);
  }
  return is_inside;
}

// False: a scale was outside.
template <std::size_t kRows, std::size_t kTokens>
bool multiply_groups(const DigitProduct& p) {
  constexpr std::size_t kGroupsAhead = kAheadBytes / kFp4Bytes;
  const __m512i table = _mm512_load_si512(kRaised.bytes.data());
  bool is_inside = true;
  __m512 totals[kRows][kTokens];
#pragma GCC unroll 4
  for (std::size_t i = 0; i < kRows * kTokens; ++i) {
    totals[i / kTokens][i % kTokens] = _mm512_setzero_ps();
  }
  for (std::size_t group = 0; group < p.groups; ++group) {
    // Behind the end of a row group stands its neighbour; the next ones begin after all of these.
    const std::size_t skipped =
        group + kGroupsAhead < p.groups ? 0 : (kRows - 1) * p.groups * kFp4Bytes;
#pragma GCC unroll 4
    for (std::size_t r = 0; r < kRows; ++r) {
      is_inside &= add_tile<kTokens>(p, r, group, kAheadBytes + skipped, table, totals[r]);
    }
  }
#pragma GCC unroll 4
  for (std::size_t i = 0; i < kRows * kTokens; ++i) {
    _mm512_storeu_ps(p.totals + i * kTileLanes, totals[i / kTokens][i % kTokens]);
  }
  return is_inside;
}

// All row groups at once, or one after the other.
template <std::size_t kTokens>
bool multiply_tokens(const DigitProduct& p) {
  constexpr std::size_t kRows = digit_row_groups(kTokens);
  if (p.row_groups == kRows) return multiply_groups<kRows, kTokens>(p);
  DigitProduct one = p;
  for (std::size_t r = 0; r < p.row_groups; ++r) {
    if (!multiply_groups<1, kTokens>(one)) return false;
    one.tiles += p.groups * kFp4Bytes;
    one.scales += p.groups * kTileLanes;
    one.totals += kTokens * kTileLanes;
  }
  return true;
}

}  // namespace

namespace {

// The values of a group in a unit.
struct WholeGroup {
  __m512i low;
  __m512i high;
  bool is_whole = false;
  std::uint32_t sum = 0;  // of the absolute values
};

HWY_INLINE WholeGroup whole_group(const float* x, std::uint32_t unit_exponent) {
  const __m512 inverse = _mm512_set1_ps(std::bit_cast<float>((254 - unit_exponent) << 23));
  const __m512 first = _mm512_mul_ps(_mm512_loadu_ps(x), inverse);
  const __m512 second = _mm512_mul_ps(_mm512_loadu_ps(x + 16), inverse);
  WholeGroup group = {.low = _mm512_cvtps_epi32(first),
                      .high = _mm512_cvtps_epi32(second),
                      .is_whole = false,
                      .sum = 0};
  group.is_whole =
      (_mm512_cmp_ps_mask(_mm512_cvtepi32_ps(group.low), first, _CMP_EQ_OQ) &
       _mm512_cmp_ps_mask(_mm512_cvtepi32_ps(group.high), second, _CMP_EQ_OQ)) == 0xFFFF;
  group.sum = static_cast<std::uint32_t>(_mm512_reduce_add_epi32(
      _mm512_add_epi32(_mm512_abs_epi32(group.low), _mm512_abs_epi32(group.high))));
  return group;
}

// Every byte is signed: what is taken from the next one above is there again.
HWY_INLINE void store_digits(const WholeGroup& group, DigitGroup& digits) {
  const __m512i words = _mm512_inserti64x4(_mm512_castsi256_si512(_mm512_cvtepi32_epi16(group.low)),
                                           _mm512_cvtepi32_epi16(group.high), 1);
  const __m512i second = _mm512_add_epi16(words, _mm512_set1_epi16(128));
  const __m512i bytes = _mm512_mask_blend_epi8(0xAAAAAAAAAAAAAAAAu, words, second);
  _mm512_store_si512(digits.bytes,
                     _mm512_permutexvar_epi8(_mm512_load_si512(kDigitPlaces.bytes.data()), bytes));
  const __m512i carry = _mm512_set1_epi32(0x8080);
  const __m256i third = _mm256_inserti128_si256(
      _mm256_castsi128_si256(
          _mm512_cvtepi32_epi8(_mm512_srai_epi32(_mm512_add_epi32(group.low, carry), 16))),
      _mm512_cvtepi32_epi8(_mm512_srai_epi32(_mm512_add_epi32(group.high, carry), 16)), 1);
  const __m256i places =
      _mm256_load_si256(reinterpret_cast<const __m256i*>(kThirdPlaces.bytes.data()));
  _mm256_store_si256(reinterpret_cast<__m256i*>(digits.third),
                     _mm256_permutexvar_epi8(places, third));
}

}  // namespace

// A group of zeros has unit 1. Exponents are kept far from both ends, so that the unit is normal.
DigitKind digits_of(const float* x, DigitGroup& digits, DigitScale& scale) {
  const float largest = _mm512_reduce_max_ps(
      _mm512_max_ps(_mm512_abs_ps(_mm512_loadu_ps(x)), _mm512_abs_ps(_mm512_loadu_ps(x + 16))));
  constexpr std::uint32_t kLowest = 64;
  constexpr std::uint32_t kHighest = 190;
  constexpr std::uint32_t kCoarse = 14;
  constexpr std::uint32_t kFine = 17;
  constexpr std::uint32_t kMostSum = ((1U << 24) - 1) / 12;
  std::uint32_t exponent = std::bit_cast<std::uint32_t>(largest) >> 23;
  if (exponent == 0) exponent = 127 + kCoarse;
  if (exponent < kLowest || exponent > kHighest) return DigitKind::kNone;
  // Up to here two bytes hold every value; the sum of 32 is small enough, whatever they are.
  constexpr float kMostOfTwo = 127 * 256 + 127;
  const float in_units = largest * std::bit_cast<float>((254 + kCoarse - exponent) << 23);
  std::uint32_t unit = exponent - kCoarse;
  WholeGroup group = whole_group(x, unit);
  DigitKind kind = DigitKind::kTwo;
  if (!group.is_whole || in_units > kMostOfTwo) {
    kind = DigitKind::kThree;
    unit = exponent - kFine;
    group = whole_group(x, unit);
    if (!group.is_whole || group.sum > kMostSum) return DigitKind::kNone;
  }
  store_digits(group, digits);
  scale.offset = -kOffset * _mm512_reduce_add_epi32(_mm512_add_epi32(group.low, group.high));
  scale.unit = std::bit_cast<float>((unit - 1) << 23);
  return kind;
}

bool multiply_digits(const DigitProduct& product) {
  static_assert(kMostDigitTokens == 4);
  LOCKET_DCHECK(product.tokens >= 1 && product.tokens <= kMostDigitTokens);
  const ScaleRange& range = product.after_sum;
  if (range.first > range.last) return false;
  switch (product.tokens) {
    case 1:
      return multiply_tokens<1>(product);
    case 2:
      return multiply_tokens<2>(product);
    case 3:
      return multiply_tokens<3>(product);
    default:
      return multiply_tokens<4>(product);
  }
}

}  // namespace locket::kernels::cpu
HWY_POP_ATTRIBUTES
