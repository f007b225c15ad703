// Stored rows of the memory as float32, for one tile of sparse attention.
#pragma once

#include <cstddef>
#include <span>

#include "kernels/cpu/instruction_sets.h"
#include "kernels/sparse_attention.h"

namespace locket::kernels::cpu {

// Decoded rows of a tile: [blocks of 32 dims][64 slots][32 dims], each block followed by padding:
// the same dims of all slots lie close together, and blocks do not fall into the same sets of the
// first cache level. A block is a group of sum_order.h.
inline constexpr std::size_t kBlockDims = 32;
inline constexpr std::size_t kBlockFloats = kAttentionTile * kBlockDims + 64;

constexpr std::size_t block_count(std::size_t width) {
  return (width + kBlockDims - 1) / kBlockDims;
}

// Slots are decoded in whole blocks of so many.
inline constexpr std::size_t kSlotBlock = 16;

struct RowDecoding {
  // Rows of `width` values as values [block_count(width)][kBlockFloats], at a 64-byte boundary.
  // Empty slots are zero, dims behind the last -0. REQUIRES: denormals are computed.
  void (*decode)(std::span<const AttentionRow> rows, std::size_t width, float* values);
};

const RowDecoding& row_decoding(InstructionSet set);

}  // namespace locket::kernels::cpu
