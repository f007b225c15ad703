// DeepSeek-V3.2 and V3.2-Exp: V3 with an indexer in every layer, whose attention reads the chosen
// tokens only; rows in FP8 as they are served. DeepSeek-V3.2-Exp report.
#include "model/generations/all_generations.h"
#include "model/generations/mla_config.h"
#include "model/generations/mla_generation.h"

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

}  // namespace

Generation v32_generation() { return mla_generation<read_config>(kName, "deepseek_v32"); }

}  // namespace locket::model
