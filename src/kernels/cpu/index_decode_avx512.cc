// Stored index keys into blocks of integers (index_scan.h): 16 rows are transposed as double words
// of eight codes, then a table of bytes turns code and shift into numbers.
#include "hwy/base.h"
#if HWY_COMPILER_GCC_ACTUAL
// GCC 12 takes the undefined pass-through operand inside its own intrinsics for a fault.
HWY_DIAGNOSTICS_OFF(disable : 4700, ignored "-Wmaybe-uninitialized")
HWY_DIAGNOSTICS_OFF(disable : 4700, ignored "-Wuninitialized")
#endif
#include <immintrin.h>

#include "kernels/cpu/index_scan.h"

HWY_PUSH_ATTRIBUTES("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx2")
namespace locket::kernels::cpu {
namespace {

constexpr std::size_t kCodeBytes = 64;
constexpr std::size_t kScaleGroups = 4;

// Scale codes that integers take, and what they differ by within a key.
constexpr int kLeastScale = 72;
constexpr int kLargestScale = 157;
constexpr int kNear = 3;
constexpr int kFar = 6;

HWY_INLINE __m128i load_quarter(const std::byte* at) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
}

// Rows i, 4 + i, 8 + i, 12 + i, 16 bytes of each.
HWY_INLINE __m512i load_four(const std::byte* at) {
  constexpr std::size_t kStride = 4 * kIntegerRowBytes;
  __m512i rows = _mm512_castsi128_si512(load_quarter(at));
  rows = _mm512_mask_broadcast_i32x4(rows, 0x00F0, load_quarter(at + kStride));
  rows = _mm512_mask_broadcast_i32x4(rows, 0x0F00, load_quarter(at + 2 * kStride));
  return _mm512_mask_broadcast_i32x4(rows, 0xF000, load_quarter(at + 3 * kStride));
}

// words[w] of a quarter: its double word w of 16 rows.
HWY_INLINE void transpose_quarter(const std::byte* at, __m512i (&words)[4]) {
  const __m512i a = load_four(at);
  const __m512i b = load_four(at + kIntegerRowBytes);
  const __m512i c = load_four(at + 2 * kIntegerRowBytes);
  const __m512i d = load_four(at + 3 * kIntegerRowBytes);
  const __m512i ab_low = _mm512_unpacklo_epi32(a, b);
  const __m512i ab_high = _mm512_unpackhi_epi32(a, b);
  const __m512i cd_low = _mm512_unpacklo_epi32(c, d);
  const __m512i cd_high = _mm512_unpackhi_epi32(c, d);
  words[0] = _mm512_unpacklo_epi64(ab_low, cd_low);
  words[1] = _mm512_unpackhi_epi64(ab_low, cd_low);
  words[2] = _mm512_unpacklo_epi64(ab_high, cd_high);
  words[3] = _mm512_unpackhi_epi64(ab_high, cd_high);
}

// The scales of 16 keys; vectors of bytes hold the four groups of a key in its double word.
struct VectorScales {
  __m512i below;    // how far each scale is below the key's largest
  __m512i largest;  // code of the largest scale, in every byte
  __mmask16 wide;
  __mmask16 unfit;
};

HWY_INLINE VectorScales load_scales(const std::byte* rows) {
  const __m512i at =
      _mm512_mullo_epi32(_mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0),
                         _mm512_set1_epi32(static_cast<int>(kIntegerRowBytes)));
  const __m512i codes = _mm512_i32gather_epi32(at, rows + kCodeBytes, 1);
  const __m512i halves = _mm512_max_epu8(codes, _mm512_ror_epi32(codes, 16));
  const __m512i largest = _mm512_max_epu8(halves, _mm512_ror_epi32(halves, 8));
  const __m512i below = _mm512_sub_epi8(largest, codes);
  const __m512i span = _mm512_max_epu8(below, _mm512_ror_epi32(below, 16));
  const __m512i code = _mm512_srli_epi32(largest, 24);
  const __m512i far = _mm512_srli_epi32(_mm512_max_epu8(span, _mm512_ror_epi32(span, 8)), 24);
  const __m512i from_least = _mm512_sub_epi32(code, _mm512_set1_epi32(kLeastScale));
  return {.below = below,
          .largest = largest,
          .wide = _mm512_cmpgt_epu32_mask(far, _mm512_set1_epi32(kNear)),
          .unfit = static_cast<__mmask16>(
              _mm512_cmpgt_epu32_mask(far, _mm512_set1_epi32(kFar)) |
              _mm512_cmpgt_epu32_mask(from_least, _mm512_set1_epi32(kLargestScale - kLeastScale)))};
}

// 2^u of the keys: a code counts halves, its shift `steps` more powers below the largest scale.
HWY_INLINE __m512 units_of(const VectorScales& scales, int steps) {
  const __m512i code = _mm512_srli_epi32(scales.largest, 24);
  const __m512i exponent = _mm512_sub_epi32(code, _mm512_set1_epi32(steps + 1));
  return _mm512_castsi512_ps(_mm512_slli_epi32(exponent, 23));
}

// Shifts of the groups for the table's index, 16 times (steps - below); of no meaning where a group
// is further below.
HWY_INLINE __m512i shifts_of(const VectorScales& scales, char steps) {
  const __m512i shift = _mm512_sub_epi8(_mm512_set1_epi8(steps), scales.below);
  return _mm512_and_si512(_mm512_slli_epi32(shift, 4), _mm512_set1_epi8(0x30));
}

// Byte `group` of every double word, four times.
HWY_INLINE __m512i spread_group(__m512i bytes, std::size_t group) {
  const __m128i lane =
      _mm_add_epi8(_mm_set_epi8(12, 12, 12, 12, 8, 8, 8, 8, 4, 4, 4, 4, 0, 0, 0, 0),
                   _mm_set1_epi8(static_cast<char>(group)));
  return _mm512_shuffle_epi8(bytes, _mm512_broadcast_i32x4(lane));
}

// The codes of 16 keys: low and high nibbles of each double word; bits above them are anything.
HWY_INLINE __m512i nibbles(__m512i word, std::size_t half) {
  return half == 0 ? word : _mm512_srli_epi16(word, 4);
}

struct Vectors {
  std::byte* near;
  std::byte* far;
};

// Keys whose scales lie within 2^3.
HWY_INLINE void write_near(const std::byte* rows, const VectorScales& scales, __m512i table,
                           std::byte* near, const std::byte* ahead) {
  constexpr int kCodeOrShift = 0xEA;  // (word & nibble) | shift
  const __m512i nibble = _mm512_set1_epi8(0x0F);
  const __m512i shifts = shifts_of(scales, kNear);
  HWY_UNROLL(4)
  for (std::size_t group = 0; group < kScaleGroups; ++group) {
    const __m512i shift = spread_group(shifts, group);
    __m512i words[4];
    transpose_quarter(rows + group * 16, words);
    HWY_UNROLL(4)
    for (std::size_t w = 0; w < 4; ++w) {
      std::byte* out = near + (group * 4 + w) * 2 * 64;
      _mm_prefetch(reinterpret_cast<const char*>(ahead + (group * 4 + w) * 68), _MM_HINT_T0);
      HWY_UNROLL(2)
      for (std::size_t half = 0; half < 2; ++half) {
        const __m512i index =
            _mm512_ternarylogic_epi32(nibbles(words[w], half), nibble, shift, kCodeOrShift);
        _mm512_store_si512(out + half * 64, _mm512_permutexvar_epi8(index, table));
      }
    }
  }
}

// The same where some key has groups that lie further below: those go into the far numbers.
HWY_NOINLINE void write_wide(const std::byte* rows, const VectorScales& scales, __m512i table,
                             Vectors out) {
  const __m512i is_near =
      _mm512_movm_epi8(_mm512_cmple_epu8_mask(scales.below, _mm512_set1_epi8(kNear)));
  const __m512i near_shifts = shifts_of(scales, kNear);
  const __m512i far_shifts = shifts_of(scales, kFar);
  for (std::size_t group = 0; group < kScaleGroups; ++group) {
    const __m512i near_mask = spread_group(is_near, group);
    const __m512i near_shift = spread_group(near_shifts, group);
    const __m512i far_shift = spread_group(far_shifts, group);
    __m512i words[4];
    transpose_quarter(rows + group * 16, words);
    HWY_UNROLL(8)
    for (std::size_t vector = 0; vector < 8; ++vector) {
      const __m512i codes =
          _mm512_and_si512(nibbles(words[vector / 2], vector % 2), _mm512_set1_epi8(0x0F));
      // Index 0 is code 0: nothing.
      const __m512i near = _mm512_and_si512(near_mask, _mm512_or_si512(codes, near_shift));
      const __m512i far = _mm512_andnot_si512(near_mask, _mm512_or_si512(codes, far_shift));
      const std::size_t at = (group * 8 + vector) * 64;
      _mm512_store_si512(out.near + at, _mm512_permutexvar_epi8(near, table));
      _mm512_store_si512(out.far + at, _mm512_permutexvar_epi8(far, table));
    }
  }
}

}  // namespace

void decode_index_block(const CodeTable& table, const std::byte* rows, const std::byte* ahead,
                        KeyBlock& block) {
  const __m512i numbers = _mm512_load_si512(table.bytes.data());
  constexpr std::size_t kStoredBytes = kVectorKeys * kIntegerRowBytes;
  block.wide = 0;
  block.unfit = 0;
  for (std::size_t vector = 0; vector < kBlockVectors; ++vector) {
    const std::byte* from = rows + vector * kStoredBytes;
    const VectorScales scales = load_scales(from);
    const bool is_wide = scales.wide != 0;
    const Vectors out = {.near = block.near.data() + vector * kVectorBytes,
                         .far = block.far.data() + vector * kVectorBytes};
    if (is_wide) {
      write_wide(from, scales, numbers, out);
    } else {
      write_near(from, scales, numbers, out.near, ahead + vector * kStoredBytes);
    }
    _mm512_store_ps(block.units.data() + vector * kVectorKeys,
                    units_of(scales, is_wide ? kFar : kNear));
    block.wide |= std::uint64_t{scales.wide} << (vector * kVectorKeys);
    block.unfit |= std::uint64_t{scales.unfit} << (vector * kVectorKeys);
  }
}

}  // namespace locket::kernels::cpu
HWY_POP_ATTRIBUTES
