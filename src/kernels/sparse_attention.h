// Attention of one query position over a short list of rows that are keys and values at once, with
// a learned sink per head. Official kernel.py, sparse_attn: 64 slots a tile, in list order; a
// running maximum decides how probabilities round; the denominator is kept unrounded and gets
// exp(sink - maximum) at the end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/rounding.h"

namespace locket::kernels {

inline constexpr std::size_t kAttentionTile = 64;

struct AttentionInput {
  std::size_t heads = 0;
  std::size_t head_dim = 0;
  float scale = 1.0f;                  // of the dot products
  std::span<const float> query;        // [heads, head_dim]
  std::span<const float> rows;         // [slots, head_dim]; unused slots hold zeros
  std::span<const std::uint8_t> used;  // [slots], 0 = skip
  std::span<const float> sink;         // [heads]
  Rounding rounding =
      Rounding::kNone;  // of probabilities before the value product, and of the output
};

// out [heads, head_dim]. Thread-safe; one call works in the calling thread.
void sparse_attention(const AttentionInput& input, std::span<float> out);

}  // namespace locket::kernels
