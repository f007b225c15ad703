// The numerics modes (docs/numerics.md): what a mode rounds and quantizes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "kernels/index_scores.h"
#include "kernels/matmul.h"
#include "kernels/rounding.h"

namespace locket::model {

enum class NumericsMode {
  kReference,  // bfloat16 at the official places, E4M3 activations into FP8 and FP4 weights
  kWide,       // float32; the memory's quantizers stay, they are part of the model
  kPlain,      // as wide without the memory's quantizers; only to compare with outside code
  kFast,       // as reference, but activations into the FP4 weights of routed experts become int8
  kCount
};

// Bumped with every change that alters an output bit of any kernel; the golden-bits test holds it.
inline constexpr int kNumericsRevision = 1;

std::string_view numerics_mode_name(NumericsMode mode);
std::optional<NumericsMode> find_numerics_mode(std::string_view name);

struct Numerics {
  NumericsMode mode = NumericsMode::kReference;
  // Of index scores; kBf16 only for comparison with the official code.
  kernels::IndexScoreRounding index_scores = kernels::IndexScoreRounding::kF32;

  // Names everything here that the bytes of a model's memory depend on.
  std::string memory_name() const;

  kernels::Rounding rounding() const {
    return rounds_officially() ? kernels::Rounding::kBf16 : kernels::Rounding::kNone;
  }
  // What activations hold, as a promise to the kernels.
  kernels::ActivationValues activation_values() const {
    return rounds_officially() ? kernels::ActivationValues::kBf16 : kernels::ActivationValues::kF32;
  }
  // Activations into FP8 and FP4 weights become E4M3, except where the next one holds.
  bool quantizes_activations() const { return rounds_officially(); }
  // Activations into routed experts with FP4 weights become int8 instead.
  bool has_int8_experts() const { return mode == NumericsMode::kFast; }
  // Rows, index keys and queries and window rows are quantized.
  bool quantizes_memory() const { return mode != NumericsMode::kPlain; }

 private:
  bool rounds_officially() const {
    return mode == NumericsMode::kReference || mode == NumericsMode::kFast;
  }
};

}  // namespace locket::model
