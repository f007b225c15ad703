// Tiles of stored weights as vectors of float32, 16 rows in 16 lanes, in the order of sum_order.h;
// written once for AVX2 and AVX-512. Included once per target by .cc files that have included
// Highway.

#if defined(LOCKET_KERNELS_CPU_F32_DECODE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef LOCKET_KERNELS_CPU_F32_DECODE_INL_H
#undef LOCKET_KERNELS_CPU_F32_DECODE_INL_H
#else
#define LOCKET_KERNELS_CPU_F32_DECODE_INL_H
#endif

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/cpu/panel.h"
#include "kernels/fp8_tile.h"
#include "kernels/sum_order.h"
#include "numerics/fp4_e2m1.h"

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
constexpr std::size_t kParts = kTileLanes / kVectorLanes;  // vectors that make 16 lanes

HWY_INLINE VecF as_f32(VecU bits) { return hn::BitCast(F32(), bits); }

// The tables of kFp8Tile by the lower four bits of a byte: for the first four entries, and for the
// others, whose upper bytes go up by one every eight entries.
constexpr std::array<std::uint8_t, 16> lower_of(std::size_t first) {
  std::array<std::uint8_t, 16> table = {};
  for (std::size_t i = 0; i < 16; ++i) table[i] = kFp8Tile.lower[first + i % 16];
  return table;
}

alignas(16) constexpr std::array<std::uint8_t, 16> kFp8RegularLower = lower_of(16);
alignas(16) constexpr std::array<std::uint8_t, 16> kFp8IrregularLower = lower_of(0);
alignas(16) constexpr std::array<std::uint8_t, 16> kFp8IrregularUpper = {
    kFp8Tile.upper[0], kFp8Tile.upper[1], kFp8Tile.upper[2], kFp8Tile.upper[3]};
constexpr std::uint8_t kFp8FirstUpper = kFp8Tile.upper[4];

// Values of the bytes of one vector of an FP8 tile (fp8_tile.h), times 2^kFp8TileShift, as pairs of
// bfloat16. Lookups of 16 entries: those of kFp8Tile follow a rule from the fifth on.
struct Fp8Pairs {
  VecU first;   // columns (k, k + 4)
  VecU second;  // columns (k + 1, k + 5)
};

struct Fp8Decoder {
  using U8 = hn::Repartition<std::uint8_t, U32>;
  using U16 = hn::Repartition<std::uint16_t, U32>;
  using VecB = hn::Vec<U8>;

  HWY_INLINE static VecB look_up(const std::array<std::uint8_t, 16>& table, VecB index) {
    return hn::TableLookupBytes(hn::LoadDup128(U8(), table.data()), index);
  }

  HWY_INLINE static Fp8Pairs pairs(const std::uint8_t* bytes) {
    const U8 d;
    const U16 words;
    const VecB codes = hn::Load(d, bytes);
    const VecB nibble = hn::And(codes, hn::Set(d, 0x0Fu));
    const auto is_irregular = hn::Eq(hn::And(codes, hn::Set(d, 0x3Cu)), hn::Zero(d));
    const VecB lower = hn::IfThenElse(is_irregular, look_up(kFp8IrregularLower, nibble),
                                      look_up(kFp8RegularLower, nibble));
    const VecB eighths =
        hn::And(hn::BitCast(d, hn::ShiftRight<3>(hn::BitCast(words, codes))), hn::Set(d, 7u));
    const VecB upper = hn::IfThenElse(is_irregular, look_up(kFp8IrregularUpper, nibble),
                                      hn::Add(eighths, hn::Set(d, kFp8FirstUpper)));
    const VecB low = hn::And(lower, hn::Or(codes, hn::Set(d, 0xBFu)));
    const VecB high = hn::Or(upper, hn::And(codes, hn::Set(d, 0xC0u)));
    const U32 u;
    return {.first = hn::BitCast(u, hn::InterleaveLower(d, low, high)),
            .second = hn::BitCast(u, hn::InterleaveUpper(d, low, high))};
  }
};

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

// Calls use(k, weights) for columns k + 4 and k of pairs of bfloat16.
template <class Use>
HWY_INLINE void for_each_pair(VecU both, std::size_t k, const Use& use) {
  const U32 u;
  use(k + 4, as_f32(hn::And(both, hn::Set(u, 0xFFFF0000u))));
  use(k, as_f32(hn::ShiftLeft<16>(both)));
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
      for_each_pair(both, eight + pair, use);
    }
  }
}

template <class Use>
HWY_INLINE void for_each_fp8(const std::byte* tile, std::size_t part, const Use& use) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(tile) + part * kVectorLanes * 4;
  for (std::size_t eight = 0; eight < 32; eight += 8) {
    HWY_UNROLL(2)
    for (std::size_t half = 0; half < 2; ++half) {
      const Fp8Pairs pairs = Fp8Decoder::pairs(bytes + (eight / 4 + half) * 64);
      for_each_pair(pairs.first, eight + half * 2, use);
      for_each_pair(pairs.second, eight + half * 2 + 1, use);
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

// Both as weight_matrix.h has them.
struct StoredTile {
  const std::byte* codes;
  const std::byte* scales;
};

// Scales and offsets of the lanes of one part.
struct AffineScales {
  VecF scale;
  VecF offset;

  HWY_INLINE AffineScales(const StoredTile& tile, std::size_t part) {
    const auto* factors = reinterpret_cast<const float*>(tile.scales) + part * kVectorLanes;
    scale = hn::Load(F32(), factors);
    offset = hn::Load(F32(), factors + kTileLanes);
  }

  // Of the code of kBits at kShift of each lane.
  template <int kBits, int kShift>
  HWY_INLINE VecF weight(VecU codes) const {
    const hn::RebindToSigned<U32> i;
    VecU code = hn::ShiftRight<kShift>(codes);
    if constexpr (kShift + kBits < 32) code = hn::And(code, hn::Set(U32(), (1u << kBits) - 1));
    // Not fused: the product is rounded first.
    return hn::Add(hn::Mul(hn::ConvertTo(F32(), hn::BitCast(i, code)), scale), offset);
  }
};

// Weights of eight columns: codes of the first four from bit 0 of `low` on, of the others from bit
// kShift of `high` on.
template <int kBits, int kShift, class Use>
HWY_INLINE void for_each_of_eight(const AffineScales& scales, VecU low, VecU high,
                                  std::size_t eight, const Use& use) {
  use(eight + 4, scales.weight<kBits, kShift>(high));
  use(eight, scales.weight<kBits, 0>(low));
  use(eight + 5, scales.weight<kBits, kShift + kBits>(high));
  use(eight + 1, scales.weight<kBits, kBits>(low));
  use(eight + 6, scales.weight<kBits, kShift + 2 * kBits>(high));
  use(eight + 2, scales.weight<kBits, 2 * kBits>(low));
  use(eight + 7, scales.weight<kBits, kShift + 3 * kBits>(high));
  use(eight + 3, scales.weight<kBits, 3 * kBits>(low));
}

// Eight columns of a lane are one double word of 4-bit codes, or two of 8-bit codes.
template <int kBits, class Use>
HWY_INLINE void for_each_affine(const StoredTile& tile, std::size_t part, const Use& use) {
  constexpr std::size_t kWords = kBits / 4;
  const AffineScales scales(tile, part);
  const auto* words = reinterpret_cast<const std::uint32_t*>(tile.codes) + part * kVectorLanes;
  HWY_UNROLL(4)
  for (std::size_t eight = 0; eight < 32; eight += 8) {
    const std::uint32_t* at = words + eight / 8 * kWords * kTileLanes;
    const VecU low = hn::Load(U32(), at);
    const VecU high = hn::Load(U32(), at + (kWords - 1) * kTileLanes);
    for_each_of_eight<kBits, kWords == 1 ? 16 : 0>(scales, low, high, eight, use);
  }
}

// Scales are read for affine weights only: the others come without theirs.
template <WeightFormat kFormat, class Use>
HWY_INLINE void for_each_weight(const StoredTile& tile, std::size_t part, const Use& use) {
  if constexpr (kFormat == WeightFormat::kAffine4) for_each_affine<4>(tile, part, use);
  if constexpr (kFormat == WeightFormat::kAffine8) for_each_affine<8>(tile, part, use);
  if constexpr (kFormat == WeightFormat::kBf16) for_each_bf16(tile.codes, part, use);
  if constexpr (decoded_shift(kFormat) > 0) for_each_fp8(tile.codes, part, use);
  if constexpr (kFormat == WeightFormat::kFp4) for_each_fp4(tile.codes, part, use);
  if constexpr (kFormat == WeightFormat::kF32) for_each_f32(tile.codes, part, use);
}

#endif

}  // namespace HWY_NAMESPACE
}  // namespace locket::kernels::cpu
HWY_AFTER_NAMESPACE();

#endif
