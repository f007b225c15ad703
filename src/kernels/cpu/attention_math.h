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

// Running state of one head.
struct HeadState {
  float maximum = -1e30f;  // the official seed
  float denominator = 0.0f;
  float shrink = 1.0f;  // of what the tiles before have gathered
};

// One tile of one head.
struct ScoreTile {
  float* scores = nullptr;              // [64] dot products in, rounded weights out
  const std::uint32_t* used = nullptr;  // [64] all bits set, or 0
  float scale = 1.0f;
  Rounding rounding = Rounding::kNone;
};

// out[h][i] = out[h][i] * shrink of head h + parts[h][i].
struct ValueTile {
  float* out = nullptr;  // [heads][out_stride]
  std::size_t out_stride = 0;
  const float* parts = nullptr;  // [heads][parts_stride]
  std::size_t parts_stride = 0;
  std::size_t count = 0;  // of i
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
  void (*weigh)(const ScoreTile& tile, HeadState& head);
  void (*accumulate)(const ValueTile& tile, std::span<const HeadState> heads);
  void (*divide)(std::span<float> values, float denominator, Rounding rounding);
  void (*combine_heads)(const KeyTile& tile, float* scores);
};

const AttentionMath& attention_math(InstructionSet set);

}  // namespace locket::kernels::cpu
