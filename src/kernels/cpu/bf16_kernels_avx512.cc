// Products of bfloat16 pairs with vdpbf16ps, which is what sum_order.h describes, and the decoding of
// FP8 and FP4 codes into such pairs by byte and word tables.
#include "hwy/base.h"
#if HWY_COMPILER_GCC_ACTUAL
// GCC 12 takes the undefined pass-through operand inside its own intrinsics for a fault.
HWY_DIAGNOSTICS_OFF(disable : 4700, ignored "-Wmaybe-uninitialized")
#endif
#include <immintrin.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "kernels/cpu/instruction_sets.h"
#include "kernels/cpu/panel.h"
#include "kernels/cpu/panel_packing.h"
#include "numerics/bf16.h"
#include "numerics/fp4_e2m1.h"
#include "numerics/fp8_e4m3.h"

namespace locket::kernels::cpu {
namespace {

constexpr std::size_t kPairs = 16;  // of a group; one vector of 16 lanes each
constexpr std::size_t kTileWords = kPairs * kTileLanes;

struct alignas(64) ByteTable {
  std::array<std::uint8_t, 128> bytes;
};

// Byte 0 (low) or 1 (high) of the bfloat16 of every positive E4M3 code.
constexpr ByteTable fp8_table(unsigned byte) {
  ByteTable table{};
  for (unsigned code = 0; code < 128; ++code) {
    const float value = numerics::to_float(numerics::Fp8E4m3{static_cast<std::uint8_t>(code)});
    table.bytes[code] = static_cast<std::uint8_t>(numerics::to_bf16(value).bits >> (8 * byte));
  }
  return table;
}

struct alignas(64) WordTable {
  std::array<std::uint16_t, 32> words;
};

// The bfloat16 of every E2M1 code, twice: a lookup reads five bits, the fifth does not matter.
constexpr WordTable fp4_table() {
  WordTable table{};
  for (unsigned i = 0; i < 32; ++i) {
    const float value = numerics::to_float(numerics::Fp4E2m1{static_cast<std::uint8_t>(i % 16)});
    table.words[i] = numerics::to_bf16(value).bits;
  }
  return table;
}

// Where the two tables' bytes of one dword of codes go: pairs of codes 0, 1 or 2, 3.
constexpr ByteTable pair_order(unsigned first) {
  ByteTable order{};
  for (unsigned lane = 0; lane < 16; ++lane) {
    for (unsigned i = 0; i < 4; ++i) {
      const unsigned source = lane * 4 + first + i / 2;
      order.bytes[lane * 4 + i] = static_cast<std::uint8_t>(i % 2 == 0 ? source : source + 64);
    }
  }
  return order;
}

constexpr ByteTable kFp8Low = fp8_table(0);
constexpr ByteTable kFp8High = fp8_table(1);
constexpr ByteTable kFirstPair = pair_order(0);
constexpr ByteTable kSecondPair = pair_order(2);
constexpr WordTable kFp4 = fp4_table();
alignas(64) constexpr std::array<float, kTileLanes> kOnes = {1, 1, 1, 1, 1, 1, 1, 1,
                                                             1, 1, 1, 1, 1, 1, 1, 1};

}  // namespace
}  // namespace locket::kernels::cpu

HWY_PUSH_ATTRIBUTES("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512bf16,fma,avx2")
namespace locket::kernels::cpu {
namespace {

inline __m512 multiply_pairs(__m512 sum, __m512i a, __m512i b) {
  return _mm512_dpbf16_ps(sum, (__m512bh)a, (__m512bh)b);
}

inline __m512i load(const void* at) { return _mm512_load_si512(at); }

inline __m512i broadcast(const std::uint32_t* at) {
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

struct Fp8Decoder {
  static constexpr WeightFormat kFormat = WeightFormat::kFp8;

  __m512i low0, low1, high0, high1, first, second, sign;

  Fp8Decoder()
      : low0(load(kFp8Low.bytes.data())),
        low1(load(kFp8Low.bytes.data() + 64)),
        high0(load(kFp8High.bytes.data())),
        high1(load(kFp8High.bytes.data() + 64)),
        first(load(kFirstPair.bytes.data())),
        second(load(kSecondPair.bytes.data())),
        sign(_mm512_set1_epi8(static_cast<char>(0x80))) {}

  void pairs(const std::byte* tile, std::size_t eight, __m512i (&out)[4]) const {
    for (std::size_t half = 0; half < 2; ++half) {
      const __m512i codes = load(tile + (eight * 2 + half) * 64);
      const __m512i low = _mm512_permutex2var_epi8(low0, codes, low1);
      const __m512i magnitude = _mm512_permutex2var_epi8(high0, codes, high1);
      constexpr int kMagnitudeOrSignOfCodes = 0xF8;
      const __m512i high =
          _mm512_ternarylogic_epi32(magnitude, codes, sign, kMagnitudeOrSignOfCodes);
      out[half * 2] = _mm512_permutex2var_epi8(low, first, high);
      out[half * 2 + 1] = _mm512_permutex2var_epi8(low, second, high);
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

// The scale codes of one tile, one a lane, as dwords.
template <class Decoder>
inline __m512i scale_codes(const std::byte* scales) {
  if constexpr (Decoder::kFormat == WeightFormat::kFp8) {
    return _mm512_set1_epi32(std::to_integer<int>(scales[0]));
  } else {
    return _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(scales)));
  }
}

template <class Decoder>
inline bool scales_inside(const std::byte* scales, const ScaleRange& range) {
  if constexpr (Decoder::kFormat == WeightFormat::kBf16) return true;
  if constexpr (Decoder::kFormat == WeightFormat::kFp8) {
    return range.contains(std::to_integer<unsigned>(scales[0]));
  }
  if (range.first > range.last) return false;
  const __m128i codes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(scales));
  const __m128i above = _mm_sub_epi8(codes, _mm_set1_epi8(static_cast<char>(range.first)));
  const __m128i span = _mm_set1_epi8(static_cast<char>(range.last - range.first));
  return _mm_cmpgt_epu8_mask(above, span) == 0;
}

template <class Decoder>
inline __m512 scale_factors(const std::byte* scales) {
  if constexpr (Decoder::kFormat == WeightFormat::kBf16) {
    return _mm512_set1_ps(1.0f);
  } else {
    return _mm512_castsi512_ps(_mm512_slli_epi32(scale_codes<Decoder>(scales), 23));
  }
}

// A tile whose scales cannot wait, as bfloat16 pairs [16][16] with the scales in them.
template <class Decoder>
void scaled_tile(const std::byte* tile, const std::byte* scales, std::uint32_t* out) {
  constexpr WeightFormat kFormat = Decoder::kFormat;
  if (!scales_inside<Decoder>(scales, normal_scales(kFormat))) {
    for (std::size_t pair = 0; pair < kPairs; ++pair) {
      for (std::size_t lane = 0; lane < kTileLanes; ++lane) {
        const std::byte code = scales[kFormat == WeightFormat::kFp4 ? lane : 0];
        const auto bits = [&](std::size_t k) {
          const float value = scaled_weight(code_value(kFormat, tile, lane, k),
                                            std::to_integer<std::uint8_t>(code));
          return std::uint32_t{numerics::to_bf16(value).bits};
        };
        const std::size_t k = pair / 4 * 8 + pair % 4;
        out[pair * kTileLanes + lane] = bits(k) | bits(k + 4) << 16;
      }
    }
    return;
  }
  const Decoder decoder;
  const __m512i shift = _mm512_slli_epi32(
      _mm512_sub_epi32(scale_codes<Decoder>(scales), _mm512_set1_epi32(127)), 7);
  const __m512i both = _mm512_mask_blend_epi16(0xAAAAAAAAu, shift, _mm512_slli_epi32(shift, 16));
  for (std::size_t eight = 0; eight < 4; ++eight) {
    __m512i pairs[4];
    decoder.pairs(tile, eight, pairs);
    for (std::size_t q = 0; q < 4; ++q) {
      const __mmask32 not_zero = _mm512_test_epi16_mask(pairs[q], _mm512_set1_epi16(0x7FFF));
      pairs[q] = _mm512_mask_add_epi16(pairs[q], not_zero, pairs[q], both);
      _mm512_store_si512(out + (eight * 4 + q) * kTileLanes, pairs[q]);
    }
  }
}

template <class Decoder>
void decode_tiles(const TileBlock& block, std::uint32_t* out, float* factors) {
  const Decoder decoder;
  for (std::size_t group = 0; group < block.groups; ++group) {
    const std::byte* tile = block.tiles + group * tile_bytes(Decoder::kFormat);
    const std::byte* scales = block.scales + group * tile_scales(Decoder::kFormat);
    if (!scales_inside<Decoder>(scales, block.after_sum)) {
      scaled_tile<Decoder>(tile, scales, out);
      _mm512_store_ps(factors, _mm512_set1_ps(1.0f));
    } else {
      for (std::size_t eight = 0; eight < 4; ++eight) {
        __m512i pairs[4];
        decoder.pairs(tile, eight, pairs);
        for (std::size_t q = 0; q < 4; ++q) {
          _mm512_store_si512(out + (eight * 4 + q) * kTileLanes, pairs[q]);
        }
      }
      _mm512_store_ps(factors, scale_factors<Decoder>(scales));
    }
    out += kTileWords;
    factors += kTileLanes;
  }
}

void decode(const TileBlock& block, std::byte* out, float* out_scales) {
  auto* words = reinterpret_cast<std::uint32_t*>(out);
  LOCKET_DCHECK(block.format == WeightFormat::kFp8 || block.format == WeightFormat::kFp4);
  if (block.format == WeightFormat::kFp8) return decode_tiles<Fp8Decoder>(block, words, out_scales);
  decode_tiles<Fp4Decoder>(block, words, out_scales);
}

template <class Decoder, std::size_t kTokens>
void multiply_rows(const RowGroupProduct& p) {
  const Decoder decoder;
  const std::size_t x_stride = p.x_row_bytes / sizeof(std::uint32_t);
  const auto* x = reinterpret_cast<const std::uint32_t*>(p.x);
  __m512 totals[kTokens];
  for (__m512& total : totals) total = _mm512_setzero_ps();
  for (std::size_t group = 0; group < p.groups; ++group, x += kPairs) {
    const std::byte* tile = p.tiles + group * tile_bytes(Decoder::kFormat);
    const std::byte* scales = p.scales + group * tile_scales(Decoder::kFormat);
    __m512 sums[kTokens];
    for (__m512& sum : sums) sum = _mm512_setzero_ps();
    __m512 factor;
    if (__builtin_expect(scales_inside<Decoder>(scales, p.after_sum), 1)) {
      factor = scale_factors<Decoder>(scales);
#pragma GCC unroll 4
      for (std::size_t eight = 0; eight < 4; ++eight) {
        __m512i pairs[4];
        decoder.pairs(tile, eight, pairs);
#pragma GCC unroll 4
        for (std::size_t q = 0; q < 4; ++q) {
#pragma GCC unroll 4
          for (std::size_t t = 0; t < kTokens; ++t) {
            sums[t] = multiply_pairs(sums[t], pairs[q],
                                     broadcast(x + t * x_stride + eight * 4 + q));
          }
        }
      }
    } else {
      alignas(64) std::uint32_t words[kTileWords];
      scaled_tile<Decoder>(tile, scales, words);
      factor = _mm512_set1_ps(1.0f);
      for (std::size_t pair = 0; pair < kPairs; ++pair) {
        for (std::size_t t = 0; t < kTokens; ++t) {
          sums[t] = multiply_pairs(sums[t], load(words + pair * kTileLanes),
                                   broadcast(x + t * x_stride + pair));
        }
      }
    }
    for (std::size_t t = 0; t < kTokens; ++t) {
      totals[t] = _mm512_fmadd_ps(sums[t], factor, totals[t]);
    }
  }
  for (std::size_t t = 0; t < kTokens; ++t) _mm512_storeu_ps(p.totals + t * kTileLanes, totals[t]);
}

template <class Decoder>
void multiply_rows_of(const RowGroupProduct& p) {
  static_assert(kMostDirectTokens == 4);
  switch (p.tokens) {
    case 1: return multiply_rows<Decoder, 1>(p);
    case 2: return multiply_rows<Decoder, 2>(p);
    case 3: return multiply_rows<Decoder, 3>(p);
    default: return multiply_rows<Decoder, 4>(p);
  }
}

void multiply_row_group(WeightFormat format, const RowGroupProduct& p) {
  LOCKET_DCHECK(p.tokens >= 1 && p.tokens <= kMostDirectTokens);
  switch (format) {
    case WeightFormat::kBf16: return multiply_rows_of<Bf16Decoder>(p);
    case WeightFormat::kFp8: return multiply_rows_of<Fp8Decoder>(p);
    case WeightFormat::kFp4: return multiply_rows_of<Fp4Decoder>(p);
    case WeightFormat::kF32:
    case WeightFormat::kCount: break;
  }
  LOCKET_CHECK(false);
}

// kLaneGroups lane groups times kTokens rows of x, all groups of the panel.
template <std::size_t kLaneGroups, std::size_t kTokens>
void multiply_block(const PanelProduct& p, std::size_t lane_group, std::size_t token) {
  const std::size_t x_stride = p.x_row_bytes / sizeof(std::uint32_t);
  const auto* x = reinterpret_cast<const std::uint32_t*>(p.x) + token * x_stride;
  const std::byte* w = p.panel + lane_group * p.lane_group_bytes;
  float* totals = p.totals + token * p.totals_stride + lane_group * kTileLanes;
  const float* factors = p.scales != nullptr ? p.scales + lane_group * p.groups * kTileLanes
                                             : kOnes.data();
  const std::size_t factor_step = p.scales != nullptr ? kTileLanes : 0;
  for (std::size_t group = 0; group < p.groups; ++group) {
    __m512 sums[kTokens][kLaneGroups];
#pragma GCC unroll 12
    for (auto& row : sums) {
      for (__m512& sum : row) sum = _mm512_setzero_ps();
    }
#pragma GCC unroll 2
    for (std::size_t pair = 0; pair < kPairs; ++pair) {
      __m512i weights[kLaneGroups];
      for (std::size_t l = 0; l < kLaneGroups; ++l) {
        weights[l] = load(w + l * p.lane_group_bytes + pair * 64);
      }
#pragma GCC unroll 12
      for (std::size_t t = 0; t < kTokens; ++t) {
        const __m512i value = broadcast(x + t * x_stride + pair);
        for (std::size_t l = 0; l < kLaneGroups; ++l) {
          sums[t][l] = multiply_pairs(sums[t][l], weights[l], value);
        }
      }
    }
    for (std::size_t l = 0; l < kLaneGroups; ++l) {
      const __m512 factor = _mm512_loadu_ps(factors + l * p.groups * factor_step);
#pragma GCC unroll 12
      for (std::size_t t = 0; t < kTokens; ++t) {
        float* total = totals + t * p.totals_stride + l * kTileLanes;
        _mm512_storeu_ps(total, _mm512_fmadd_ps(sums[t][l], factor, _mm512_loadu_ps(total)));
      }
    }
    w += kTileWords * sizeof(std::uint32_t);
    x += kPairs;
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

// Columns 8i .. 8i + 7 of bfloat16-valued floats: four dwords (k, k + 4).
inline __m128i pairs_of_eight(const float* x) {
  const __m128i low = _mm_loadu_si128(reinterpret_cast<const __m128i*>(x));
  const __m128i high = _mm_loadu_si128(reinterpret_cast<const __m128i*>(x + 4));
  return _mm_blend_epi16(_mm_srli_epi32(low, 16), high, 0xAA);
}

void pack_x(const float* x, std::size_t count, std::byte* out) {
  auto* pairs = reinterpret_cast<__m128i*>(out);
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8) _mm_storeu_si128(pairs++, pairs_of_eight(x + i));
  const std::size_t end = group_count(count) * kGroupColumns;
  for (; i < end; i += 8) {
    float tail[8];
    for (std::size_t k = 0; k < 8; ++k) tail[k] = i + k < count ? x[i + k] : -0.0f;
    _mm_storeu_si128(pairs++, pairs_of_eight(tail));
  }
}

void pack_rows(const RowBlock& block, std::byte* panel) {
  auto* out = reinterpret_cast<float*>(panel);
  for (std::size_t row = 0; row < block.row_count; row += kTileLanes) {
    for (std::size_t column = 0; column < block.columns; column += kGroupColumns) {
      const RowTile tile(block, row, column);
      for (std::size_t lane = 0; lane < kTileLanes; lane += 4) {
        for (std::size_t eight = 0; eight < 4; ++eight) {
          __m128 rows[4];
          for (std::size_t i = 0; i < 4; ++i) {
            rows[i] = _mm_castsi128_ps(pairs_of_eight(tile.row(lane + i) + eight * 8));
          }
          _MM_TRANSPOSE4_PS(rows[0], rows[1], rows[2], rows[3]);
          for (std::size_t i = 0; i < 4; ++i) {
            _mm_store_ps(out + (eight * 4 + i) * kTileLanes + lane, rows[i]);
          }
        }
      }
      out += kTileWords;
    }
  }
}

void pack_columns(const RowBlock& block, std::byte* panel) {
  auto* out = reinterpret_cast<std::uint32_t*>(panel);
  const auto row = [&](std::size_t index, std::size_t column, __mmask16 lanes) {
    const __mmask16 used = index < block.row_count ? lanes : static_cast<__mmask16>(0);
    return _mm512_maskz_loadu_epi32(used, block.rows + index * block.stride + column);
  };
  for (std::size_t column = 0; column < block.columns; column += kTileLanes) {
    const std::size_t used = block.columns - column;
    const auto lanes = static_cast<__mmask16>(used >= kTileLanes ? 0xFFFFu : (1u << used) - 1);
    for (std::size_t eight = 0; eight < group_count(block.row_count) * 4; ++eight) {
      for (std::size_t q = 0; q < 4; ++q, out += kTileLanes) {
        const __m512i low = row(eight * 8 + q, column, lanes);
        const __m512i high = row(eight * 8 + q + 4, column, lanes);
        _mm512_store_si512(
            out, _mm512_mask_blend_epi16(0xAAAAAAAAu, _mm512_srli_epi32(low, 16), high));
      }
    }
  }
}

}  // namespace
}  // namespace locket::kernels::cpu
HWY_POP_ATTRIBUTES

namespace locket::kernels::cpu {

const PanelKernels& bf16_panel_kernels() {
  static const PanelKernels kernels = {
      .tile_format = WeightFormat::kBf16,
      .mantissa = MantissaBits::kBf16,
      .group_bytes = kPairs * sizeof(std::uint32_t),
      .direct_tokens = kMostDirectTokens,
      .pack_x = pack_x,
      .exponent_span = f32_panel_kernels(InstructionSet::kAvx512).exponent_span,
      .pack_rows = pack_rows,
      .pack_columns = pack_columns,
      .decode = decode,
      .multiply = multiply,
      .multiply_row_group = multiply_row_group,
  };
  return kernels;
}

}  // namespace locket::kernels::cpu
