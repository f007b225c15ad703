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
#include "kernels/cpu/f32_decode-inl.h"

HWY_BEFORE_NAMESPACE();
namespace locket::kernels::cpu {
namespace HWY_NAMESPACE {

#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3

constexpr std::size_t kDirectTokens = 2;  // more do not fit the registers of AVX2
constexpr float kUnshift = 1.0f / (1u << kFp8TileShift);

// What decoded weights of one tile are multiplied by, for the lanes of one part. REQUIRES: the
// codes of the scales are in a range of scale_range.h.
template <WeightFormat kFormat>
HWY_INLINE VecF load_scales(const std::byte* scales, std::size_t part) {
  const U32 u;
  if constexpr (decoded_shift(kFormat) > 0) {
    return as_f32(hn::Set(u, tile_factor_bits<kFormat>(scales)));
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
  if constexpr (tile_scale_bytes(kFormat) == 0 || is_affine(kFormat)) return true;
  if constexpr (decoded_shift(kFormat) > 0) {
    return range.contains(tile_scale_code<kFormat>(scales));
  }
  if (range.first > range.last) return false;
  const hn::FixedTag<std::uint8_t, 16> bytes;
  const auto codes = hn::LoadU(bytes, reinterpret_cast<const std::uint8_t*>(scales));
  const auto low = hn::Set(bytes, static_cast<std::uint8_t>(range.first));
  const auto high = hn::Set(bytes, static_cast<std::uint8_t>(range.last));
  return hn::AllTrue(bytes, hn::Eq(hn::Min(hn::Max(codes, low), high), codes));
}

// The tile with its scales, whatever they are: [32][16] floats. REQUIRES: the scales are codes.
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

// values = weights * scale [32][16].
template <WeightFormat kFormat, class Scale>
HWY_INLINE void store_tile(const StoredTile& tile, const Scale& scale_of_part, float* values) {
  for (std::size_t part = 0; part < kParts; ++part) {
    const VecF scale = scale_of_part(part);
    for_each_weight<kFormat>(tile, part, [=](std::size_t k, VecF w) HWY_ATTR {
      hn::Store(hn::Mul(w, scale), F32(), values + k * kTileLanes + part * kVectorLanes);
    });
  }
}

// One tile as floats [32][16] in `out`, its factors in `factors`.
template <WeightFormat kFormat>
void decode_tile(const std::byte* tile, const std::byte* scales, ScalePlace place, float* out,
                 float* factors) {
  const F32 d;
  if (place == ScalePlace::kInFactors) {
    const VecF one = hn::Set(d, 1.0f);
    store_tile<kFormat>(
        {tile, scales}, [=](std::size_t) HWY_ATTR { return one; }, out);
    for (std::size_t part = 0; part < kParts; ++part) {
      hn::Store(load_scales<kFormat>(scales, part), d, factors + part * kVectorLanes);
    }
    return;
  }
  std::fill_n(factors, kTileLanes, 1.0f);
  if constexpr (kFormat == WeightFormat::kFp8F32) {
    const VecF unshift = hn::Set(d, kUnshift);
    store_tile<kFormat>(
        {tile, scales}, [=](std::size_t) HWY_ATTR { return unshift; }, out);
    float scale = 0.0f;
    std::memcpy(&scale, scales, sizeof scale);
    std::fill_n(factors, kTileLanes, scale);
  } else if (scales_inside<kFormat>(scales, normal_scales(kFormat))) {
    store_tile<kFormat>(
        {tile, scales},
        [=](std::size_t part) HWY_ATTR { return load_scales<kFormat>(scales, part); }, out);
  } else {
    scale_tile(kFormat, tile, scales, out);
  }
}

template <WeightFormat kFormat>
void decode_tiles(const TileBlock& block, float* out, float* out_scales) {
  for (std::size_t group = 0; group < block.groups; ++group) {
    const std::byte* scales = block.scales + group * tile_scale_bytes(kFormat);
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
    case WeightFormat::kFp8F32:
      return decode_tiles<WeightFormat::kFp8F32>(block, values, out_scales);
    case WeightFormat::kFp4:
      return decode_tiles<WeightFormat::kFp4>(block, values, out_scales);
    case WeightFormat::kF32:
      return decode_tiles<WeightFormat::kF32>(block, values, out_scales);
    case WeightFormat::kAffine4:
      return decode_tiles<WeightFormat::kAffine4>(block, values, out_scales);
    case WeightFormat::kAffine8:
      return decode_tiles<WeightFormat::kAffine8>(block, values, out_scales);
    case WeightFormat::kCount:
      break;
  }
  LOCKET_CHECK(false);
}

// totals[part][token] += factors * sums of one tile. x: [kTokens] rows at the tile's columns.
template <WeightFormat kFormat, std::size_t kTokens>
HWY_INLINE void add_tile(const StoredTile& tile, std::size_t part, VecF factor, const float* x,
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
    const std::byte* scales = p.scales + group * tile_scale_bytes(kFormat);
    prefetch_ahead(tile, tile_bytes(kFormat));
    if (HWY_LIKELY(scales_inside<kFormat>(scales, p.after_sum))) {
      for (std::size_t part = 0; part < kParts; ++part) {
        add_tile<kFormat, kTokens>({tile, scales}, part, load_scales<kFormat>(scales, part), x,
                                   x_stride, totals[part]);
      }
      continue;
    }
    alignas(64) float values[kGroupColumns * kTileLanes];
    alignas(64) float factors[kTileLanes];
    decode_tile<kFormat>(tile, scales, ScalePlace::kInValues, values, factors);
    for (std::size_t part = 0; part < kParts; ++part) {
      add_tile<WeightFormat::kF32, kTokens>({reinterpret_cast<const std::byte*>(values), nullptr},
                                            part, hn::Load(d, factors + part * kVectorLanes), x,
                                            x_stride, totals[part]);
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
    case WeightFormat::kFp8F32:
      return multiply_row_group_in<WeightFormat::kFp8F32>(p);
    case WeightFormat::kFp4:
      return multiply_row_group_in<WeightFormat::kFp4>(p);
    case WeightFormat::kF32:
      return multiply_row_group_in<WeightFormat::kF32>(p);
    case WeightFormat::kAffine4:
      return multiply_row_group_in<WeightFormat::kAffine4>(p);
    case WeightFormat::kAffine8:
      return multiply_row_group_in<WeightFormat::kAffine8>(p);
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
