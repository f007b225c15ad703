// DeepSeek-V3.2 and V3.2-Exp: V3 with an indexer in every layer, whose attention reads the chosen
// tokens only; rows in FP8 as they are served. DeepSeek-V3.2-Exp report.
#include "model/generations/all_generations.h"
#include "model/generations/mla_bytes.h"
#include "model/generations/mla_config.h"
#include "model/generations/mla_model.h"

namespace locket::model {
namespace {

using checkpoint::ConfigObject;

constexpr std::string_view kName = "V3.2";

Result<MlaModelConfig> read_config(const ConfigObject& root) {
  LOCKET_TRY_STATUS(root.string_of("model_type", {"deepseek_v32"}));
  LOCKET_TRY(MlaModelConfig config, read_mla_config(root));
  config.generation = kName;
  LOCKET_TRY_STATUS(read_balanced_router(root, config));
  LOCKET_TRY_STATUS(check_fp8_weights(root));
  LOCKET_TRY_STATUS(read_indexer(root, config));
  if (config.rope_dim > static_cast<std::int64_t>(kernels::kMlaFp8Tail)) {
    return refuse_unsupported(root, "qk_rope_head_dim",
                              "at most 64, which a row stores unquantized,");
  }
  config.served_rows = kernels::RowFormat::kMlaFp8;
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

Generation v32_generation() {
  return {.name = kName,
          .model_type = "deepseek_v32",
          .modes = kMlaModes,
          .outline = outline,
          .count_bytes = count_bytes,
          .load = load,
          .check = check,
          .is_sampled = is_routed_expert};
}

}  // namespace locket::model
