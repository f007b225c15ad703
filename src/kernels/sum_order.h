// The order of every sum, written once as plain scalar code. docs/numerics.md states it in words;
// all faster kernels give these bits.
//
// A dot product over K runs in groups of 32 consecutive k, in order; every group starts from zero
// and is added to the total when it is complete. Inside a group, 8 consecutive k at a time are
// taken in the order 4 0 5 1 6 2 7 3: that is what vdpbf16ps does with the pairs (k, k + 4), the
// second of a pair first, and what 4-bit codes give without shuffles. Every step is one fused
// multiply-add; denormal inputs count as zero and denormal results become zero, as vdpbf16ps and
// FMA with the FTZ and DAZ bits have it: a result is denormal if it is below 2^-126 after rounding
// to 24 bits.
//
// A plain sum (norms) runs in 16 lanes, element i in lane i mod 16, and the lanes are added as a
// tree of halves.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <utility>

namespace locket::kernels {

inline constexpr std::size_t kSumGroup = 32;
inline constexpr std::size_t kLanes = 16;
inline constexpr std::array<std::size_t, 8> kOrderOfEight = {4, 0, 5, 1, 6, 2, 7, 3};

// A denormal becomes zero of its sign.
inline float flush_denormal(float value) {
  return std::fabs(value) < 0x1p-126f ? std::copysign(0.0f, value) : value;
}

// One step of a dot product. A result of exactly 2^-126 may have been rounded up from the
// denormals, whose steps are coarser there than 24 bits: computed again, scaled up, it shows.
inline float dot_step(float a, float b, float sum) {
  float small = flush_denormal(a);
  float large = flush_denormal(b);
  const float start = flush_denormal(sum);
  const float result = std::fma(small, large, start);
  if (std::fabs(result) != 0x1p-126f) return flush_denormal(result);
  if (std::fabs(small) > std::fabs(large)) std::swap(small, large);
  const float scaled = std::fma(small * 0x1p64f, large, start * 0x1p64f);
  return std::fabs(scaled) < 0x1p-62f ? std::copysign(0.0f, result) : result;
}

// Position of step `step` (0..31) inside a group of 32.
constexpr std::size_t step_position(std::size_t step) {
  return step / 8 * 8 + kOrderOfEight[step % 8];
}

// The sum of the group that begins at `group`, from zero.
template <class A, class B>
float group_sum(std::size_t group, std::size_t count, const A& a, const B& b) {
  float sum = 0.0f;
  for (std::size_t step = 0; step < kSumGroup; ++step) {
    const std::size_t k = group + step_position(step);
    if (k < count) sum = dot_step(a(k), b(k), sum);
  }
  return sum;
}

// sum over k < count of a(k) * b(k), in the stated order. `a` and `b` are callables.
template <class A, class B>
float ordered_dot(std::size_t count, const A& a, const B& b) {
  float total = 0.0f;
  for (std::size_t group = 0; group < count; group += kSumGroup) {
    total = flush_denormal(total + group_sum(group, count, a, b));
  }
  return total;
}

// The same where a group's products are scaled as one: total = fma(sum of the group, scale, total).
// `scale` takes the first k of a group.
template <class A, class B, class S>
float scaled_dot(std::size_t count, const A& a, const B& b, const S& scale) {
  float total = 0.0f;
  for (std::size_t group = 0; group < count; group += kSumGroup) {
    total = dot_step(group_sum(group, count, a, b), scale(group), total);
  }
  return total;
}

// sum over i < count of value(i), in 16 lanes and a tree.
template <class V>
float ordered_sum(std::size_t count, const V& value) {
  std::array<float, kLanes> lanes = {};
  for (std::size_t i = 0; i < count; ++i) lanes[i % kLanes] += value(i);
  for (std::size_t half = kLanes / 2; half > 0; half /= 2) {
    for (std::size_t lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  }
  return lanes[0];
}

}  // namespace locket::kernels
