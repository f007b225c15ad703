#include "model/numerics_mode.h"

#include "base/check.h"

namespace locket::model {

std::string_view numerics_mode_name(NumericsMode mode) {
  switch (mode) {
    case NumericsMode::kReference:
      return "reference";
    case NumericsMode::kWide:
      return "wide";
    case NumericsMode::kPlain:
      return "plain";
    case NumericsMode::kFast:
      return "fast";
    case NumericsMode::kCount:
      break;
  }
  LOCKET_CHECK(false);
}

std::optional<NumericsMode> find_numerics_mode(std::string_view name) {
  for (int i = 0; i < static_cast<int>(NumericsMode::kCount); ++i) {
    const auto mode = static_cast<NumericsMode>(i);
    if (numerics_mode_name(mode) == name) return mode;
  }
  return std::nullopt;
}

std::string Numerics::memory_name() const {
  std::string name(numerics_mode_name(mode));
  if (index_scores == kernels::IndexScoreRounding::kBf16) name += " with bf16 index scores";
  return name;
}

}  // namespace locket::model
