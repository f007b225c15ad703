// Float32 products with fused multiply-adds, written once for AVX2 and AVX-512.
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/check.h"
#include "kernels/cpu/instruction_sets.h"
#include "kernels/cpu/panel.h"
#include "kernels/cpu/panel_packing.h"
#include "kernels/sum_order.h"
#include "numerics/fp4_e2m1.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/f32_kernels.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace locket::kernels::cpu {
namespace HWY_NAMESPACE {

#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3

namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::ScalableTag<float>;
using U32 = hn::ScalableTag<std::uint32_t>;
using VecF = hn::Vec<F32>;
using VecU = hn::Vec<U32>;

constexpr std::size_t kVectorLanes = hn::MaxLanes(F32());
constexpr std::size_t kDirectTokens = 2;                   // more do not fit the registers of AVX2
constexpr std::size_t kParts = kTileLanes / kVectorLanes;  // vectors that make 16 lanes

HWY_INLINE VecF as_f32(VecU bits) { return hn::BitCast(F32(), bits); }

// E4M3 code in the low byte of each lane (the rest zero) -> its value. Subnormal codes come from a
// difference of normal numbers, which FlushScope does not touch.
HWY_INLINE VecF fp8_value(VecU code) {
  const U32 u;
  const VecU magnitude = hn::ShiftLeft<20>(hn::And(code, hn::Set(u, 0x7Fu)));
  const VecU sign = hn::ShiftLeft<24>(hn::And(code, hn::Set(u, 0x80u)));
  const VecU normal = hn::Add(magnitude, hn::Set(u, 120u << 23));
  const VecU above = hn::Add(magnitude, hn::Set(u, 121u << 23));
  const VecF subnormal = hn::Sub(as_f32(above), hn::Set(F32(), 0x1p-6f));
  const auto is_subnormal = hn::Lt(hn::BitCast(hn::RebindToSigned<U32>(), magnitude),
                                   hn::Set(hn::RebindToSigned<U32>(), 1 << 23));
  const VecF value = hn::IfThenElse(
      hn::MaskFromVec(
          as_f32(hn::BitCast(u, hn::VecFromMask(hn::RebindToSigned<U32>(), is_subnormal)))),
      subnormal, as_f32(normal));
  return hn::Or(value, as_f32(sign));
}

// Nibble at `shift` of each lane -> its value; `table` holds the values of the codes.
template <int kShift>
HWY_INLINE VecF fp4_value(VecU codes, VecF table) {
  const U32 u;
  const VecU index = hn::And(hn::ShiftRight<kShift>(codes), hn::Set(u, kVectorLanes - 1));
  const VecF value = hn::TableLookupLanes(table, hn::IndicesFromVec(F32(), index));
  if constexpr (kVectorLanes == 16) return value;
  const VecU sign = hn::And(hn::ShiftLeft<28 - kShift>(codes), hn::Set(u, 0x80000000u));
  return hn::Or(value, as_f32(sign));
}

// Calls use(k, weights) for the 32 columns of a tile in the order of sum_order.h, for the lanes of
// one part; weights without their scale.
template <class Use>
HWY_INLINE void for_each_bf16(const std::byte* tile, std::size_t part, const Use& use) {
  const U32 u;
  const auto* words = reinterpret_cast<const std::uint32_t*>(tile) + part * kVectorLanes;
  HWY_UNROLL(4)
  for (std::size_t eight = 0; eight < 32; eight += 8) {
    HWY_UNROLL(4)
    for (std::size_t pair = 0; pair < 4; ++pair) {
      const VecU both = hn::Load(u, words + (eight / 2 + pair) * kTileLanes);
      use(eight + pair + 4, as_f32(hn::And(both, hn::Set(u, 0xFFFF0000u))));
      use(eight + pair, as_f32(hn::ShiftLeft<16>(both)));
    }
  }
}

template <class Use>
HWY_INLINE void for_each_fp8(const std::byte* tile, std::size_t part, const Use& use) {
  const U32 u;
  const VecU byte = hn::Set(u, 0xFFu);
  const auto* words = reinterpret_cast<const std::uint32_t*>(tile) + part * kVectorLanes;
  for (std::size_t eight = 0; eight < 32; eight += 8) {
    HWY_UNROLL(2)
    for (std::size_t half = 0; half < 2; ++half) {
      const VecU codes = hn::Load(u, words + (eight / 4 + half) * kTileLanes);
      const std::size_t k = eight + half * 2;
      use(k + 4, fp8_value(hn::And(hn::ShiftRight<8>(codes), byte)));
      use(k, fp8_value(hn::And(codes, byte)));
      use(k + 5, fp8_value(hn::ShiftRight<24>(codes)));
      use(k + 1, fp8_value(hn::And(hn::ShiftRight<16>(codes), byte)));
    }
  }
}

template <class Use>
HWY_INLINE void for_each_fp4(const std::byte* tile, std::size_t part, const Use& use) {
  const VecF table = hn::LoadU(F32(), numerics::kFp4E2m1Values.data());
  const auto* words = reinterpret_cast<const std::uint32_t*>(tile) + part * kVectorLanes;
  for (std::size_t eight = 0; eight < 32; eight += 8) {
    const VecU codes = hn::Load(U32(), words + eight / 8 * kTileLanes);
    use(eight + 4, fp4_value<16>(codes, table));
    use(eight, fp4_value<0>(codes, table));
    use(eight + 5, fp4_value<20>(codes, table));
    use(eight + 1, fp4_value<4>(codes, table));
    use(eight + 6, fp4_value<24>(codes, table));
    use(eight + 2, fp4_value<8>(codes, table));
    use(eight + 7, fp4_value<28>(codes, table));
    use(eight + 3, fp4_value<12>(codes, table));
  }
}

template <class Use>
HWY_INLINE void for_each_f32(const std::byte* tile, std::size_t part, const Use& use) {
  const auto* values = reinterpret_cast<const float*>(tile) + part * kVectorLanes;
  for (std::size_t eight = 0; eight < 32; eight += 8) {
    HWY_UNROLL(8)
    for (std::size_t step = 0; step < 8; ++step) {
      const std::size_t k = eight + kOrderOfEight[step];
      use(k, hn::Load(F32(), values + k * kTileLanes));
    }
  }
}

template <WeightFormat kFormat, class Use>
HWY_INLINE void for_each_weight(const std::byte* tile, std::size_t part, const Use& use) {
  if constexpr (kFormat == WeightFormat::kBf16) for_each_bf16(tile, part, use);
  if constexpr (kFormat == WeightFormat::kFp8) for_each_fp8(tile, part, use);
  if constexpr (kFormat == WeightFormat::kFp4) for_each_fp4(tile, part, use);
  if constexpr (kFormat == WeightFormat::kF32) for_each_f32(tile, part, use);
}

constexpr bool has_scales(WeightFormat format) {
  return format == WeightFormat::kFp8 || format == WeightFormat::kFp4;
}

// The scales of one tile, for the lanes of one part. REQUIRES: no code is 0.
template <WeightFormat kFormat>
HWY_INLINE VecF load_scales(const std::byte* scales, std::size_t part) {
  const U32 u;
  if constexpr (kFormat == WeightFormat::kFp8) {
    return as_f32(hn::Set(u, std::to_integer<std::uint32_t>(scales[0]) << 23));
  }
  if constexpr (kFormat == WeightFormat::kFp4) {
    const hn::Rebind<std::uint8_t, U32> bytes;
    const auto* codes = reinterpret_cast<const std::uint8_t*>(scales) + part * kVectorLanes;
    return as_f32(hn::ShiftLeft<23>(hn::PromoteTo(u, hn::LoadU(bytes, codes))));
  }
  return hn::Set(F32(), 1.0f);
}

template <WeightFormat kFormat>
HWY_INLINE bool scales_inside(const std::byte* scales, const ScaleRange& range) {
  if constexpr (!has_scales(kFormat)) return true;
  if constexpr (kFormat == WeightFormat::kFp8) {
    return range.contains(std::to_integer<unsigned>(scales[0]));
  }
  if (range.first > range.last) return false;
  const hn::FixedTag<std::uint8_t, 16> bytes;
  const auto codes = hn::LoadU(bytes, reinterpret_cast<const std::uint8_t*>(scales));
  const auto low = hn::Set(bytes, static_cast<std::uint8_t>(range.first));
  const auto high = hn::Set(bytes, static_cast<std::uint8_t>(range.last));
  return hn::AllTrue(bytes, hn::Eq(hn::Min(hn::Max(codes, low), high), codes));
}

// The tile with its scales, whatever they are: [32][16] floats.
void scale_tile(WeightFormat format, const std::byte* tile, const std::byte* scales, float* out) {
  for (std::size_t k = 0; k < kGroupColumns; ++k) {
    for (std::size_t lane = 0; lane < kTileLanes; ++lane) {
      const std::byte code = scales[format == WeightFormat::kFp4 ? lane : 0];
      out[k * kTileLanes + lane] =
          scaled_weight(code_value(format, tile, lane, k), std::to_integer<std::uint8_t>(code));
    }
  }
}

enum class ScalePlace { kInFactors, kInValues };

// One tile as floats [32][16] in `out`, its factors in `factors`.
template <WeightFormat kFormat>
void decode_tile(const std::byte* tile, const std::byte* scales, ScalePlace place, float* out,
                 float* factors) {
  const F32 d;
  if (place == ScalePlace::kInValues && !scales_inside<kFormat>(scales, normal_scales(kFormat))) {
    scale_tile(kFormat, tile, scales, out);
    std::fill_n(factors, kTileLanes, 1.0f);
    return;
  }
  for (std::size_t part = 0; part < kParts; ++part) {
    const VecF one = hn::Set(d, 1.0f);
    const VecF scale = load_scales<kFormat>(scales, part);
    const VecF inside = place == ScalePlace::kInValues ? scale : one;
    for_each_weight<kFormat>(tile, part, [=](std::size_t k, VecF w) HWY_ATTR {
      hn::Store(hn::Mul(w, inside), F32(), out + k * kTileLanes + part * kVectorLanes);
    });
    hn::Store(place == ScalePlace::kInValues ? one : scale, d, factors + part * kVectorLanes);
  }
}

template <WeightFormat kFormat>
void decode_tiles(const TileBlock& block, float* out, float* out_scales) {
  for (std::size_t group = 0; group < block.groups; ++group) {
    const std::byte* scales = block.scales + group * tile_scales(kFormat);
    // The next panel of these rows.
    prefetch_lines(block.tiles + (block.groups + group) * tile_bytes(kFormat), tile_bytes(kFormat));
    const ScalePlace place = scales_inside<kFormat>(scales, block.after_sum)
                                 ? ScalePlace::kInFactors
                                 : ScalePlace::kInValues;
    decode_tile<kFormat>(block.tiles + group * tile_bytes(kFormat), scales, place,
                         out + group * kGroupColumns * kTileLanes, out_scales + group * kTileLanes);
  }
}

void decode(const TileBlock& block, std::byte* out, float* out_scales) {
  auto* values = reinterpret_cast<float*>(out);
  switch (block.format) {
    case WeightFormat::kBf16:
      return decode_tiles<WeightFormat::kBf16>(block, values, out_scales);
    case WeightFormat::kFp8:
      return decode_tiles<WeightFormat::kFp8>(block, values, out_scales);
    case WeightFormat::kFp4:
      return decode_tiles<WeightFormat::kFp4>(block, values, out_scales);
    case WeightFormat::kF32:
      return decode_tiles<WeightFormat::kF32>(block, values, out_scales);
    case WeightFormat::kCount:
      break;
  }
  LOCKET_CHECK(false);
}

// totals[part][token] += factors * sums of one tile. x: [kTokens] rows at the tile's columns.
template <WeightFormat kFormat, std::size_t kTokens>
HWY_INLINE void add_tile(const std::byte* tile, std::size_t part, VecF factor, const float* x,
                         std::size_t x_stride, VecF* HWY_RESTRICT totals) {
  const F32 d;
  VecF sums[kTokens];
  for (std::size_t t = 0; t < kTokens; ++t) sums[t] = hn::Zero(d);
  for_each_weight<kFormat>(tile, part, [&](std::size_t k, VecF w) HWY_ATTR {
    for (std::size_t t = 0; t < kTokens; ++t) {
      sums[t] = hn::MulAdd(w, hn::Set(d, x[t * x_stride + k]), sums[t]);
    }
  });
  for (std::size_t t = 0; t < kTokens; ++t) totals[t] = hn::MulAdd(sums[t], factor, totals[t]);
}

template <WeightFormat kFormat, std::size_t kTokens>
void multiply_row_group_of(const RowGroupProduct& p) {
  const F32 d;
  const std::size_t x_stride = p.x_row_bytes / sizeof(float);
  const auto* x = reinterpret_cast<const float*>(p.x);
  VecF totals[kParts][kTokens];
  for (auto& part : totals) {
    for (VecF& total : part) total = hn::Zero(d);
  }
  for (std::size_t group = 0; group < p.groups; ++group, x += kGroupColumns) {
    const std::byte* tile = p.tiles + group * tile_bytes(kFormat);
    const std::byte* scales = p.scales + group * tile_scales(kFormat);
    prefetch_ahead(tile, tile_bytes(kFormat));
    if (HWY_LIKELY(scales_inside<kFormat>(scales, p.after_sum))) {
      for (std::size_t part = 0; part < kParts; ++part) {
        add_tile<kFormat, kTokens>(tile, part, load_scales<kFormat>(scales, part), x, x_stride,
                                   totals[part]);
      }
      continue;
    }
    alignas(64) float values[kGroupColumns * kTileLanes];
    alignas(64) float factors[kTileLanes];
    decode_tile<kFormat>(tile, scales, ScalePlace::kInValues, values, factors);
    for (std::size_t part = 0; part < kParts; ++part) {
      add_tile<WeightFormat::kF32, kTokens>(reinterpret_cast<const std::byte*>(values), part,
                                            hn::Set(d, 1.0f), x, x_stride, totals[part]);
    }
  }
  for (std::size_t t = 0; t < kTokens; ++t) {
    for (std::size_t part = 0; part < kParts; ++part) {
      hn::StoreU(totals[part][t], d, p.totals + t * kTileLanes + part * kVectorLanes);
    }
  }
}

template <WeightFormat kFormat>
void multiply_row_group_in(const RowGroupProduct& p) {
  static_assert(kDirectTokens == 2);
  if (p.tokens == 1) return multiply_row_group_of<kFormat, 1>(p);
  multiply_row_group_of<kFormat, 2>(p);
}

void multiply_row_group(WeightFormat format, const RowGroupProduct& p) {
  LOCKET_DCHECK(p.tokens >= 1 && p.tokens <= kDirectTokens);
  switch (format) {
    case WeightFormat::kBf16:
      return multiply_row_group_in<WeightFormat::kBf16>(p);
    case WeightFormat::kFp8:
      return multiply_row_group_in<WeightFormat::kFp8>(p);
    case WeightFormat::kFp4:
      return multiply_row_group_in<WeightFormat::kFp4>(p);
    case WeightFormat::kF32:
      return multiply_row_group_in<WeightFormat::kF32>(p);
    case WeightFormat::kCount:
      break;
  }
  LOCKET_CHECK(false);
}

// One lane group times kTokens rows of x, all groups of the panel.
template <std::size_t kTokens>
HWY_INLINE void multiply_block(const PanelProduct& p, std::size_t lane_group, std::size_t token) {
  const F32 d;
  const std::size_t x_stride = p.x_row_bytes / sizeof(float);
  const auto* x = reinterpret_cast<const float*>(p.x) + token * x_stride;
  const auto* w = reinterpret_cast<const float*>(p.panel + lane_group * p.lane_group_bytes);
  float* totals = p.totals + token * p.totals_stride + lane_group * kTileLanes;
  for (std::size_t group = 0; group < p.groups; ++group) {
    VecF sums[kTokens][kParts];
    for (auto& row : sums) {
      for (VecF& sum : row) sum = hn::Zero(d);
    }
    for (std::size_t step = 0; step < kGroupColumns; ++step) {
      const std::size_t k = step_position(step);
      VecF weights[kParts];
      for (std::size_t part = 0; part < kParts; ++part) {
        weights[part] = hn::Load(d, w + k * kTileLanes + part * kVectorLanes);
      }
      HWY_UNROLL(12)
      for (std::size_t t = 0; t < kTokens; ++t) {
        const VecF value = hn::Set(d, x[t * x_stride + k]);
        for (std::size_t part = 0; part < kParts; ++part) {
          sums[t][part] = hn::MulAdd(weights[part], value, sums[t][part]);
        }
      }
    }
    for (std::size_t part = 0; part < kParts; ++part) {
      const std::size_t at = (lane_group * p.groups + group) * kTileLanes + part * kVectorLanes;
      const VecF factor = p.scales != nullptr ? hn::LoadU(d, p.scales + at) : hn::Set(d, 1.0f);
      for (std::size_t t = 0; t < kTokens; ++t) {
        float* total = totals + t * p.totals_stride + part * kVectorLanes;
        hn::StoreU(hn::MulAdd(sums[t][part], factor, hn::LoadU(d, total)), d, total);
      }
    }
    w += kGroupColumns * kTileLanes;
    x += kGroupColumns;
  }
}

void multiply(const PanelProduct& p) {
  for (std::size_t lane_group = 0; lane_group < p.lane_groups; ++lane_group) {
    std::size_t token = 0;
    if constexpr (kParts == 1) {
      for (; token + 12 <= p.tokens; token += 12) multiply_block<12>(p, lane_group, token);
    }
    for (; token + 6 <= p.tokens; token += 6) multiply_block<6>(p, lane_group, token);
    for (; token + 3 <= p.tokens; token += 3) multiply_block<3>(p, lane_group, token);
    for (; token < p.tokens; ++token) multiply_block<1>(p, lane_group, token);
  }
}

constexpr PanelKernels kPanelKernels = {
    .tile_format = WeightFormat::kF32,
    .mantissa = MantissaBits::kF32,
    .group_bytes = kGroupColumns * sizeof(float),
    .direct_tokens = kDirectTokens,
    .pack_x = pack_f32_x,
    .pack_rows = pack_f32_rows,
    .decode = decode,
    .multiply = multiply,
    .multiply_row_group = multiply_row_group,
};

#endif

}  // namespace HWY_NAMESPACE
}  // namespace locket::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace locket::kernels::cpu {

const PanelKernels& f32_panel_kernels(InstructionSet set) {
  return set == InstructionSet::kAvx2 ? N_AVX2::kPanelKernels : N_AVX3::kPanelKernels;
}

}  // namespace locket::kernels::cpu

#endif
