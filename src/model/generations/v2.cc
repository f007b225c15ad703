// DeepSeek-V2, V2-Lite and V2.5: latent attention, softmax routing without normalised weights, out
// of the best groups of experts where there are groups; weights in bfloat16. DeepSeek-V2, arXiv
// 2405.04434.
#include "model/generations/all_generations.h"
#include "model/generations/mla_config.h"
#include "model/generations/mla_generation.h"

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

}  // namespace

Generation v2_generation() { return mla_generation<read_config>(kName, "deepseek_v2"); }

}  // namespace locket::model
