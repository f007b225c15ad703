#include "hwy/base.h"
#if HWY_COMPILER_GCC_ACTUAL
// GCC 12 takes the undefined pass-through operand inside its own intrinsics for a fault.
HWY_DIAGNOSTICS_OFF(disable : 4700, ignored "-Wmaybe-uninitialized")
HWY_DIAGNOSTICS_OFF(disable : 4700, ignored "-Wuninitialized")
#endif
#include <bit>
#include <immintrin.h>

#include "kernels/cpu/amx_fp4.h"
#include "kernels/cpu/bf16_tables.h"

namespace locket::kernels::cpu {
namespace {

// Upper halves of the 32 floats of a group to pairs (k, k + 4).
constexpr WordTable pair_places() {
  WordTable order{};
  for (unsigned i = 0; i < 32; ++i) {
    const unsigned column = i / 8 * 8 + i % 8 / 2 + i % 2 * 4;
    order.words[i] = static_cast<std::uint16_t>(column * 2 + 1);
  }
  return order;
}

constexpr WordTable kPairPlaces = pair_places();

}  // namespace
}  // namespace locket::kernels::cpu

HWY_PUSH_ATTRIBUTES("avx512f,avx512bw,avx512dq,avx512vl,fma,avx2")
namespace locket::kernels::cpu {
namespace {

// Whether rounding to multiples of the last place of `shift` changes nothing.
HWY_INLINE bool is_multiple(__m512 value, __m512 shift) {
  const __m512 rounded = _mm512_sub_ps(_mm512_add_ps(value, shift), shift);
  return _mm512_cmp_ps_mask(rounded, value, _CMP_EQ_OQ) == 0xFFFF;
}

// With q, the power of two above 6 * sum of |x|, x must be a multiple of q / 2^23: nothing is lost
// when it is rounded to such a multiple by adding 1.5 * q. The sum is rounded, too: 6.001.
HWY_INLINE __m512 rounding_shift(__m512 first, __m512 second) {
  const float sum = _mm512_reduce_add_ps(_mm512_add_ps(first, second));
  const std::uint32_t exponent = std::bit_cast<std::uint32_t>(sum * 6.001F) & 0x7F800000U;
  return _mm512_set1_ps(std::bit_cast<float>(exponent) * 3.0F);
}

}  // namespace

AmxRow pack_amx_row(const float* x, std::size_t groups, std::byte* out, std::uint16_t bit,
                    std::uint16_t* loose) {
  AmxRow row;
  const __m512i places = _mm512_load_si512(kPairPlaces.words.data());
  const __m512i smallest_normal = _mm512_set1_epi32(0x00800000);
  __m512i lowest = _mm512_set1_epi32(-1);
  __m512i highest = _mm512_setzero_si512();
  for (std::size_t group = 0; group < groups; ++group, x += kGroupColumns, out += 64) {
    const __m512 first = _mm512_loadu_ps(x);
    const __m512 second = _mm512_loadu_ps(x + 16);
    _mm512_store_si512(out, _mm512_permutex2var_epi16(_mm512_castps_si512(first), places,
                                                      _mm512_castps_si512(second)));
    const __m512 magnitudes[2] = {_mm512_abs_ps(first), _mm512_abs_ps(second)};
    for (const __m512& magnitude : magnitudes) {
      const __m512i bits = _mm512_castps_si512(magnitude);
      // Denormals and zeros wrap around to values above all others.
      lowest = _mm512_min_epu32(lowest, _mm512_sub_epi32(bits, smallest_normal));
      highest = _mm512_max_epu32(highest, bits);
    }
    const __m512 shift = rounding_shift(magnitudes[0], magnitudes[1]);
    if (HWY_LIKELY(is_multiple(first, shift) && is_multiple(second, shift))) continue;
    loose[group] = static_cast<std::uint16_t>(loose[group] | bit);
    ++row.loose_groups;
  }
  const std::uint32_t low = _mm512_reduce_min_epu32(lowest);
  row.span.lowest = (low >> 31) != 0 ? 255U : (low >> 23) + 1;
  row.span.highest = _mm512_reduce_max_epu32(highest) >> 23;
  return row;
}

}  // namespace locket::kernels::cpu
HWY_POP_ATTRIBUTES
