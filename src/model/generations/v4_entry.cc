// V4 as one of the generations.
#include <array>
#include <memory>
#include <utility>

#include "model/generations/all_generations.h"
#include "model/generations/v4.h"
#include "model/generations/v4_bytes.h"

namespace locket::model {
namespace {

Result<ModelOutline> outline(const checkpoint::ConfigObject& root, NumericsMode mode) {
  LOCKET_TRY(const V4Config config, read_v4_config(root));
  return make_v4_memory(config, mode).outline;
}

Result<WeightBytes> count_bytes(const checkpoint::ConfigObject& root,
                                const checkpoint::Checkpoint* checkpoint) {
  LOCKET_TRY(const V4Config config, read_v4_config(root));
  return checkpoint == nullptr ? estimate_v4_bytes(config) : count_v4_bytes(config, *checkpoint);
}

Result<std::unique_ptr<LanguageModel>> load(checkpoint::Checkpoint& checkpoint,
                                            const LoadOptions& options) {
  LOCKET_TRY(V4Model model, V4Model::load(checkpoint, {.numerics = options.numerics,
                                                       .progress = options.progress,
                                                       .placement = options.placement}));
  return std::make_unique<V4Model>(std::move(model));
}

Result<std::string> check(checkpoint::Checkpoint& checkpoint) {
  LOCKET_TRY(const V4Config config, read_v4_config(checkpoint.config().root()));
  WeightReader reader(checkpoint, {}, WeightReader::Reads::kNothing, Fp8Tile::k128);
  LOCKET_TRY(LoadedV4Weights loaded, load_v4_weights(config, reader));
  return std::move(loaded.skipped);
}

}  // namespace

Generation v4_generation() {
  static constexpr std::array kModes = {NumericsMode::kWide, NumericsMode::kPlain};
  return {.name = "V4",
          .model_type = "deepseek_v4",
          .modes = kModes,
          .outline = outline,
          .count_bytes = count_bytes,
          .load = load,
          .check = check,
          .is_sampled = is_streamed_v4_tensor};
}

}  // namespace locket::model
