// Attention of one query position over a short list of rows that are keys and values at once, with
// a learned sink per head. Official kernel.py, sparse_attn: 64 slots a tile, in list order; a
// running maximum decides how probabilities round; the denominator is kept unrounded and gets
// exp(sink - maximum) at the end.
//
// Rows come as the memory stores them: what one holds is what decode_row() gives. A slot without a
// row takes no part, but keeps its place in the tiles.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/rounding.h"
#include "kernels/row_codec.h"

namespace locket::kernels {

inline constexpr std::size_t kAttentionTile = 64;

// One slot of the list.
struct AttentionRow {
  const std::byte* bytes = nullptr;  // [row_bytes(format, head_dim)]; null: no row
  RowFormat format = RowFormat::kF32;

  bool empty() const { return bytes == nullptr; }
};

// Slots over float32 rows [slots, head_dim], which must outlive them; `used` [slots], 0: no row.
std::vector<AttentionRow> float_slots(std::span<const float> rows, std::size_t head_dim,
                                      std::span<const std::uint8_t> used);

struct AttentionInput {
  std::size_t heads = 0;
  std::size_t head_dim = 0;
  float scale = 1.0f;                  // of the dot products
  std::span<const float> query;        // [heads, head_dim]
  std::span<const AttentionRow> rows;  // [slots]
  std::span<const float> sink;         // [heads]
  Rounding rounding =
      Rounding::kNone;  // of probabilities before the value product, and of the output
};

// out [heads, head_dim]. Thread-safe; one call works in the calling thread. The heads of a position
// may be shared out among calls.
void sparse_attention(const AttentionInput& input, std::span<float> out);

}  // namespace locket::kernels
