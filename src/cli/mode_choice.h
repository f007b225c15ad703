// The numerics mode that a command's options mean: the one named, or what the generation of the
// model has first.
#pragma once

#include <filesystem>

#include "base/result.h"
#include "checkpoint/config_json.h"
#include "cli/options.h"
#include "model/numerics_mode.h"

namespace locket::cli {

// kBadRequest for unknown names, kUnsupported for modes that the generation does not have, and what
// reading config.json brings.
[[nodiscard]] Result<model::NumericsMode> choose_mode(const ModelOptions& options,
                                                      const checkpoint::ConfigObject& config);
// With the config.json of a folder.
[[nodiscard]] Result<model::NumericsMode> choose_mode(const ModelOptions& options,
                                                      const std::filesystem::path& folder);

}  // namespace locket::cli
