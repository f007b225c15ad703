// FP4 weights times few bfloat16 rows by integers, with the bits of sum_order.h.
//
// A group of 32 activations is integers in the unit 2^(E - 14), 2^E being the exponent of the
// largest, or else in 2^(E - 17); doubled FP4 values are integers up to 12. Where the absolute
// values of a group sum to less than 2^24 / 12, every partial sum is an integer below 2^24 in half
// that unit: exact in float32, in any order, and so it may be computed with vpdpbusd, eight bits of
// the activations at a time: two such digits, or three in the finer unit. E4M3 values with one
// scale are whole in the finer unit; the few groups that sum to more take vdpbf16ps. Needs AVX-512
// with VNNI, VBMI and BF16.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/panel.h"

namespace locket::kernels::cpu {

// More tokens are faster with other kernels.
inline constexpr std::size_t kMostDigitTokens = 4;
inline constexpr std::size_t kMostDigitRowGroups = 4;

// One group of 32 activations as integers.
struct alignas(64) DigitGroup {
  // Per 8 columns: lower bytes of the even ones, of the odd ones, second bytes of both.
  std::int8_t bytes[4][4][4];
  std::int8_t third[4][2][4];  // third bytes, if there are three
};

// How a group may be multiplied; what several tokens need is the largest.
enum class DigitKind : std::uint8_t { kTwo, kThree, kNone, kCount };

struct DigitScale {
  float unit;           // half of it, which is what a product is counted in
  std::int32_t offset;  // what makes up for weights that are 12 too large
};

// kNone: nothing useful in `digits` and `scale`.
DigitKind digits_of(const float* x, DigitGroup& digits, DigitScale& scale);

// Row groups that are multiplied at once with so many tokens: memory is read faster in several
// streams.
constexpr std::size_t digit_row_groups(std::size_t tokens) {
  return tokens == 1 ? kMostDigitRowGroups : 2;
}

// Row groups of weights times 1..kMostDigitTokens rows.
struct DigitProduct {
  const std::byte* tiles = nullptr;   // [row groups][groups] tiles as stored
  const std::byte* scales = nullptr;  // [row groups][groups] scales as stored
  std::size_t row_groups = 0;         // 1 .. digit_row_groups(tokens)
  std::size_t groups = 0;
  ScaleRange after_sum;
  std::size_t tokens = 0;
  const std::byte* x = nullptr;  // bfloat16 pairs, [tokens][groups * 64]
  std::size_t x_row_bytes = 0;
  const DigitGroup* digits = nullptr;        // [tokens][groups]
  const DigitScale* digit_scales = nullptr;  // [tokens][groups]
  const DigitKind* kinds = nullptr;          // [groups], the largest of all tokens
  float* totals = nullptr;                   // [row groups][tokens][16], written
};

// False, and nothing useful in the totals, if a scale may not be applied to sums.
// REQUIRES: a FlushScope.
bool multiply_digits(const DigitProduct& product);

}  // namespace locket::kernels::cpu
