#include "cli/mode_choice.h"

#include <fmt/format.h>
#include <optional>

#include "checkpoint/model_config.h"
#include "model/generations/generation.h"

namespace locket::cli {

Result<model::NumericsMode> choose_mode(const ModelOptions& options,
                                        const checkpoint::ConfigObject& config) {
  std::optional<model::NumericsMode> wish;
  if (!options.mode.empty()) {
    wish = model::find_numerics_mode(options.mode);
    if (!wish) {
      return fail(ErrorCode::kBadRequest,
                  fmt::format("mode \"{}\" is not known; there are reference, fast, wide and plain",
                              options.mode));
    }
  }
  LOCKET_TRY(const model::Generation* generation, model::find_generation(config));
  return model::choose_mode(*generation, wish);
}

Result<model::NumericsMode> choose_mode(const ModelOptions& options,
                                        const std::filesystem::path& folder) {
  LOCKET_TRY(const checkpoint::ConfigFile file, checkpoint::open_model_config(folder));
  return choose_mode(options, file.root());
}

}  // namespace locket::cli
