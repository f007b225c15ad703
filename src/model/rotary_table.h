// Rotation frequencies and angles. Formed step by step in float32 as the reference forms them,
// since a frequency that is one unit off moves logits at long context (v4.1 official model.py,
// precompute_freqs_cis). cos and sin of the float32 angle are taken in double and rounded once.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tensor/float_matrix.h"

namespace locket::model {

// How YaRN mixes a frequency f and f / factor: as V4.1's code does, f (1 - r) + f / factor r, or as
// that of V2 and V3 in transformers, 1 / (factor / f) (1 - m) + f m with m = 1 - r. They differ in
// the last bit.
enum class YarnSteps { kDivided, kInverse, kCount };

struct RotaryConfig {
  std::int64_t dim = 0;  // rotated dims, even
  double base = 0;
  // YaRN; original_context 0 turns it off.
  double factor = 1;
  double beta_fast = 0;
  double beta_slow = 0;
  std::int64_t original_context = 0;
  YarnSteps steps = YarnSteps::kDivided;
};

// Frequencies [dim / 2].
std::vector<float> rotary_frequencies(const RotaryConfig& config);

struct RotaryTable {
  tensor::FloatMatrix cos;  // [positions, dim / 2]
  tensor::FloatMatrix sin;
};

// Angles of these positions.
RotaryTable rotary_table(const std::vector<float>& frequencies,
                         std::span<const std::int64_t> positions);

}  // namespace locket::model
