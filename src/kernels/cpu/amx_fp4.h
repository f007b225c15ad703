// FP4 weights times bfloat16 rows in the tiles of AMX, with the bits of sum_order.h.
//
// One tile instruction multiplies 16 pairs of columns, a whole group of 32, for 16 tokens and 16
// rows of weights, and adds each finished sum to its total with one rounding, as sum_order.h has
// it. Inside the group its order is its own, so a group may go there only if every partial sum of
// it is exact in any order. FP4 values are multiples of 1/2 up to 6. Values of x that are multiples
// of 2^L and whose magnitudes add up to at most 2^(L + 23) / 6 are therefore safe with all weights;
// scales are powers of two and change nothing. E4M3 activations nearly always are like that. The
// groups of a row that are not ("loose") go through vdpbf16ps, between the tile instructions.
//
// Needs amx_is_usable() and what bf16_panel_kernels() needs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/cpu/panel.h"

namespace locket::kernels::cpu {

inline constexpr std::size_t kAmxLaneGroups = 2;
inline constexpr std::size_t kAmxTokens = 16;

// What one row of activations is like.
struct AmxRow {
  ExponentSpan span;
  std::size_t loose_groups = 0;
};

// Packs a row of `groups` column groups into bfloat16 pairs, and sets `bit` in loose[g] of every
// loose group g. REQUIRES: a FlushScope.
AmxRow pack_amx_row(const float* x, std::size_t groups, std::byte* out, std::uint16_t bit,
                    std::uint16_t* loose);

// Up to two lane groups of a weight matrix, and columns that become a panel.
struct Fp4Block {
  const std::byte* tiles = nullptr;   // of the first lane group
  const std::byte* scales = nullptr;  // of the first lane group
  std::size_t lane_groups = 0;        // 1..kAmxLaneGroups
  std::size_t lane_group_tiles = 0;   // tiles from lane group to lane group
  std::size_t groups = 0;
  ScaleRange after_sum;
};

// panel [lane_groups][groups] tiles of WeightFormat::kBf16 with their scales in them; false, and
// nothing useful in `panel`, if a scale is such that sums or weights would be denormal or infinite,
// or above 1.
bool decode_scaled(const Fp4Block& block, std::byte* panel);

// totals[t][lane] += sums of the panel with row t of x.
struct AmxProduct {
  const std::byte* panel = nullptr;  // of decode_scaled()
  std::size_t lane_groups = 0;
  std::size_t groups = 0;
  const std::byte* x = nullptr;  // [blocks * block_rows][groups], at the panel's first column
  std::size_t x_row_bytes = 0;
  const std::uint16_t* loose = nullptr;  // [blocks][groups]: bit r: row r of the block is loose
  std::size_t loose_stride = 0;          // from block to block
  std::size_t blocks = 0;
  std::size_t block_rows = 0;  // 1..kAmxTokens
  float* totals = nullptr;     // [blocks * block_rows][lane_groups * 16], read and written
};

// REQUIRES: a FlushScope and an AmxScope of `block_rows`.
void multiply_tiles(const AmxProduct& product);

// Both for one block of tokens, without a panel in between; false, and `product` as it was, for
// scales as above. `product.panel` is not used. REQUIRES as multiply_tiles().
bool multiply_stream(const Fp4Block& block, const AmxProduct& product);

// The tile registers of this thread, set up for blocks of `block_rows` tokens while it lives.
class AmxScope {
 public:
  explicit AmxScope(std::size_t block_rows);
  AmxScope(const AmxScope&) = delete;
  AmxScope& operator=(const AmxScope&) = delete;
  ~AmxScope();
};

}  // namespace locket::kernels::cpu
