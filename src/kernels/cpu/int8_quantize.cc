#include "kernels/cpu/int8_quantize.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/int8_quantize.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace locket::kernels::cpu {
namespace HWY_NAMESPACE {

#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3

namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::ScalableTag<float>;
using I32 = hn::ScalableTag<std::int32_t>;
using I8 = hn::Rebind<std::int8_t, F32>;

constexpr std::size_t kStep = hn::MaxLanes(F32());

// Bits of the largest magnitude; those of infinities and NaN are larger than all others.
std::int32_t largest_bits(const float* group) {
  const I32 d;
  auto largest = hn::Zero(d);
  for (std::size_t i = 0; i < kInt8GroupColumns; i += kStep) {
    const auto bits = hn::BitCast(d, hn::LoadU(F32(), group + i));
    largest = hn::Max(largest, hn::And(bits, hn::Set(d, 0x7FFFFFFF)));
  }
  return hn::GetLane(hn::MaxOfLanes(d, largest));
}

// The order of int8_place.
HWY_INLINE hn::Vec<I8> even_then_odd(hn::Vec<I8> codes) {
  alignas(16) static constexpr std::array<std::int8_t, 16> kOrder = {0, 2,  4,  6,  1, 3,  5,  7,
                                                                     8, 10, 12, 14, 9, 11, 13, 15};
  return hn::TableLookupBytes(codes, hn::Load(I8(), kOrder.data()));
}

// Codes of a block; returns their sum.
std::int32_t quantize_block(const float* x, float scale, std::int8_t* codes) {
  const F32 d;
  auto sums = hn::Zero(I32());
  for (std::size_t i = 0; i < kInt8BlockColumns; i += kStep) {
    const auto integers = hn::NearestInt(hn::Div(hn::LoadU(d, x + i), hn::Set(d, scale)));
    sums = hn::Add(sums, integers);
    hn::StoreU(even_then_odd(hn::DemoteTo(I8(), integers)), I8(), codes + i);
  }
  return hn::GetLane(hn::SumOfLanes(I32(), sums));
}

void quantize_group(const float* x, std::size_t group, const Int8Row& row) {
  const std::int32_t bits = largest_bits(x);
  std::int8_t* codes = row.group_codes(group);
  std::int32_t* offsets = row.group_offsets(group);
  const bool finite = bits < std::bit_cast<std::int32_t>(HUGE_VALF);
  const float scale = std::bit_cast<float>(bits) / 127.0f;
  if (!finite || scale < 0x1p-126f) {
    row.group_scale(group) = finite ? 0.0f : std::numeric_limits<float>::quiet_NaN();
    std::fill_n(codes, kInt8GroupColumns, std::int8_t{0});
    std::fill_n(offsets, kInt8GroupBlocks, 0);
    return;
  }
  row.group_scale(group) = scale;
  for (std::size_t block = 0; block < kInt8GroupBlocks; ++block) {
    const std::size_t at = block * kInt8BlockColumns;
    offsets[block] = -kInt8WeightOffset * quantize_block(x + at, scale, codes + at);
  }
}

void quantize_row(std::span<const float> x, const Int8Row& row) {
  std::size_t group = 0;
  for (; (group + 1) * kInt8GroupColumns <= x.size(); ++group) {
    quantize_group(x.data() + group * kInt8GroupColumns, group, row);
  }
  const std::size_t done = group * kInt8GroupColumns;
  if (done == x.size()) return;
  std::array<float, kInt8GroupColumns> tail = {};
  std::copy(x.begin() + static_cast<std::ptrdiff_t>(done), x.end(), tail.begin());
  quantize_group(tail.data(), group, row);
}

#endif

}  // namespace HWY_NAMESPACE
}  // namespace locket::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace locket::kernels::cpu {

QuantizeInt8 int8_quantizer(InstructionSet set) {
  return set == InstructionSet::kAvx2 ? N_AVX2::quantize_row : N_AVX3::quantize_row;
}

}  // namespace locket::kernels::cpu

#endif
