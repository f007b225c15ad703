// Products of bfloat16 pairs with vdpbf16ps, which is what sum_order.h describes, and the decoding
// of FP8 and FP4 codes into such pairs by byte and word tables.
#include "hwy/base.h"
#if HWY_COMPILER_GCC_ACTUAL
// GCC 12 takes the undefined pass-through operand inside its own intrinsics for a fault.
HWY_DIAGNOSTICS_OFF(disable : 4700, ignored "-Wmaybe-uninitialized")
HWY_DIAGNOSTICS_OFF(disable : 4700, ignored "-Wuninitialized")
#endif
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <immintrin.h>

#include "base/check.h"
#include "kernels/cpu/bf16_packing.h"
#include "kernels/cpu/bf16_tables.h"
#include "kernels/cpu/fp8_decoder_avx512-inl.h"
#include "kernels/cpu/instruction_sets.h"
#include "kernels/cpu/panel.h"
#include "numerics/bf16.h"

namespace locket::kernels::cpu {
namespace {

constexpr std::size_t kTileWords = kGroupPairs * kTileLanes;

alignas(64) constexpr std::array<float, kTileLanes> kOnes = {1, 1, 1, 1, 1, 1, 1, 1,
                                                             1, 1, 1, 1, 1, 1, 1, 1};

}  // namespace
}  // namespace locket::kernels::cpu

HWY_PUSH_ATTRIBUTES("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512bf16,fma,avx2")
namespace locket::kernels::cpu {
namespace {

HWY_INLINE __m512 multiply_pairs(__m512 sum, __m512i a, __m512i b) {
  return _mm512_dpbf16_ps(sum, (__m512bh)a, (__m512bh)b);
}

HWY_INLINE __m512i load(const void* at) { return _mm512_load_si512(at); }

HWY_INLINE __m512i broadcast(const std::uint32_t* at) {
  return _mm512_set1_epi32(static_cast<int>(*at));
}

// Decoders: pairs(tile, i) gives the four vectors of columns 8i .. 8i + 7; scales, when asked for,
// are added to the exponents of what is not zero.
struct Bf16Decoder {
  static constexpr WeightFormat kFormat = WeightFormat::kBf16;

  void pairs(const std::byte* tile, std::size_t eight, __m512i (&out)[4]) const {
    for (std::size_t q = 0; q < 4; ++q) out[q] = load(tile + (eight * 4 + q) * 64);
  }
};

template <WeightFormat kFp8Format>
struct Fp8Decoder {
  static constexpr WeightFormat kFormat = kFp8Format;

  Fp8Lookup lookup;

  // Not the implicit one, which would be compiled without AVX-512.
  HWY_INLINE Fp8Decoder() : lookup(Fp8Lookup()) {}

  void pairs(const std::byte* tile, std::size_t eight, __m512i (&out)[4]) const {
    for (std::size_t half = 0; half < 2; ++half) {
      lookup.pairs(load(tile + (eight * 2 + half) * 64), out[half * 2], out[half * 2 + 1]);
    }
  }
};

struct Fp4Decoder {
  static constexpr WeightFormat kFormat = WeightFormat::kFp4;

  __m512i table;

  Fp4Decoder() : table(load(kFp4.words.data())) {}

  void pairs(const std::byte* tile, std::size_t eight, __m512i (&out)[4]) const {
    const __m512i codes = load(tile + eight * 64);
    out[0] = _mm512_permutexvar_epi16(codes, table);
    out[1] = _mm512_permutexvar_epi16(_mm512_srli_epi16(codes, 4), table);
    out[2] = _mm512_permutexvar_epi16(_mm512_srli_epi16(codes, 8), table);
    out[3] = _mm512_permutexvar_epi16(_mm512_srli_epi16(codes, 12), table);
  }
};

// The bits of what sums of one tile are multiplied by, one a lane, in scale_range.h's ranges.
template <class Decoder>
HWY_INLINE __m512i factor_bits(const std::byte* scales) {
  if constexpr (decoded_shift(Decoder::kFormat) > 0) {
    return _mm512_set1_epi32(static_cast<int>(tile_factor_bits<Decoder::kFormat>(scales)));
  } else {
    return _mm512_slli_epi32(
        _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(scales))), 23);
  }
}

template <class Decoder>
HWY_INLINE bool scales_inside(const std::byte* scales, const ScaleRange& range) {
  if constexpr (Decoder::kFormat == WeightFormat::kBf16) return true;
  if constexpr (decoded_shift(Decoder::kFormat) > 0) {
    return range.contains(tile_scale_code<Decoder::kFormat>(scales));
  }
  if (range.first > range.last) return false;
  const __m128i codes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(scales));
  const __m128i above = _mm_sub_epi8(codes, _mm_set1_epi8(static_cast<char>(range.first)));
  const __m128i span = _mm_set1_epi8(static_cast<char>(range.last - range.first));
  return _mm_cmpgt_epu8_mask(above, span) == 0;
}

template <class Decoder>
HWY_INLINE __m512 scale_factors(const std::byte* scales) {
  if constexpr (Decoder::kFormat == WeightFormat::kBf16) {
    return _mm512_set1_ps(1.0f);
  } else {
    return _mm512_castsi512_ps(factor_bits<Decoder>(scales));
  }
}

template <class Decoder>
HWY_INLINE void store_pairs(const Decoder& decoder, const std::byte* tile, std::uint32_t* out) {
  for (std::size_t eight = 0; eight < 4; ++eight) {
    __m512i pairs[4];
    decoder.pairs(tile, eight, pairs);
    for (std::size_t q = 0; q < 4; ++q) {
      _mm512_store_si512(out + (eight * 4 + q) * kTileLanes, pairs[q]);
    }
  }
}

// The bfloat16 bits of one scaled weight, whatever the scale.
std::uint32_t scaled_bits(WeightFormat format, const std::byte* tile, const std::byte* scales,
                          std::size_t lane, std::size_t k) {
  const std::byte code = scales[format == WeightFormat::kFp4 ? lane : 0];
  const float value =
      scaled_weight(code_value(format, tile, lane, k), std::to_integer<std::uint8_t>(code));
  return numerics::to_bf16(value).bits;
}

// Adds to the exponents of bfloat16 pairs [16][16], except to those of zeros.
HWY_INLINE void add_to_exponents(__m512i exponents, std::uint32_t* words) {
  const __m512i shift = _mm512_slli_epi32(exponents, 7);
  const __m512i both = _mm512_mask_blend_epi16(0xAAAAAAAAu, shift, _mm512_slli_epi32(shift, 16));
  for (std::size_t pair = 0; pair < kGroupPairs; ++pair) {
    const __m512i bits = load(words + pair * kTileLanes);
    const __mmask32 not_zero = _mm512_test_epi16_mask(bits, _mm512_set1_epi16(0x7FFF));
    _mm512_store_si512(words + pair * kTileLanes,
                       _mm512_mask_add_epi16(bits, not_zero, bits, both));
  }
}

// A tile whose scales cannot wait, as bfloat16 pairs [16][16] with the scales in them; what is left
// to multiply the sums by.
template <class Decoder>
__m512 scaled_tile(const std::byte* tile, const std::byte* scales, std::uint32_t* out) {
  constexpr WeightFormat kFormat = Decoder::kFormat;
  constexpr int kShift = kFp8TileShift;
  const __m512 one = _mm512_set1_ps(1.0f);
  if constexpr (kFormat == WeightFormat::kFp8F32) {
    store_pairs(Decoder(), tile, out);
    add_to_exponents(_mm512_set1_epi32(-kShift), out);
    float scale = 0.0f;
    std::memcpy(&scale, scales, sizeof scale);
    return _mm512_set1_ps(scale);
  } else if (!scales_inside<Decoder>(scales, normal_scales(kFormat))) {
    for (std::size_t i = 0; i < kTileWords; ++i) {
      const std::size_t lane = i % kTileLanes;
      const std::size_t pair = i / kTileLanes;
      const std::size_t k = pair / 4 * 8 + pair % 4;
      out[i] = scaled_bits(kFormat, tile, scales, lane, k) |
               scaled_bits(kFormat, tile, scales, lane, k + 4) << 16;
    }
    return one;
  }
  store_pairs(Decoder(), tile, out);
  const __m512i codes = _mm512_srli_epi32(factor_bits<Decoder>(scales), 23);
  add_to_exponents(_mm512_sub_epi32(codes, _mm512_set1_epi32(127)), out);
  return one;
}

template <class Decoder>
void decode_tiles(const TileBlock& block, std::uint32_t* out, float* factors) {
  const Decoder decoder;
  for (std::size_t group = 0; group < block.groups; ++group) {
    const std::byte* tile = block.tiles + group * tile_bytes(Decoder::kFormat);
    const std::byte* scales = block.scales + group * tile_scale_bytes(Decoder::kFormat);
    // The next panel of these rows.
    prefetch_lines(tile + block.groups * tile_bytes(Decoder::kFormat),
                   tile_bytes(Decoder::kFormat));
    if (scales_inside<Decoder>(scales, block.after_sum)) {
      store_pairs(decoder, tile, out);
      _mm512_store_ps(factors, scale_factors<Decoder>(scales));
    } else {
      _mm512_store_ps(factors, scaled_tile<Decoder>(tile, scales, out));
    }
    out += kTileWords;
    factors += kTileLanes;
  }
}

void decode(const TileBlock& block, std::byte* out, float* out_scales) {
  auto* words = reinterpret_cast<std::uint32_t*>(out);
  switch (block.format) {
    case WeightFormat::kFp8:
      return decode_tiles<Fp8Decoder<WeightFormat::kFp8>>(block, words, out_scales);
    case WeightFormat::kFp8F32:
      return decode_tiles<Fp8Decoder<WeightFormat::kFp8F32>>(block, words, out_scales);
    case WeightFormat::kFp4:
      return decode_tiles<Fp4Decoder>(block, words, out_scales);
    case WeightFormat::kBf16:
    case WeightFormat::kF32:
    case WeightFormat::kAffine4:
    case WeightFormat::kAffine8:
    case WeightFormat::kCount:
      break;
  }
  LOCKET_CHECK(false);
}

// totals[t] += factor * sums of one tile with token t.
template <std::size_t kTokens, class Decoder>
HWY_INLINE void add_tile(const Decoder& decoder, const std::byte* tile, __m512 factor,
                         const std::uint32_t* const (&x)[kTokens], __m512 (&totals)[kTokens]) {
  __m512 sums[kTokens];
  for (__m512& sum : sums) sum = _mm512_setzero_ps();
#pragma GCC unroll 4
  for (std::size_t eight = 0; eight < 4; ++eight) {
    __m512i pairs[4];
    decoder.pairs(tile, eight, pairs);
#pragma GCC unroll 24
    for (std::size_t i = 0; i < 4 * kTokens; ++i) {
      const std::size_t q = i / kTokens;
      const std::size_t t = i % kTokens;
      sums[t] = multiply_pairs(sums[t], pairs[q], broadcast(x[t] + eight * 4 + q));
    }
  }
  for (std::size_t t = 0; t < kTokens; ++t) {
    totals[t] = _mm512_fmadd_ps(sums[t], factor, totals[t]);
  }
}

template <class Decoder, std::size_t kTokens>
void multiply_rows(const RowGroupProduct& p) {
  const Decoder decoder;
  const std::uint32_t* x[kTokens];
  __m512 totals[kTokens];
  for (std::size_t t = 0; t < kTokens; ++t) {
    x[t] = reinterpret_cast<const std::uint32_t*>(p.x + t * p.x_row_bytes);
    totals[t] = _mm512_setzero_ps();
  }
  for (std::size_t group = 0; group < p.groups; ++group) {
    const std::byte* tile = p.tiles + group * tile_bytes(Decoder::kFormat);
    const std::byte* scales = p.scales + group * tile_scale_bytes(Decoder::kFormat);
    prefetch_ahead(tile, tile_bytes(Decoder::kFormat));
    if (HWY_LIKELY(scales_inside<Decoder>(scales, p.after_sum))) {
      add_tile<kTokens>(decoder, tile, scale_factors<Decoder>(scales), x, totals);
    } else {
      alignas(64) std::uint32_t words[kTileWords];
      const __m512 factor = scaled_tile<Decoder>(tile, scales, words);
      add_tile<kTokens>(Bf16Decoder(), reinterpret_cast<const std::byte*>(words), factor, x,
                        totals);
    }
    for (const std::uint32_t*& row : x) row += kGroupPairs;
  }
  for (std::size_t t = 0; t < kTokens; ++t) _mm512_storeu_ps(p.totals + t * kTileLanes, totals[t]);
}

template <class Decoder>
void multiply_rows_of(const RowGroupProduct& p) {
  static_assert(kMostDirectTokens == 6);
  switch (p.tokens) {
    case 1:
      return multiply_rows<Decoder, 1>(p);
    case 2:
      return multiply_rows<Decoder, 2>(p);
    case 3:
      return multiply_rows<Decoder, 3>(p);
    case 4:
      return multiply_rows<Decoder, 4>(p);
    case 5:
      return multiply_rows<Decoder, 5>(p);
    default:
      return multiply_rows<Decoder, 6>(p);
  }
}

void multiply_row_group(WeightFormat format, const RowGroupProduct& p) {
  LOCKET_DCHECK(p.tokens >= 1 && p.tokens <= kMostDirectTokens);
  switch (format) {
    case WeightFormat::kBf16:
      return multiply_rows_of<Bf16Decoder>(p);
    case WeightFormat::kFp8:
      return multiply_rows_of<Fp8Decoder<WeightFormat::kFp8>>(p);
    case WeightFormat::kFp8F32:
      return multiply_rows_of<Fp8Decoder<WeightFormat::kFp8F32>>(p);
    case WeightFormat::kFp4:
      return multiply_rows_of<Fp4Decoder>(p);
    case WeightFormat::kF32:
    case WeightFormat::kAffine4:
    case WeightFormat::kAffine8:
    case WeightFormat::kCount:
      break;
  }
  LOCKET_CHECK(false);
}

// Sums of one column group: kLaneGroups lane groups times kTokens rows of x.
template <std::size_t kLaneGroups, std::size_t kTokens>
HWY_INLINE void sum_group(const std::byte* w, std::size_t lane_group_bytes, const std::uint32_t* x,
                          std::size_t x_stride, __m512 (&sums)[kTokens][kLaneGroups]) {
#pragma GCC unroll 2
  for (std::size_t pair = 0; pair < kGroupPairs; ++pair) {
    __m512i weights[kLaneGroups];
    for (std::size_t l = 0; l < kLaneGroups; ++l) {
      weights[l] = load(w + l * lane_group_bytes + pair * 64);
    }
#pragma GCC unroll 12
    for (std::size_t t = 0; t < kTokens; ++t) {
      const __m512i value = broadcast(x + t * x_stride + pair);
      for (std::size_t l = 0; l < kLaneGroups; ++l) {
        sums[t][l] = multiply_pairs(sums[t][l], weights[l], value);
      }
    }
  }
}

// All column groups of a panel.
template <std::size_t kLaneGroups, std::size_t kTokens>
void multiply_block(const PanelProduct& p, std::size_t lane_group, std::size_t token) {
  const std::size_t x_stride = p.x_row_bytes / sizeof(std::uint32_t);
  const auto* x = reinterpret_cast<const std::uint32_t*>(p.x) + token * x_stride;
  const std::byte* w = p.panel + lane_group * p.lane_group_bytes;
  float* totals = p.totals + token * p.totals_stride + lane_group * kTileLanes;
  const float* factors =
      p.scales != nullptr ? p.scales + lane_group * p.groups * kTileLanes : kOnes.data();
  const std::size_t factor_step = p.scales != nullptr ? kTileLanes : 0;
  for (std::size_t group = 0; group < p.groups; ++group) {
    __m512 sums[kTokens][kLaneGroups];
#pragma GCC unroll 24
    for (std::size_t i = 0; i < kTokens * kLaneGroups; ++i) {
      sums[i / kLaneGroups][i % kLaneGroups] = _mm512_setzero_ps();
    }
    sum_group<kLaneGroups, kTokens>(w, p.lane_group_bytes, x, x_stride, sums);
    for (std::size_t l = 0; l < kLaneGroups; ++l) {
      const __m512 factor = _mm512_loadu_ps(factors + l * p.groups * factor_step);
#pragma GCC unroll 12
      for (std::size_t t = 0; t < kTokens; ++t) {
        float* total = totals + t * p.totals_stride + l * kTileLanes;
        _mm512_storeu_ps(total, _mm512_fmadd_ps(sums[t][l], factor, _mm512_loadu_ps(total)));
      }
    }
    w += kTileWords * sizeof(std::uint32_t);
    x += kGroupPairs;
    factors += factor_step;
  }
}

template <std::size_t kLaneGroups>
void multiply_lanes(const PanelProduct& p, std::size_t lane_group) {
  std::size_t token = 0;
  for (; token + 8 <= p.tokens; token += 8) multiply_block<kLaneGroups, 8>(p, lane_group, token);
  for (; token + 4 <= p.tokens; token += 4) multiply_block<kLaneGroups, 4>(p, lane_group, token);
  for (; token + 2 <= p.tokens; token += 2) multiply_block<kLaneGroups, 2>(p, lane_group, token);
  for (; token < p.tokens; ++token) multiply_block<kLaneGroups, 1>(p, lane_group, token);
}

void multiply(const PanelProduct& p) {
  std::size_t lane_group = 0;
  for (; lane_group + 2 <= p.lane_groups; lane_group += 2) multiply_lanes<2>(p, lane_group);
  if (lane_group < p.lane_groups) multiply_lanes<1>(p, lane_group);
}

}  // namespace
}  // namespace locket::kernels::cpu
HWY_POP_ATTRIBUTES

namespace locket::kernels::cpu {

const PanelKernels& bf16_panel_kernels() {
  static const PanelKernels kernels = {
      .tile_format = WeightFormat::kBf16,
      .mantissa = MantissaBits::kBf16,
      .group_bytes = kGroupPairs * sizeof(std::uint32_t),
      .direct_tokens = kMostDirectTokens,
      .pack_x = pack_bf16_x,
      .pack_rows = pack_bf16_rows,
      .decode = decode,
      .multiply = multiply,
      .multiply_row_group = multiply_row_group,
  };
  return kernels;
}

}  // namespace locket::kernels::cpu
