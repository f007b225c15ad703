// FP8 weights by fused multiply-adds of float32: weights are decoded in registers (fp8_tile.h),
// with few tokens several row groups side by side, so that they share the activations, their chains
// of dependent steps overlap, and memory is read in several streams. The sums are those of
// sum_order.h. Needs AVX-512 with VBMI.
#pragma once

#include <cstddef>

#include "kernels/cpu/panel.h"

namespace locket::kernels::cpu {

// Tokens of one product; more take several, while the weights are in the second cache level.
inline constexpr std::size_t kMostFp8Tokens = 16;
inline constexpr std::size_t kMostFp8RowGroups = 4;

// Row groups of weights times 1..kMostFp8Tokens rows.
struct Fp8Product {
  WeightFormat format = WeightFormat::kFp8;
  const std::byte* tiles = nullptr;   // [row groups][groups] tiles as stored
  const std::byte* scales = nullptr;  // [row groups][groups] scales as stored
  std::size_t row_groups = 0;         // 1 .. fp8_row_groups(tokens)
  std::size_t groups = 0;
  ScaleRange after_sum;
  const float* x = nullptr;  // [groups][tokens][32], the tail filled with -0
  std::size_t tokens = 0;
  float* totals = nullptr;  // [row groups][tokens][16], written; 64-byte aligned
};

// Row groups that are multiplied at once.
constexpr std::size_t fp8_row_groups(std::size_t tokens) {
  if (tokens <= 2) return kMostFp8RowGroups;
  if (tokens <= 5) return 3;
  return tokens <= 8 ? 2 : 1;
}

// False, and nothing useful in the totals, if a scale may not be applied to sums.
// REQUIRES: a FlushScope; prefetching may ask for memory behind the tiles.
bool multiply_fp8(const Fp8Product& product);

}  // namespace locket::kernels::cpu
