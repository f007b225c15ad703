// The two products of sparse attention, in float32 with fused multiply-adds, every sum in the order
// of sum_order.h: query x row with heads in the lanes, probability x value with dims in the lanes,
// so that a tile of decoded rows serves both as it lies.
//
// All functions REQUIRE a FlushScope.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "kernels/cpu/attention_rows.h"
#include "kernels/cpu/instruction_sets.h"

namespace locket::kernels::cpu {

// Heads whose values are summed together.
inline constexpr std::size_t kValueHeads = 8;

// Heads of one pass, and floats from slot to slot of scores and weights.
inline constexpr std::size_t kMostHeads = 64;

// scores[slot][head] = sums over the dims of one block, added to those of the blocks before.
struct KeyProduct {
  const float* keys = nullptr;   // [64][kBlockDims], a block of decoded rows
  const float* query = nullptr;  // [32 dims][lane_groups * 16 heads]
  std::size_t lane_groups = 0;   // 1..4
  enum class Start { kZero, kScores } start = Start::kZero;
  std::span<const AttentionRow> rows;  // up to 64; stretches of empty ones are left out
  float* scores = nullptr;             // [64][kMostHeads]
  // Rows of the tile to come, which are asked for on the way.
  std::span<const AttentionRow> ahead;
  std::size_t row_width = 0;
};

// parts[head][dim] = sums over a tile of slots, for the dims of one block.
struct ValueProduct {
  const float* values = nullptr;           // [64][kBlockDims]
  const float* weights = nullptr;          // [64][kMostHeads]
  std::array<std::size_t, 2> eights = {};  // eights of slots in both halves of the tile
  std::size_t heads = 0;                   // rounded up to kValueHeads by the product
  float* parts = nullptr;                  // [heads][kBlockDims]
};

struct AttentionProducts {
  void (*multiply_keys)(const KeyProduct& product);
  void (*multiply_values)(const ValueProduct& product);
};

const AttentionProducts& attention_products(InstructionSet set);

// Asks for rows, into the second cache level.
void prefetch_rows(std::span<const AttentionRow> rows, std::size_t row_width);

}  // namespace locket::kernels::cpu
