// DeepSeek-V3, V3.1 and R1: latent attention, sigmoid routing with a learned bias for the choice
// out of the best groups, FP8 weights with float32 scales per 128 x 128. The draft layers behind
// the last are left unread. DeepSeek-V3, arXiv 2412.19437.
#include "model/generations/all_generations.h"
#include "model/generations/mla_bytes.h"
#include "model/generations/mla_config.h"
#include "model/generations/mla_model.h"

namespace locket::model {
namespace {

using checkpoint::ConfigObject;

constexpr std::string_view kName = "V3";

Result<MlaModelConfig> read_config(const ConfigObject& root) {
  LOCKET_TRY_STATUS(root.string_of("model_type", {"deepseek_v3"}));
  LOCKET_TRY(MlaModelConfig config, read_mla_config(root));
  config.generation = kName;
  LOCKET_TRY_STATUS(read_balanced_router(root, config));
  LOCKET_TRY_STATUS(check_fp8_weights(root));
  return config;
}

Result<ModelOutline> outline(const ConfigObject& root, NumericsMode mode) {
  LOCKET_TRY(const MlaModelConfig config, read_config(root));
  return outline_mla(config, mode);
}

Result<WeightBytes> count_bytes(const ConfigObject& root,
                                const checkpoint::Checkpoint* checkpoint) {
  LOCKET_TRY(const MlaModelConfig config, read_config(root));
  if (checkpoint != nullptr) return count_mla_bytes(config, *checkpoint);
  return estimate_mla_bytes(config, root.has("quantization_config") ? kernels::WeightFormat::kFp8F32
                                                                    : kernels::WeightFormat::kBf16);
}

Result<std::unique_ptr<LanguageModel>> load(checkpoint::Checkpoint& checkpoint,
                                            const LoadOptions& options) {
  LOCKET_TRY(const MlaModelConfig config, read_config(checkpoint.config().root()));
  return MlaModel::load(config, checkpoint, options);
}

Result<std::string> check(checkpoint::Checkpoint& checkpoint) {
  LOCKET_TRY(const MlaModelConfig config, read_config(checkpoint.config().root()));
  return check_mla_weights(config, checkpoint);
}

}  // namespace

Generation v3_generation() {
  return {.name = kName,
          .model_type = "deepseek_v3",
          .modes = kMlaModes,
          .outline = outline,
          .count_bytes = count_bytes,
          .load = load,
          .check = check,
          .is_sampled = is_routed_expert};
}

}  // namespace locket::model
