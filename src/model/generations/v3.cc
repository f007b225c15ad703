// DeepSeek-V3, V3.1 and R1: latent attention, sigmoid routing with a learned bias for the choice
// out of the best groups, FP8 weights with float32 scales per 128 x 128. The draft layers behind
// the last are left unread. DeepSeek-V3, arXiv 2412.19437.
#include "model/generations/all_generations.h"
#include "model/generations/mla_config.h"
#include "model/generations/mla_generation.h"

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

}  // namespace

Generation v3_generation() { return mla_generation<read_config>(kName, "deepseek_v3"); }

}  // namespace locket::model
