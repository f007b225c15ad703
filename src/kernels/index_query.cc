#include <algorithm>
#include <cmath>
#include <utility>

#include "kernels/index_scan.h"

namespace locket::kernels {
namespace {

// The one geometry that integers are written for, and the only one that is released.
constexpr std::size_t kIntegerDim = 128;

// Bits of a number of one plane and of two.
constexpr int kOnePlaneBits = 7;
constexpr int kTwoPlaneBits = 10;

// cpu/index_scan.h says what these are for.
constexpr float kLeastValue = 0x1p-50f;
constexpr float kLargestValue = 0x1p40f;
constexpr float kLeastFactor = 0x1p-40f;
constexpr float kLargestFactor = 0x1p50f;

// Infinity if a value is NaN.
float largest_magnitude(std::span<const float> values) {
  float largest = 0.0f;
  for (const float value : values) {
    if (std::isnan(value)) return HUGE_VALF;
    largest = std::max(largest, std::fabs(value));
  }
  return largest;
}

// 2^unit such that a head whose largest magnitude is `largest` has numbers of `bits` bits.
float unit_of(float largest, int bits) { return std::ldexp(1.0f, std::ilogb(largest) + 1 - bits); }

bool are_multiples(std::span<const float> values, float unit) {
  const float inverse = 1.0f / unit;
  bool whole = true;
  for (const float value : values) {
    const float number = value * inverse;
    whole &= static_cast<float>(static_cast<std::int32_t>(number)) == number;
  }
  return whole;
}

// Planes that a head needs; 0: integers cannot hold it.
std::size_t planes_of(std::span<const float> values, float weight) {
  const float largest = largest_magnitude(values);
  if (largest == 0.0f) return std::isfinite(weight) ? 1 : 0;
  if (!(largest >= kLeastValue && largest <= kLargestValue)) return 0;
  for (const int bits : {kOnePlaneBits, kTwoPlaneBits}) {
    const float unit = unit_of(largest, bits);
    if (!are_multiples(values, unit)) continue;
    const float factor = std::fabs(weight) * unit;
    const bool fits = std::isnormal(weight) && factor >= kLeastFactor && factor <= kLargestFactor;
    if (!fits && weight != 0.0f) return 0;
    return bits == kOnePlaneBits ? 1 : 2;
  }
  return 0;
}

// Where dim k of a head is stored.
std::size_t code_position(std::size_t k) { return k / 8 * 8 + (k % 2) * 4 + k % 8 / 2; }

void write_head(const IndexQuery& query, std::size_t head, IntegerQuery& integers) {
  const auto values = query.values.subspan(head * query.dim, query.dim);
  const float largest = largest_magnitude(values);
  if (largest == 0.0f) return;
  const bool one = integers.planes == 1;
  const float unit = unit_of(largest, one ? kOnePlaneBits : kTwoPlaneBits);
  const float inverse = 1.0f / unit;
  integers.factors[head] = query.weights[head] * unit;
  auto* codes = reinterpret_cast<std::int8_t*>(integers.codes.data()) + head * query.dim;
  const std::size_t plane_codes = integers.padded_heads * query.dim;
  for (std::size_t k = 0; k < query.dim; ++k) {
    const auto number = static_cast<std::int32_t>(values[k] * inverse);
    const std::int32_t first = one ? number : number / 8;
    codes[code_position(k)] = static_cast<std::int8_t>(first);
    integers.sums[head] += first;
    if (one) continue;
    codes[plane_codes + code_position(k)] = static_cast<std::int8_t>(number - 8 * first);
    integers.sums[integers.padded_heads + head] += number - 8 * first;
  }
}

}  // namespace

IndexQuery prepare_index_query(IndexQuery query) {
  if (query.dim != kIntegerDim || query.rounding != IndexScoreRounding::kF32) return query;
  IntegerQuery integers;
  for (std::size_t head = 0; head < query.heads; ++head) {
    const std::size_t planes =
        planes_of(query.values.subspan(head * query.dim, query.dim), query.weights[head]);
    if (planes == 0) return query;
    integers.planes = std::max(integers.planes, planes);
  }
  constexpr std::size_t kStep = IntegerQuery::kHeadsAtOnce;
  integers.padded_heads = (query.heads + kStep - 1) / kStep * kStep;
  const std::size_t heads = integers.planes * integers.padded_heads;
  integers.codes = tensor::AlignedBuffer(heads * query.dim);
  integers.sums.assign(heads, 0);
  integers.factors.assign(integers.padded_heads, 0.0f);
  for (std::size_t head = 0; head < query.heads; ++head) write_head(query, head, integers);
  query.integers = std::move(integers);
  return query;
}

}  // namespace locket::kernels
