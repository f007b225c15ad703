// A generation of models with latent attention, from how its config.json is read.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "model/generations/generation.h"
#include "model/generations/mla_bytes.h"
#include "model/generations/mla_config.h"
#include "model/generations/mla_model.h"

namespace locket::model {

// `kRead`: Result<MlaModelConfig>(const checkpoint::ConfigObject& root).
template <auto kRead>
Generation mla_generation(std::string_view name, std::string_view model_type) {
  using checkpoint::Checkpoint;
  using checkpoint::ConfigObject;
  return {.name = name,
          .model_type = model_type,
          .modes = kMlaModes,
          .outline = [](const ConfigObject& root, NumericsMode mode) -> Result<ModelOutline> {
            LOCKET_TRY(const MlaModelConfig config, kRead(root));
            return outline_mla(config, mode);
          },
          .count_bytes = [](const ConfigObject& root,
                            const Checkpoint* checkpoint) -> Result<WeightBytes> {
            LOCKET_TRY(const MlaModelConfig config, kRead(root));
            if (checkpoint != nullptr) return count_mla_bytes(config, *checkpoint);
            return estimate_mla_bytes(config, root.has("quantization_config")
                                                  ? kernels::WeightFormat::kFp8F32
                                                  : kernels::WeightFormat::kBf16);
          },
          .load = [](Checkpoint& checkpoint,
                     const LoadOptions& options) -> Result<std::unique_ptr<LanguageModel>> {
            LOCKET_TRY(const MlaModelConfig config, kRead(checkpoint.config().root()));
            return MlaModel::load(config, checkpoint, options);
          },
          .check = [](Checkpoint& checkpoint) -> Result<std::string> {
            LOCKET_TRY(const MlaModelConfig config, kRead(checkpoint.config().root()));
            return check_mla_weights(config, checkpoint);
          },
          .is_sampled = is_routed_expert};
}

}  // namespace locket::model
