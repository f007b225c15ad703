// Attention of one query position over a list of rows, each of which holds key and value: the query
// multiplies its first values, and any run of its values is averaged; the two may overlap, as where
// one latent is both. There may be a learned sink per head. Official kernel.py of V4.1,
// sparse_attn: 64 slots a tile, in list order; a running maximum decides how probabilities round;
// the denominator is kept unrounded and gets exp(sink - maximum) at the end.
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
  const std::byte* bytes = nullptr;  // [row_bytes(format, row_width)]; null: no row
  RowFormat format = RowFormat::kF32;

  bool empty() const { return bytes == nullptr; }
};

// Slots over float32 rows [slots, head_dim], which must outlive them; `used` [slots], 0: no row.
std::vector<AttentionRow> float_slots(std::span<const float> rows, std::size_t head_dim,
                                      std::span<const std::uint8_t> used);

struct AttentionInput {
  std::size_t heads = 0;
  std::size_t head_dim = 0;            // of a query, and of the first values of a row
  float scale = 1.0f;                  // of the dot products
  std::span<const float> query;        // [heads, head_dim]
  std::span<const AttentionRow> rows;  // [slots]
  std::span<const float> sink;         // [heads], or empty: there is none
  Rounding rounding =
      Rounding::kNone;  // of probabilities before the value product, and of the output

  // Values [value_first, value_first + value_dim) of a row of `row_width` are averaged. Widths of 0
  // are head_dim. REQUIRES: both runs lie in the row.
  std::size_t row_width = 0;
  std::size_t value_first = 0;
  std::size_t value_dim = 0;

  std::size_t row_values() const { return row_width == 0 ? head_dim : row_width; }
  std::size_t out_dim() const { return value_dim == 0 ? head_dim : value_dim; }
};

// out [heads, out_dim()]; zero where there is neither sink nor row. Thread-safe; one call works in
// the calling thread. The heads of a position may be shared out among calls.
void sparse_attention(const AttentionInput& input, std::span<float> out);

}  // namespace locket::kernels
