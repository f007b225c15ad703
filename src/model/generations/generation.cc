#include "model/generations/generation.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <string>
#include <utility>

#include "model/generations/all_generations.h"
#include "model/generations/config_keys.h"

namespace locket::model {

std::span<const Generation> generations() {
  static const std::array all = {v1_generation(),  v2_generation(), v3_generation(),
                                 v32_generation(), v4_generation(), v41_generation()};
  return all;
}

Result<const Generation*> find_generation(const checkpoint::ConfigObject& root) {
  LOCKET_TRY(const std::string type, root.string("model_type"));
  std::vector<std::string_view> known;
  for (const Generation& generation : generations()) {
    if (generation.model_type == type) return &generation;
    known.push_back(generation.model_type);
  }
  return refuse_unsupported(root, "model_type", fmt::format("one of {}", fmt::join(known, ", ")));
}

Result<NumericsMode> choose_mode(const Generation& generation, std::optional<NumericsMode> wish) {
  if (!wish) return generation.modes.front();
  if (std::ranges::find(generation.modes, *wish) != generation.modes.end()) return *wish;
  std::vector<std::string_view> names;
  for (const NumericsMode mode : generation.modes) names.push_back(numerics_mode_name(mode));
  return fail(ErrorCode::kUnsupported,
              fmt::format("mode {} is not there for a model of generation {}; it has {}",
                          numerics_mode_name(*wish), generation.name, fmt::join(names, ", ")));
}

}  // namespace locket::model
