#include "kernels/cpu/elementwise.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "kernels/elementary.h"
#include "kernels/sum_order.h"
#include "numerics/e8m0.h"
#include "numerics/group_scaled.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/elementwise.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
//
#include "kernels/cpu/float_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace locket::kernels::cpu {
namespace HWY_NAMESPACE {

#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3

constexpr std::size_t kStep = hn::MaxLanes(F32());

float sum_of_squares(std::span<const float> x) {
  const F32 d;
  alignas(64) float lanes[kLanes] = {};
  std::size_t i = 0;
  for (; i + kLanes <= x.size(); i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; lane += kStep) {
      const VecF value = hn::LoadU(d, x.data() + i + lane);
      hn::Store(hn::Add(hn::Load(d, lanes + lane), hn::Mul(value, value)), d, lanes + lane);
    }
  }
  for (std::size_t lane = 0; i + lane < x.size(); ++lane) lanes[lane] += x[i + lane] * x[i + lane];
  return add_lanes(lanes);
}

void rms_norm(std::span<const float> x, std::span<const float> weight, float eps, Rounding rounding,
              std::span<float> out) {
  const F32 d;
  const float mean = sum_of_squares(x) / static_cast<float>(x.size());
  const float rstd = 1.0f / std::sqrt(mean + eps);
  std::size_t i = 0;
  for (; i + kStep <= x.size(); i += kStep) {
    const VecF scaled = hn::Mul(hn::LoadU(d, x.data() + i), hn::Set(d, rstd));
    const VecF result = hn::Mul(scaled, hn::LoadU(d, weight.data() + i));
    hn::StoreU(round_vector(result, rounding), d, out.data() + i);
  }
  for (; i < x.size(); ++i) out[i] = round_value(x[i] * rstd * weight[i], rounding);
}

HWY_INLINE VecF gated(VecF gate, VecF up, float limit, float weight) {
  const F32 d;
  const VecF top = hn::Set(d, limit);
  // The second operand of Min and Max wins if it is NaN, as in std::min and std::clamp.
  const VecF g = hn::Min(top, gate);
  const VecF u = hn::Min(top, hn::Max(hn::Set(d, -limit), up));
  const VecF silu = hn::Div(g, hn::Add(hn::Set(d, 1.0f), exp_value(hn::Neg(g))));
  return hn::Mul(hn::Mul(silu, u), hn::Set(d, weight));
}

void swiglu(std::span<const float> gate, std::span<const float> up, const GateShape& shape,
            std::span<float> out) {
  const F32 d;
  std::size_t i = 0;
  for (; i + kStep <= gate.size(); i += kStep) {
    const VecF value = gated(hn::LoadU(d, gate.data() + i), hn::LoadU(d, up.data() + i),
                             shape.limit, shape.weight);
    hn::StoreU(round_vector(value, shape.rounding), d, out.data() + i);
  }
  if (i == gate.size()) return;
  float block[2][kStep] = {};
  std::copy(gate.begin() + static_cast<std::ptrdiff_t>(i), gate.end(), block[0]);
  std::copy(up.begin() + static_cast<std::ptrdiff_t>(i),
            up.begin() + static_cast<std::ptrdiff_t>(gate.size()), block[1]);
  const VecF value =
      gated(hn::LoadU(d, block[0]), hn::LoadU(d, block[1]), shape.limit, shape.weight);
  hn::StoreU(round_vector(value, shape.rounding), d, block[0]);
  std::copy_n(block[0], gate.size() - i, out.data() + i);
}

void rotate_pairs(std::span<float> pairs, std::span<const float> cos, std::span<const float> sin,
                  RotaryDirection direction, Rounding rounding) {
  const F32 d;
  const float sign = direction == RotaryDirection::kForward ? 1.0f : -1.0f;
  std::size_t i = 0;
  for (; i + kStep <= cos.size(); i += kStep) {
    VecF real, imaginary;
    hn::LoadInterleaved2(d, pairs.data() + 2 * i, real, imaginary);
    const VecF c = hn::LoadU(d, cos.data() + i);
    const VecF s = hn::Mul(hn::Set(d, sign), hn::LoadU(d, sin.data() + i));
    const VecF first = hn::Sub(hn::Mul(real, c), hn::Mul(imaginary, s));
    const VecF second = hn::Add(hn::Mul(real, s), hn::Mul(imaginary, c));
    hn::StoreInterleaved2(round_vector(first, rounding), round_vector(second, rounding), d,
                          pairs.data() + 2 * i);
  }
  for (; i < cos.size(); ++i) {
    const float real = pairs[2 * i];
    const float imaginary = pairs[2 * i + 1];
    const float s = sign * sin[i];
    pairs[2 * i] = round_value(real * cos[i] - imaginary * s, rounding);
    pairs[2 * i + 1] = round_value(real * s + imaginary * cos[i], rounding);
  }
}

// The E4M3 value nearest to a value within +-448, ties to even.
HWY_INLINE VecF nearest_fp8(VecF value) {
  const F32 d;
  const hn::ScalableTag<std::uint32_t> u;
  const VecF magnitude = hn::Abs(value);
  const auto bits = hn::BitCast(u, magnitude);
  const auto odd = hn::And(hn::ShiftRight<20>(bits), hn::Set(u, 1u));
  const auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(u, 0x7FFFFu)));
  const VecF normal = hn::BitCast(d, hn::And(rounded, hn::Set(u, 0xFFF00000u)));
  const VecF integer = hn::Set(d, 0x1p23f);  // adding it rounds to whole steps of 2^-9
  const VecF steps = hn::Sub(hn::Add(hn::Mul(magnitude, hn::Set(d, 512.0f)), integer), integer);
  const VecF result = hn::IfThenElse(hn::Lt(magnitude, hn::Set(d, 0x1p-6f)),
                                     hn::Mul(steps, hn::Set(d, 0x1p-9f)), normal);
  return hn::Or(result, hn::And(value, hn::Set(d, -0.0f)));
}

void fake_quantize_group(float* group) {
  const F32 d;
  constexpr std::size_t kSize = numerics::kFp8GroupSize;
  VecF largest = hn::Set(d, 1e-4f);
  for (std::size_t i = 0; i < kSize; i += kStep) {
    largest = hn::Max(hn::Abs(hn::LoadU(d, group + i)), largest);
  }
  const float amax = hn::GetLane(hn::MaxOfLanes(d, largest));
  const numerics::E8m0 code = numerics::round_up_to_e8m0(amax * (1.0f / 448.0f));
  // Infinities and NaN have their own rules.
  const auto finite = hn::IsFinite(hn::Set(d, amax));
  bool whole = hn::AllTrue(d, finite);
  for (std::size_t i = 0; i < kSize; i += kStep) {
    whole = whole && hn::AllFalse(d, hn::IsNaN(hn::LoadU(d, group + i)));
  }
  if (!whole) return numerics::fake_quantize_fp8({group, kSize});
  const VecF scale = hn::Set(d, numerics::to_float(code));
  const VecF top = hn::Set(d, 448.0f);
  for (std::size_t i = 0; i < kSize; i += kStep) {
    const VecF value = hn::Div(hn::LoadU(d, group + i), scale);
    const VecF clamped = hn::Min(top, hn::Max(hn::Neg(top), value));
    hn::StoreU(hn::Mul(nearest_fp8(clamped), scale), d, group + i);
  }
}

void fake_quantize_fp8(std::span<float> values) {
  for (std::size_t at = 0; at < values.size(); at += numerics::kFp8GroupSize) {
    fake_quantize_group(values.data() + at);
  }
}

constexpr ElementwiseKernels kElementwise = {
    .rms_norm = rms_norm,
    .swiglu = swiglu,
    .rotate_pairs = rotate_pairs,
    .fake_quantize_fp8 = fake_quantize_fp8,
};

#endif

}  // namespace HWY_NAMESPACE
}  // namespace locket::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace locket::kernels::cpu {

const ElementwiseKernels& elementwise_kernels(InstructionSet set) {
  return set == InstructionSet::kAvx2 ? N_AVX2::kElementwise : N_AVX3::kElementwise;
}

}  // namespace locket::kernels::cpu

#endif
