#include "kernels/cpu/value_scan.h"

#include <algorithm>
#include <cstdint>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/value_scan.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace locket::kernels::cpu {
namespace HWY_NAMESPACE {

#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3

namespace hn = hwy::HWY_NAMESPACE;

using U32 = hn::ScalableTag<std::uint32_t>;
constexpr std::size_t kStep = hn::MaxLanes(U32());

ExponentSpan exponent_span(std::span<const float> values) {
  const U32 u;
  const auto magnitude = hn::Set(u, 0x7FFFFFFFu);
  const auto smallest_normal = hn::Set(u, 0x00800000u);
  auto lowest = hn::Set(u, 0xFF800000u);
  auto highest = hn::Zero(u);
  const auto add = [&](hn::Vec<U32> bits) HWY_ATTR {
    const auto value = hn::And(bits, magnitude);
    // Denormals and zeros wrap around to values above all others.
    lowest = hn::Min(lowest, hn::Sub(value, smallest_normal));
    highest = hn::Max(highest, value);
  };
  const auto* bits = reinterpret_cast<const std::uint32_t*>(values.data());
  std::size_t i = 0;
  for (; i + kStep <= values.size(); i += kStep) add(hn::LoadU(u, bits + i));
  std::uint32_t tail[kStep] = {};
  std::copy(bits + i, bits + values.size(), tail);
  add(hn::LoadU(u, tail));
  const std::uint32_t low = hn::GetLane(hn::MinOfLanes(u, lowest));
  const std::uint32_t high = hn::GetLane(hn::MaxOfLanes(u, highest));
  return {.lowest = (low >> 31) != 0 ? 255u : (low >> 23) + 1, .highest = high >> 23};
}

bool holds_bf16(std::span<const float> values) {
  const U32 u;
  const auto* bits = reinterpret_cast<const std::uint32_t*>(values.data());
  auto seen = hn::Zero(u);
  std::size_t i = 0;
  for (; i + kStep <= values.size(); i += kStep) seen = hn::Or(seen, hn::LoadU(u, bits + i));
  std::uint32_t rest = 0;
  for (; i < values.size(); ++i) rest |= bits[i];
  seen = hn::And(hn::Or(seen, hn::Set(u, rest)), hn::Set(u, 0xFFFFu));
  return hn::AllTrue(u, hn::Eq(seen, hn::Zero(u)));
}

constexpr ValueScan kValueScan = {.exponent_span = exponent_span, .holds_bf16 = holds_bf16};

#endif

}  // namespace HWY_NAMESPACE
}  // namespace locket::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace locket::kernels::cpu {

const ValueScan& value_scan(InstructionSet set) {
  return set == InstructionSet::kAvx2 ? N_AVX2::kValueScan : N_AVX3::kValueScan;
}

}  // namespace locket::kernels::cpu

#endif
