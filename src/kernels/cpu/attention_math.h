// The steps of sparse attention and of index scores around their dot products: exponentials,
// maxima, plain sums. They run with denormals, not under FlushScope.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/cpu/instruction_sets.h"
#include "kernels/rounding.h"
#include "kernels/sparse_attention.h"

namespace locket::kernels::cpu {

inline constexpr float kFirstMaximum = -1e30f;  // the official seed of the running maximum

// Running state of all heads, [lanes] each.
struct HeadStates {
  float* maxima = nullptr;
  float* denominators = nullptr;
  float* shrinks = nullptr;  // of what the tiles before have gathered
};

// One tile of slots, lanes = heads.
struct ScoreTile {
  float* scores = nullptr;  // [slots rounded up to 8][64] dot products in, rounded weights out;
                            // behind the last slot -0, which changes no sum
  std::span<const AttentionRow> rows;  // of the slots, up to 64; empty ones weigh nothing
  std::size_t lanes = 0;               // heads, rounded up to 16
  float scale = 1.0f;
  Rounding rounding = Rounding::kNone;
};

// sums[h][i] = sums[h][i] * shrinks[h] + parts[h][i].
struct ValueTile {
  float* sums = nullptr;         // [heads][32]
  const float* parts = nullptr;  // [heads][32]
  std::size_t heads = 0;
};

// out[h][dim] = round(sums[h][first_dim + dim] / denominators[h]).
struct HeadOutput {
  const float* sums = nullptr;  // [blocks of 32 dims][head_rows][32]
  std::size_t head_rows = 0;
  std::size_t heads = 0;
  std::size_t first_dim = 0;  // below 32
  std::size_t head_dim = 0;
  Rounding rounding = Rounding::kNone;
};

// scores[j] from the dot products of `count` keys.
struct KeyTile {
  const float* dots = nullptr;  // [heads][dots_stride], readable to whole 16s
  std::size_t dots_stride = 0;
  std::span<const float> weights;  // [heads]
  Rounding rounding = Rounding::kNone;
  std::size_t count = 0;
};

struct AttentionMath {
  void (*weigh)(const ScoreTile& tile, const HeadStates& heads);
  void (*accumulate)(const ValueTile& tile, const float* shrinks);
  void (*divide)(const HeadOutput& output, const float* denominators, float* out);
  void (*combine_heads)(const KeyTile& tile, float* scores);
};

const AttentionMath& attention_math(InstructionSet set);

}  // namespace locket::kernels::cpu
