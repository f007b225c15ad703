#include "kernels/cpu/attention_rows.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "numerics/e8m0.h"
#include "numerics/fp4_e2m1.h"
#include "numerics/fp8_e4m3.h"
#include "numerics/group_scaled.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention_rows.cc"
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

constexpr std::size_t kStep = hn::MaxLanes(F32());

HWY_INLINE std::uint32_t load_word(const std::byte* at) {
  std::uint32_t word;
  std::memcpy(&word, at, sizeof(word));
  return word;
}

// Values of as many consecutive E2M1 codes as a vector has lanes.
class Fp4Values {
 public:
  Fp4Values()
      : table_(hn::LoadU(F32(), numerics::kFp4E2m1Values.data())),
        shifts_(hn::ShiftLeft<2>(hn::And(hn::Iota(U32(), 0), hn::Set(U32(), 7)))),
        first_word_(hn::FirstN(U32(), 8)) {}

  HWY_INLINE VecF of(const std::byte* codes) const {
    const U32 u;
    VecU words = hn::Set(u, load_word(codes));
    if constexpr (kStep == 16) {
      words = hn::IfThenElse(first_word_, words, hn::Set(u, load_word(codes + 4)));
    }
    const VecU nibbles = hn::Shr(words, shifts_);
    const VecU index = hn::And(nibbles, hn::Set(u, kStep - 1));
    const VecF value = hn::TableLookupLanes(table_, hn::IndicesFromVec(F32(), index));
    if constexpr (kStep == 16) return value;
    const VecU sign = hn::And(hn::ShiftLeft<28>(nibbles), hn::Set(u, 0x80000000u));
    return hn::Or(value, hn::BitCast(F32(), sign));
  }

 private:
  VecF table_;
  VecU shifts_;
  hn::Mask<U32> first_word_;
};

// Where a dim of slot 0 lies.
HWY_INLINE float* place_of(float* values, std::size_t dim) {
  return values + dim / kBlockDims * kBlockFloats + dim % kBlockDims;
}

void decode_fp4(const std::byte* row, std::size_t width, float* out) {
  const F32 d;
  const Fp4Values values;
  constexpr std::size_t kGroup = numerics::kFp4MainGroupSize;
  const std::byte* scales = row + width / 2;
  for (std::size_t dim = 0; dim < width; dim += kGroup) {
    const auto code = std::to_integer<std::uint8_t>(scales[dim / kGroup]);
    const VecF scale = hn::Set(d, numerics::kFp8E4m3Values[code]);
    float* to = place_of(out, dim);
    for (std::size_t i = 0; i < kGroup; i += kStep) {
      hn::Store(hn::Mul(values.of(row + (dim + i) / 2), scale), d, to + i);
    }
  }
}

// As many E4M3 codes as a vector has lanes.
HWY_INLINE VecF fp8_values(const std::byte* codes) {
  const hn::RebindToSigned<F32> indices;
  const hn::Rebind<std::uint8_t, F32> bytes;
  const auto loaded = hn::LoadU(bytes, reinterpret_cast<const std::uint8_t*>(codes));
  return hn::GatherIndex(F32(), numerics::kFp8E4m3Values.data(), hn::PromoteTo(indices, loaded));
}

void decode_fp8(const std::byte* row, std::size_t width, float* out) {
  const F32 d;
  constexpr std::size_t kGroup = numerics::kFp8GroupSize;
  const std::byte* scales = row + width;
  for (std::size_t dim = 0; dim < width; dim += kGroup) {
    const auto code = std::to_integer<std::uint8_t>(scales[dim / kGroup]);
    const VecF scale = hn::Set(d, numerics::to_float(numerics::E8m0{code}));
    float* to = place_of(out, dim);
    for (std::size_t i = 0; i < kGroup; i += kStep) {
      hn::Store(hn::Mul(fp8_values(row + dim + i), scale), d, to + i);
    }
  }
}

// Dims [first, last) of a row, both whole vectors.
void decode_bf16(const std::byte* values, std::size_t first, std::size_t last, float* out) {
  const hn::Rebind<std::uint16_t, F32> halves;
  const U32 u;
  for (std::size_t dim = first; dim < last; dim += kStep, values += 2 * kStep) {
    const auto bits = hn::LoadU(halves, reinterpret_cast<const std::uint16_t*>(values));
    hn::Store(hn::BitCast(F32(), hn::ShiftLeft<16>(hn::PromoteTo(u, bits))), F32(),
              place_of(out, dim));
  }
}

void decode_mla_fp8(const std::byte* row, std::size_t width, float* out) {
  const F32 d;
  const std::size_t coded = width - kMlaFp8Tail;
  const std::byte* scales = row + coded;
  for (std::size_t dim = 0; dim < coded; dim += kStep) {
    float scale;
    std::memcpy(&scale, scales + dim / kMlaFp8Group * sizeof(float), sizeof(float));
    hn::Store(hn::Mul(fp8_values(row + dim), hn::Set(d, scale)), d, place_of(out, dim));
  }
  const std::size_t groups = (coded + kMlaFp8Group - 1) / kMlaFp8Group;
  decode_bf16(scales + groups * sizeof(float), coded, width, out);
}

// REQUIRES: width is a multiple of 32.
void decode_v4_fp8(const std::byte* row, std::size_t width, float* out) {
  const F32 d;
  const std::size_t coded = (width - 1) / kV4Fp8Group * kV4Fp8Group;
  for (std::size_t dim = 0; dim < coded; dim += kBlockDims) {
    const auto code = std::to_integer<std::uint8_t>(row[coded + dim / kV4Fp8Group]);
    const VecF scale = hn::Set(d, numerics::to_float(numerics::E8m0{code}));
    float* to = place_of(out, dim);
    for (std::size_t i = 0; i < kBlockDims; i += kStep) {
      hn::Store(hn::Mul(fp8_values(row + dim + i), scale), d, to + i);
    }
  }
  const std::size_t tail_bytes = 2 * (width - coded);
  decode_bf16(row + row_bytes(RowFormat::kV4Fp8, width) - tail_bytes, coded, width, out);
}

// Any other format or width, and none: dim by dim.
void decode_plain(const AttentionRow& row, std::size_t width, float* out) {
  std::vector<float> values(width, 0.0f);
  if (!row.empty()) {
    decode_row(row.format, {row.bytes, row_bytes(row.format, width)}, values);
  }
  for (std::size_t dim = 0; dim < width; dim += kBlockDims) {
    std::copy_n(values.data() + dim, std::min(kBlockDims, width - dim), place_of(out, dim));
  }
}

void decode_one(const AttentionRow& row, std::size_t width, float* out) {
  if (!row.empty() && row.format == RowFormat::kFp4Main) {
    decode_fp4(row.bytes, width, out);
  } else if (!row.empty() && row.format == RowFormat::kFp8) {
    decode_fp8(row.bytes, width, out);
  } else if (!row.empty() && row.format == RowFormat::kBf16 && width % kBlockDims == 0) {
    decode_bf16(row.bytes, 0, width, out);
  } else if (!row.empty() && row.format == RowFormat::kMlaFp8 && width % kBlockDims == 0 &&
             width >= kMlaFp8Tail) {
    decode_mla_fp8(row.bytes, width, out);
  } else if (!row.empty() && row.format == RowFormat::kV4Fp8 && width % kBlockDims == 0) {
    decode_v4_fp8(row.bytes, width, out);
  } else {
    decode_plain(row, width, out);
  }
  const std::size_t used = width % kBlockDims;
  if (used != 0) std::fill_n(place_of(out, width), kBlockDims - used, -0.0f);
}

void decode_rows(std::span<const AttentionRow> rows, std::size_t width, float* values) {
  std::size_t slot = 0;
  for (; slot < rows.size(); ++slot) decode_one(rows[slot], width, values + slot * kBlockDims);
  for (; slot % kSlotBlock != 0; ++slot) decode_one({}, width, values + slot * kBlockDims);
}

constexpr RowDecoding kRowDecoding = {.decode = decode_rows};

#endif

}  // namespace HWY_NAMESPACE
}  // namespace locket::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace locket::kernels::cpu {

const RowDecoding& row_decoding(InstructionSet set) {
  return set == InstructionSet::kAvx2 ? N_AVX2::kRowDecoding : N_AVX3::kRowDecoding;
}

}  // namespace locket::kernels::cpu

#endif
