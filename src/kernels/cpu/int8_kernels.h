// The primitives of the int8 products (int8_matmul.h), one set per kind of instructions, and the
// driver over them. All give the bits of the definition:
//
//   - Integers. The sum of a block is at most 12 * 127 * 32 < 2^16. With the scale codes of a row's
//     four blocks within kMostInt8Span of each other, the blocks shifted by their distance from the
//     lowest code add up in 32 bits, and the conversion to float32 is the one rounding.
//   - Folded. Within kMostFoldedSpan the shift goes into the weights themselves, 2w << shift in
//     -96..96; 128 products stay below 2^21, which float32 holds exactly.
//   - Everything else, and scale codes so low that a factor would be denormal: double, as defined.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/int8_matmul.h"

namespace locket::kernels::cpu {

inline constexpr std::size_t kInt8Lanes = 16;
inline constexpr unsigned kMostInt8Span = 12;
inline constexpr unsigned kMostFoldedSpan = 3;
// Lowest code whose power of two, doubled weights considered, is a normal float32.
inline constexpr unsigned kLeastInt8Scale = 2;

// Bytes of the codes of 16 rows x 128 columns, and of their scales.
inline constexpr std::size_t kInt8ChunkBytes = 1024;
inline constexpr std::size_t kInt8ChunkScales = 64;
// A decoded chunk: 32 vectors of 16 lanes x 4 columns.
inline constexpr std::size_t kInt8PanelBytes = 2048;

// One row group over `chunks` whole chunks for a few tokens; pointers are at the first chunk.
struct Int8RowsProduct {
  const std::byte* tiles = nullptr;   // [chunks][1024]
  const std::byte* scales = nullptr;  // [chunks][4][16]
  std::size_t chunks = 0;
  Int8Rows x;               // groups from the first chunk on; 1..direct_tokens tokens
  float* totals = nullptr;  // [tokens][totals_stride], read and written
  std::size_t totals_stride = 0;
};

// One or two decoded chunks for many tokens.
struct Int8PanelProduct {
  const std::byte* panel = nullptr;  // [lane_groups][2048], 64-byte aligned
  const float* factors = nullptr;    // [lane_groups][16]
  std::size_t lane_groups = 0;       // 1 or 2
  Int8Rows x;                        // one group; kInt8SpareRows may be read behind
  float* totals = nullptr;           // [tokens][totals_stride]
  std::size_t totals_stride = 0;     // floats, a multiple of 16
};

struct Int8Kernels {
  std::size_t direct_tokens;  // most tokens of multiply_rows
  std::size_t panel_from;     // tokens from which panels are faster; 0: there are no panels
  std::size_t token_block;    // tokens of a panel product
  void (*multiply_rows)(const Int8RowsProduct& product);
  // Decodes a chunk; says no if it cannot be folded. `factors` [16].
  bool (*decode)(const std::byte* tiles, const std::byte* scales, std::byte* panel, float* factors);
  void (*multiply_panel)(const Int8PanelProduct& product);
  // Around a thread's calls of multiply_panel.
  void (*begin_panels)();
  void (*end_panels)();
};

// The chunks of a row group as kernels want them: the last one, if short, is a padded copy.
class Int8ChunkTail {
 public:
  // `blocks` 1..3 blocks of 32 columns.
  Int8ChunkTail(const std::byte* tiles, const std::byte* scales, std::size_t blocks);
  const std::byte* tiles() const { return tiles_.data(); }
  const std::byte* scales() const { return scales_.data(); }

 private:
  alignas(64) std::array<std::byte, kInt8ChunkBytes> tiles_;
  alignas(64) std::array<std::byte, kInt8ChunkScales> scales_;
};

struct Int8Part {
  const WeightMatrix& weights;
  const Int8Rows& x;
  float* out;
  std::size_t out_stride;
  std::size_t first;  // row group
  std::size_t last;
};

void int8_matmul_part(const Int8Kernels& kernels, const Int8Part& part);

const Int8Kernels& avx2_int8_kernels();
const Int8Kernels& vnni_int8_kernels();  // AVX-512 with VNNI and VBMI
const Int8Kernels& amx_int8_kernels();   // the same with tiles

}  // namespace locket::kernels::cpu
