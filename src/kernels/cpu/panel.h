// The one product that all fast kernels are made of: a panel of weights, arranged as "16 in 16
// lanes", times rows of activations, every sum in the order of sum_order.h.
//
// A panel is [lane groups][column groups] tiles of 16 lanes x 32 columns; a tile has the form of
// WeightFormat::kF32 (float32 kernels) or kBf16 (bfloat16 kernels). Activations are packed to
// match: groups of 32 columns, the tail filled with -0, so that a padded step x * (+0) adds -0 and
// changes no bit of a sum.
//
// Weight matrices and index keys (lanes = keys) become panels.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/scale_range.h"
#include "kernels/weight_matrix.h"

namespace locket::kernels::cpu {

inline constexpr std::size_t kGroupColumns = 32;
inline constexpr std::size_t kTileLanes = 16;
// Column groups decoded at once: 8 or 16 KiB a lane group.
inline constexpr std::size_t kPanelGroups = 8;
// bfloat16 pairs of a column group, one vector of 16 lanes each.
inline constexpr std::size_t kGroupPairs = kGroupColumns / 2;

// totals[t][lane] += sums of the panel with row t of x. Totals are read and written.
struct PanelProduct {
  const std::byte* panel = nullptr;  // [lane_groups][groups] tiles, 64-byte aligned
  std::size_t lane_group_bytes = 0;  // from lane group to lane group
  std::size_t lane_groups = 0;
  std::size_t groups = 0;
  const float* scales = nullptr;  // [lane_groups][groups][16], or null: all one
  const std::byte* x = nullptr;   // [tokens][groups * group_bytes]
  std::size_t x_row_bytes = 0;
  std::size_t tokens = 0;
  float* totals = nullptr;        // [tokens][lane_groups * 16]
  std::size_t totals_stride = 0;  // floats from token to token
};

// A block of float32 rows that becomes a panel.
struct RowBlock {
  const float* rows = nullptr;  // [row_count, columns]
  std::size_t stride = 0;
  std::size_t row_count = 0;
  std::size_t columns = 0;
};

// Rows of a weight matrix, one call for few tokens.
struct RowGroupProduct {
  const std::byte* tiles = nullptr;   // [groups] tiles as stored
  const std::byte* scales = nullptr;  // [groups] scales as stored
  std::size_t groups = 0;
  ScaleRange after_sum;          // scales that may be applied to sums
  const std::byte* x = nullptr;  // [tokens][groups * group_bytes]
  std::size_t x_row_bytes = 0;
  std::size_t tokens = 0;   // 1..direct_tokens of the kernels
  float* totals = nullptr;  // [tokens][16], written
};

inline constexpr std::size_t kMostDirectTokens = 6;

// Stored tiles that become panel tiles with their scales.
struct TileBlock {
  WeightFormat format = WeightFormat::kF32;
  const std::byte* tiles = nullptr;
  const std::byte* scales = nullptr;
  std::size_t groups = 0;
  ScaleRange after_sum;
};

// The primitives of one instruction set and one element type.
struct PanelKernels {
  WeightFormat tile_format;  // kF32 or kBf16
  MantissaBits mantissa;
  std::size_t group_bytes;    // of 32 packed activations
  std::size_t direct_tokens;  // up to here multiply_row_group is faster than panels

  // [count] -> [ceil(count / 32) groups].
  void (*pack_x)(const float* x, std::size_t count, std::byte* out);
  // Lanes = rows, columns = columns; panel [ceil(row_count / 16)][ceil(columns / 32)] tiles.
  void (*pack_rows)(const RowBlock& block, std::byte* panel);
  // out [groups] panel tiles, out_scales [groups][16]; both at 64-byte boundaries.
  void (*decode)(const TileBlock& block, std::byte* out, float* out_scales);
  // The next two: REQUIRES a FlushScope.
  void (*multiply)(const PanelProduct& product);
  void (*multiply_row_group)(WeightFormat format, const RowGroupProduct& product);
};

// Asks for the lines of weights that are needed later, into the second cache level: the first is
// too small for the way.
inline void prefetch_lines(const std::byte* at, std::size_t bytes) {
  constexpr int kForReading = 0;
  constexpr int kSecondLevel = 3;
  for (std::size_t line = 0; line < bytes; line += 64) {
    __builtin_prefetch(at + line, kForReading, kSecondLevel);
  }
}

// The same for the place 8 KiB behind a tile.
inline void prefetch_ahead(const std::byte* tile, std::size_t bytes) {
  constexpr std::size_t kDistance = 2048;
  prefetch_lines(tile + kDistance, bytes);
}

inline std::size_t group_count(std::size_t columns) {
  return (columns + kGroupColumns - 1) / kGroupColumns;
}

// Bytes from row to row of activations that are packed for one panel of kPanelGroups.
constexpr std::size_t slice_row_bytes(std::size_t group_bytes) {
  return kPanelGroups * group_bytes + 64;
}

// Bytes from row to row of packed activations: an odd number of lines, so that rows do not meet in
// the same few sets of the caches.
inline std::size_t padded_row_bytes(std::size_t row_bytes) {
  constexpr std::size_t kLine = 64;
  return ((row_bytes + kLine - 1) / kLine | 1) * kLine;
}

inline std::size_t lane_group_count(std::size_t lanes) {
  return (lanes + kTileLanes - 1) / kTileLanes;
}

}  // namespace locket::kernels::cpu
