// V4.1 as one of the generations.
#include <array>
#include <utility>

#include "model/generations/all_generations.h"
#include "model/generations/v41.h"
#include "model/generations/v41_bytes.h"

namespace locket::model {
namespace {

Result<ModelOutline> outline(const checkpoint::ConfigObject& root, NumericsMode mode) {
  LOCKET_TRY(const V41Config config, read_v41_config(root));
  return outline_v41(config, make_v41_memory(config, mode));
}

Result<WeightBytes> count_bytes(const checkpoint::ConfigObject& root,
                                const checkpoint::Checkpoint* checkpoint) {
  LOCKET_TRY(const V41Config config, read_v41_config(root));
  return checkpoint == nullptr ? estimate_v41_bytes(config) : count_v41_bytes(config, *checkpoint);
}

Result<std::unique_ptr<LanguageModel>> load(checkpoint::Checkpoint& checkpoint,
                                            const LoadOptions& options) {
  LOCKET_TRY(V41Model model, V41Model::load(checkpoint, options.token_map, options.numerics,
                                            options.progress, options.placement));
  return std::make_unique<V41Model>(std::move(model));
}

Result<std::string> check(checkpoint::Checkpoint& checkpoint) {
  LOCKET_TRY(const V41Config config, read_v41_config(checkpoint.config().root()));
  WeightReader reader(checkpoint, {}, WeightReader::Reads::kNothing);
  LOCKET_TRY(LoadedV41Weights loaded, load_v41_weights(config, reader));
  return std::move(loaded.skipped);
}

}  // namespace

Generation v41_generation() {
  static constexpr std::array kModes = {NumericsMode::kReference, NumericsMode::kFast,
                                        NumericsMode::kWide, NumericsMode::kPlain};
  return {.name = "V4.1",
          .model_type = "deepseek_v41",
          .modes = kModes,
          .outline = outline,
          .count_bytes = count_bytes,
          .load = load,
          .check = check,
          .is_sampled = is_streamed_v41_tensor};
}

}  // namespace locket::model
