// Rotation frequencies and angles. Formed step by step in float32 as the reference forms them,
// since a frequency that is one unit off moves logits at long context (v4.1 official model.py,
// precompute_freqs_cis). cos and sin of the float32 angle are taken in double and rounded once.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tensor/float_matrix.h"

namespace locket::model {

struct RotaryConfig {
  std::int64_t dim = 0;  // rotated dims, even
  double base = 0;
  // YaRN; original_context 0 turns it off.
  double factor = 1;
  double beta_fast = 0;
  double beta_slow = 0;
  std::int64_t original_context = 0;
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
