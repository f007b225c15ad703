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

}  // namespace locket::model
