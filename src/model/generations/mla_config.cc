#include "model/generations/mla_config.h"

#include <bit>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <string_view>
#include <utility>

namespace locket::model {
namespace {

using checkpoint::ConfigObject;

Status require_false(const ConfigObject& root, std::string_view key) {
  LOCKET_TRY(const bool value, root.boolean(key));
  if (value) return refuse_unsupported(root, key, "false");
  return {};
}

// Keys whose only known value is the one that this program computes.
Status check_fixed(const ConfigObject& root, const MlaModelConfig& config) {
  LOCKET_TRY_STATUS(root.string_of("hidden_act", {"silu"}));
  LOCKET_TRY_STATUS(require_false(root, "attention_bias"));
  LOCKET_TRY_STATUS(require_false(root, "tie_word_embeddings"));
  LOCKET_TRY(const std::int64_t frequency, root.integer("moe_layer_freq"));
  if (frequency != 1) return refuse_unsupported(root, "moe_layer_freq", "1");
  LOCKET_TRY(const std::int64_t kv_heads, root.integer("num_key_value_heads"));
  if (kv_heads != config.head_count) {
    return refuse_unsupported(root, "num_key_value_heads", "as num_attention_heads");
  }
  return {};
}

Status read_sizes(const ConfigObject& root, MlaModelConfig& config) {
  std::int64_t chosen = 0;
  LOCKET_TRY_STATUS(
      read_integers(root, {{"vocab_size", &config.vocabulary_size, kIdCount},
                           {"hidden_size", &config.hidden_size},
                           {"num_hidden_layers", &config.layer_count},
                           {"num_attention_heads", &config.head_count},
                           {"kv_lora_rank", &config.latent_rank},
                           {"qk_nope_head_dim", &config.nope_dim},
                           {"qk_rope_head_dim", &config.rope_dim},
                           {"v_head_dim", &config.value_dim},
                           {"max_position_embeddings", &config.max_positions, kIdCount},
                           {"bos_token_id", &config.bos_token_id, kIdOrNone},
                           {"eos_token_id", &config.eos_token_id, kIdOrNone},
                           {"first_k_dense_replace", &config.dense_layers, kNotNegative},
                           {"intermediate_size", &config.ffn_size},
                           {"n_routed_experts", &config.expert_count},
                           {"n_shared_experts", &config.shared_experts},
                           {"moe_intermediate_size", &config.expert_size},
                           {"num_experts_per_tok", &chosen}}));
  if (root.has("q_lora_rank")) {
    LOCKET_TRY(config.query_rank, root.integer_in("q_lora_rank", kPositive));
  }
  if (config.rope_dim % 2 != 0) return root.refuse("qk_rope_head_dim", "an even number");
  if (config.dense_layers >= config.layer_count) {
    return refuse_unsupported(root, "first_k_dense_replace", "below num_hidden_layers");
  }
  if (chosen > config.expert_count) {
    return root.refuse("num_experts_per_tok", "at most n_routed_experts");
  }
  config.router.experts_per_token = static_cast<std::size_t>(chosen);
  LOCKET_TRY_STATUS(read_number(root, "rms_norm_eps", &config.rms_norm_eps));
  return read_number(root, "routed_scaling_factor", &config.router.scaling_factor);
}

// YaRN; the softmax is sharpened by m^2, m = 0.1 mscale_all_dim ln(factor) + 1.
Status read_yarn(const ConfigObject& scaling, MlaModelConfig& config, double& sharpening) {
  LOCKET_TRY_STATUS(scaling.string_of(scaling.has("rope_type") ? "rope_type" : "type", {"yarn"}));
  RotaryConfig& rotary = config.rotary;
  LOCKET_TRY(rotary.factor, positive_number(scaling, "factor"));
  LOCKET_TRY(rotary.beta_fast, positive_number(scaling, "beta_fast"));
  LOCKET_TRY(rotary.beta_slow, positive_number(scaling, "beta_slow"));
  LOCKET_TRY(rotary.original_context,
             scaling.integer_in("original_max_position_embeddings", kIdCount));
  rotary.steps = YarnSteps::kInverse;
  LOCKET_TRY(const double mscale, scaling.number("mscale"));
  LOCKET_TRY(const double all_dim, scaling.number("mscale_all_dim"));
  if (mscale != all_dim) {
    return refuse_unsupported(scaling, "mscale",
                              "as mscale_all_dim: rotations of another length are not there");
  }
  if (rotary.factor > 1) sharpening = 0.1 * all_dim * std::log(rotary.factor) + 1.0;
  return {};
}

Status read_rope(const ConfigObject& root, MlaModelConfig& config) {
  config.rotary.dim = config.rope_dim;
  LOCKET_TRY(config.rotary.base, root.number("rope_theta"));
  if (!(config.rotary.base > 1)) return root.refuse("rope_theta", "a number above 1");
  double sharpening = 1.0;
  if (root.has("rope_scaling")) {
    LOCKET_TRY(const ConfigObject scaling, root.object("rope_scaling"));
    LOCKET_TRY_STATUS(read_yarn(scaling, config, sharpening));
  }
  const auto query_dim = static_cast<double>(config.nope_dim + config.rope_dim);
  config.softmax_scale = static_cast<float>(sharpening * sharpening / std::sqrt(query_dim));
  return {};
}

}  // namespace

Result<MlaModelConfig> read_mla_config(const ConfigObject& root) {
  MlaModelConfig config;
  LOCKET_TRY_STATUS(read_sizes(root, config));
  LOCKET_TRY_STATUS(check_fixed(root, config));
  LOCKET_TRY_STATUS(read_rope(root, config));
  return config;
}

Status read_expert_groups(const ConfigObject& root, MlaModelConfig& config) {
  std::int64_t groups = 0;
  std::int64_t kept = 0;
  LOCKET_TRY_STATUS(read_integers(root, {{"n_group", &groups}, {"topk_group", &kept}}));
  if (config.expert_count % groups != 0) {
    return root.refuse("n_group", "a divisor of n_routed_experts");
  }
  const std::int64_t size = config.expert_count / groups;
  if (groups > 1 && config.router.group_score == GroupScore::kSumOfTwo && size < 2) {
    return root.refuse("n_group", "groups of at least two experts");
  }
  if (kept > groups || kept * size < static_cast<std::int64_t>(config.router.experts_per_token)) {
    return root.refuse("topk_group",
                       fmt::format("at most n_group, and groups of {} with num_experts_per_tok "
                                   "experts in all",
                                   size));
  }
  config.router.groups = static_cast<std::size_t>(groups);
  config.router.kept_groups = static_cast<std::size_t>(kept);
  return {};
}

Status read_balanced_router(const ConfigObject& root, MlaModelConfig& config) {
  LOCKET_TRY_STATUS(root.string_of("scoring_func", {"sigmoid"}));
  LOCKET_TRY_STATUS(root.string_of("topk_method", {"noaux_tc"}));
  LOCKET_TRY(const bool normalizes, root.boolean("norm_topk_prob"));
  if (!normalizes) return refuse_unsupported(root, "norm_topk_prob", "true");
  LOCKET_TRY_STATUS(
      read_integers(root, {{"num_nextn_predict_layers", &config.draft_layers, kNotNegative}}));
  config.router.score = RouterScore::kSigmoid;
  config.router.weighting = RouterWeighting::kNormalised;
  config.router.group_score = GroupScore::kSumOfTwo;
  config.router_bias = MlaModelConfig::RouterBias::kLearned;
  return read_expert_groups(root, config);
}

Status check_fp8_weights(const ConfigObject& root) {
  if (!root.has("quantization_config")) return {};
  LOCKET_TRY(const ConfigObject quantization, root.object("quantization_config"));
  LOCKET_TRY_STATUS(quantization.string_of("quant_method", {"fp8"}));
  LOCKET_TRY_STATUS(quantization.string_of("fmt", {"e4m3"}));
  LOCKET_TRY_STATUS(quantization.string_of("activation_scheme", {"dynamic"}));
  if (quantization.has("scale_fmt")) {
    LOCKET_TRY_STATUS(quantization.string_of("scale_fmt", {"ue8m0"}));
  }
  LOCKET_TRY(const auto tile, quantization.integer_list("weight_block_size"));
  if (tile != std::vector<std::int64_t>{128, 128}) {
    return refuse_unsupported(quantization, "weight_block_size", "[128, 128]");
  }
  return {};
}

Status read_indexer(const ConfigObject& root, MlaModelConfig& config) {
  LOCKET_TRY_STATUS(read_integers(root, {{"index_n_heads", &config.index_heads},
                                         {"index_head_dim", &config.index_dim},
                                         {"index_topk", &config.index_topk}}));
  if (!std::has_single_bit(static_cast<std::uint64_t>(config.index_dim)) ||
      config.index_dim < config.rope_dim) {
    return root.refuse("index_head_dim", "a power of two, at least qk_rope_head_dim,");
  }
  if (config.query_rank == 0) return refuse_unsupported(root, "q_lora_rank", "a number above 0");
  return {};
}

MlaConfig attention_config(const MlaModelConfig& config, std::int64_t layer) {
  const auto size = [](std::int64_t value) { return static_cast<std::size_t>(value); };
  MlaConfig attention = {.layer = layer,
                         .heads = size(config.head_count),
                         .nope_dim = size(config.nope_dim),
                         .rope_dim = size(config.rope_dim),
                         .value_dim = size(config.value_dim),
                         .latent_rank = size(config.latent_rank),
                         .norm_eps = config.rms_norm_eps,
                         .softmax_scale = config.softmax_scale};
  if (config.has_indexer()) {
    attention.indexer = DsaIndexerConfig{.heads = size(config.index_heads),
                                         .dim = size(config.index_dim),
                                         .rope_dim = size(config.rope_dim),
                                         .topk = size(config.index_topk)};
  }
  return attention;
}

MoeConfig moe_config(const MlaModelConfig& config, std::int64_t layer) {
  return {.layer = layer,
          .router = config.router,
          .swiglu_limit = std::numeric_limits<float>::infinity(),
          .expert_size = static_cast<std::size_t>(config.expert_size)};
}

MemoryFormats memory_formats(const MlaModelConfig& config, NumericsMode mode) {
  if (Numerics{.mode = mode}.quantizes_memory()) {
    return {.rows = config.served_rows,
            .index_keys = config.served_keys,
            .window = kernels::RowFormat::kF32};
  }
  return {.rows = kernels::RowFormat::kF32,
          .index_keys = kernels::RowFormat::kF32,
          .window = kernels::RowFormat::kF32};
}

}  // namespace locket::model
