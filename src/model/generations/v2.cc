// DeepSeek-V2, V2-Lite and V2.5: latent attention, softmax routing without normalised weights, out
// of the best groups of experts where there are groups; weights in bfloat16. DeepSeek-V2, arXiv
// 2405.04434.
#include "model/generations/all_generations.h"
#include "model/generations/mla_bytes.h"
#include "model/generations/mla_config.h"
#include "model/generations/mla_model.h"

namespace locket::model {
namespace {

using checkpoint::ConfigObject;

constexpr std::string_view kName = "V2";

Result<MlaModelConfig> read_config(const ConfigObject& root) {
  LOCKET_TRY_STATUS(root.string_of("model_type", {"deepseek_v2"}));
  LOCKET_TRY(MlaModelConfig config, read_mla_config(root));
  config.generation = kName;
  LOCKET_TRY_STATUS(root.string_of("scoring_func", {"softmax"}));
  LOCKET_TRY(const std::string choice,
             root.string_of("topk_method", {"greedy", "group_limited_greedy"}));
  LOCKET_TRY(const bool normalizes, root.boolean("norm_topk_prob"));
  if (normalizes) return refuse_unsupported(root, "norm_topk_prob", "false");
  if (root.has("quantization_config")) {
    return refuse_unsupported(root, "quantization_config", "no such key: weights are in BF16");
  }
  config.router.score = RouterScore::kSoftmax;
  config.router.weighting = RouterWeighting::kPlain;
  config.router.group_score = GroupScore::kBest;
  if (choice == "group_limited_greedy") LOCKET_TRY_STATUS(read_expert_groups(root, config));
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
  return estimate_mla_bytes(config, kernels::WeightFormat::kBf16);
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

Generation v2_generation() {
  return {.name = kName,
          .model_type = "deepseek_v2",
          .modes = kMlaModes,
          .outline = outline,
          .count_bytes = count_bytes,
          .load = load,
          .check = check,
          .is_sampled = is_routed_expert};
}

}  // namespace locket::model
