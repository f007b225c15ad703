// Vector forms of rounding.h and elementary.h, step by step the same operations, so the same bits.
// Included once per target by .cc files that have included Highway.

#if defined(LOCKET_KERNELS_CPU_FLOAT_MATH_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef LOCKET_KERNELS_CPU_FLOAT_MATH_INL_H
#undef LOCKET_KERNELS_CPU_FLOAT_MATH_INL_H
#else
#define LOCKET_KERNELS_CPU_FLOAT_MATH_INL_H
#endif

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "kernels/rounding.h"

HWY_BEFORE_NAMESPACE();
namespace locket::kernels::cpu {
namespace HWY_NAMESPACE {

#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3

namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::ScalableTag<float>;
using VecF = hn::Vec<F32>;

HWY_INLINE VecF round_bf16(VecF value) {
  const hn::ScalableTag<std::uint32_t> u;
  const auto bits = hn::BitCast(u, value);
  const auto upper = hn::Set(u, 0xFFFF0000u);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(u, 1u));
  const auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(u, 0x7FFFu)));
  const auto quiet = hn::Or(bits, hn::Set(u, 0x00400000u));
  const VecF result =
      hn::IfThenElse(hn::IsNaN(value), hn::BitCast(F32(), quiet), hn::BitCast(F32(), rounded));
  return hn::And(result, hn::BitCast(F32(), upper));
}

HWY_INLINE VecF round_vector(VecF value, Rounding rounding) {
  return rounding == Rounding::kBf16 ? round_bf16(value) : value;
}

template <class D, class V>
HWY_INLINE V exp_double(D d, V x) {
  const hn::RebindToUnsigned<D> u;
  const V round = hn::Set(d, 0x1.8p52);
  const V shifted = hn::Add(hn::Mul(x, hn::Set(d, 1.44269504088896340736)), round);
  const V k = hn::Sub(shifted, round);
  const V r = hn::Sub(hn::Sub(x, hn::Mul(k, hn::Set(d, 0x1.62e42fee00000p-1))),
                      hn::Mul(k, hn::Set(d, 0x1.a39ef35793c76p-33)));
  constexpr double kCoefficients[] = {1.0 / 479001600.0,
                                      1.0 / 39916800.0,
                                      1.0 / 3628800.0,
                                      1.0 / 362880.0,
                                      1.0 / 40320.0,
                                      1.0 / 5040.0,
                                      1.0 / 720.0,
                                      1.0 / 120.0,
                                      1.0 / 24.0,
                                      1.0 / 6.0,
                                      0.5,
                                      1.0,
                                      1.0};
  V p = hn::Set(d, 1.0 / 6227020800.0);
  HWY_UNROLL(13)
  for (const double c : kCoefficients) p = hn::Add(hn::Mul(p, r), hn::Set(d, c));
  // The integer k stands in the low bits of `shifted`.
  const auto exponent = hn::Add(hn::BitCast(u, shifted), hn::Set(u, std::uint64_t{1023}));
  return hn::Mul(p, hn::BitCast(d, hn::ShiftLeft<52>(exponent)));
}

HWY_INLINE VecF exp_exactly(VecF x) {
  const F32 d;
  const hn::ScalableTag<double> wide;
  const hn::Rebind<float, decltype(wide)> half;
  const auto low =
      hn::DemoteTo(half, exp_double(wide, hn::PromoteTo(wide, hn::LowerHalf(half, x))));
  const auto high =
      hn::DemoteTo(half, exp_double(wide, hn::PromoteTo(wide, hn::UpperHalf(half, x))));
  VecF result = hn::Combine(d, high, low);
  result = hn::IfThenElseZero(hn::Gt(x, hn::Set(d, -104.0f)), result);
  result = hn::IfThenElse(hn::Gt(x, hn::Set(d, 89.0f)), hn::Set(d, HUGE_VALF), result);
  return hn::IfThenElse(hn::IsNaN(x), x, result);
}

// exp_double to 2^-39 of its value, for |x| < 87: the polynomial of degree 8 whose largest relative
// error on |r| <= ln2 / 2 is least (7.8e-13), in fused steps.
template <class D, class V>
HWY_INLINE V exp_nearly(D d, V x) {
  const hn::RebindToUnsigned<D> u;
  const V round = hn::Set(d, 0x1.8p52);
  const V shifted = hn::MulAdd(x, hn::Set(d, 1.44269504088896340736), round);
  const V k = hn::Sub(shifted, round);
  const V r = hn::NegMulAdd(k, hn::Set(d, 0x1.62e42fefa39efp-1), x);
  constexpr double kCoefficients[] = {
      0x1.a1a81d788aee4p-13, 0x1.6c18b33ba34a9p-10, 0x1.111082ae2bfccp-7, 0x1.555554050e90cp-5,
      0x1.555555a08284ap-3,  0x1.0000000087f57p-1,  0x1.ffffffffd562fp-1, 0x1.ffffffffff7a3p-1};
  V p = hn::Set(d, 0x1.9eda953fc3b97p-16);
  HWY_UNROLL(8)
  for (const double c : kCoefficients) p = hn::MulAdd(p, r, hn::Set(d, c));
  // The integer k stands in the low bits of `shifted`.
  return hn::BitCast(d, hn::Add(hn::BitCast(u, p), hn::ShiftLeft<52>(hn::BitCast(u, shifted))));
}

// Whether a value is so near the middle between two float32 values that a relative error of 2^-38
// could take it to the other side. For results that are normal float32 numbers.
template <class D, class V>
HWY_INLINE hn::Mask<hn::RebindToSigned<D>> near_middle(D, V value) {
  const hn::RebindToSigned<D> i;
  constexpr std::int64_t kMiddle = std::int64_t{1} << 28;  // of the 29 bits that rounding drops
  constexpr std::int64_t kError = std::int64_t{1} << 15;
  const auto above = hn::Sub(hn::BitCast(i, value), hn::Set(i, kMiddle - kError));
  return hn::Lt(hn::And(above, hn::Set(i, 2 * kMiddle - 1)), hn::Set(i, 2 * kError));
}

// The bits of exp_value in elementary.h. Where a cheaper approximation leaves no doubt which way
// the exact steps round, it gives the same float32.
HWY_INLINE VecF exp_value(VecF x) {
  const F32 d;
  const hn::ScalableTag<double> wide;
  const hn::Rebind<float, decltype(wide)> half;
  const auto low = exp_nearly(wide, hn::PromoteTo(wide, hn::LowerHalf(half, x)));
  const auto high = exp_nearly(wide, hn::PromoteTo(wide, hn::UpperHalf(half, x)));
  const bool inside = hn::AllTrue(d, hn::Lt(hn::Abs(x), hn::Set(d, 87.0f)));
  const bool doubtful = !hn::AllFalse(hn::RebindToSigned<decltype(wide)>(),
                                      hn::Or(near_middle(wide, low), near_middle(wide, high)));
  if (HWY_UNLIKELY(!inside || doubtful)) return exp_exactly(x);
  return hn::Combine(d, hn::DemoteTo(half, high), hn::DemoteTo(half, low));
}

// The tree of ordered_sum over its 16 lanes.
inline float add_lanes(float* lanes) {
  for (std::size_t half = 8; half > 0; half /= 2) {
    for (std::size_t lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  }
  return lanes[0];
}

#endif

}  // namespace HWY_NAMESPACE
}  // namespace locket::kernels::cpu
HWY_AFTER_NAMESPACE();

#endif
