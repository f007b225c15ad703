#include "model/generations/v4_config.h"

#include <algorithm>
#include <bit>
#include <fmt/format.h>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "cache/kv_layout.h"
#include "model/generations/config_keys.h"

namespace locket::model {
namespace {

using checkpoint::ConfigObject;

constexpr std::int64_t kChosenRatio = 4;
constexpr std::int64_t kAllRatio = 128;

// A switch whose other position this program does not have, if it is there.
Status check_switch(const ConfigObject& root, std::string_view key, std::string_view needed) {
  if (!root.has(key)) return {};
  LOCKET_TRY(const bool value, root.boolean(key));
  if (value != (needed == "true")) return root.refuse(key, needed);
  return {};
}

// Keys whose only known value is the one that this program computes.
Status check_fixed(const ConfigObject& root) {
  LOCKET_TRY_STATUS(root.string_of("model_type", {"deepseek_v4"}));
  LOCKET_TRY_STATUS(root.string_of("hidden_act", {"silu"}));
  LOCKET_TRY_STATUS(root.string_of("scoring_func", {"sqrtsoftplus"}));
  LOCKET_TRY_STATUS(root.string_of("topk_method", {"noaux_tc"}));
  LOCKET_TRY_STATUS(check_switch(root, "norm_topk_prob", "true"));
  LOCKET_TRY_STATUS(check_switch(root, "tie_word_embeddings", "false"));
  LOCKET_TRY_STATUS(check_switch(root, "attention_bias", "false"));
  LOCKET_TRY(const std::int64_t kv_heads, root.integer("num_key_value_heads"));
  if (kv_heads != 1) return root.refuse("num_key_value_heads", "1");
  LOCKET_TRY(const std::int64_t shared, root.integer("n_shared_experts"));
  if (shared != 1) return root.refuse("n_shared_experts", "1");
  return {};
}

Status check_quantization(const ConfigObject& root) {
  if (root.has("expert_dtype")) {
    LOCKET_TRY_STATUS(root.string_of("expert_dtype", {"fp4", "fp8"}));
  }
  if (!root.has("quantization_config")) return {};
  LOCKET_TRY(const ConfigObject quantization, root.object("quantization_config"));
  LOCKET_TRY_STATUS(quantization.string_of("quant_method", {"fp8"}));
  LOCKET_TRY_STATUS(quantization.string_of("activation_scheme", {"dynamic"}));
  LOCKET_TRY_STATUS(quantization.string_of("scale_fmt", {"ue8m0"}));
  if (quantization.has("fmt")) LOCKET_TRY_STATUS(quantization.string_of("fmt", {"e4m3"}));
  LOCKET_TRY(const auto tile, quantization.integer_list("weight_block_size"));
  if (tile != std::vector<std::int64_t>{128, 128}) {
    return quantization.refuse("weight_block_size", "[128, 128]");
  }
  return {};
}

Status read_rope(const ConfigObject& root, V4Config& config) {
  config.plain_rope = {.dim = config.rope_dim};
  config.compressed_rope = {.dim = config.rope_dim};
  LOCKET_TRY(config.plain_rope.base, root.number("rope_theta"));
  LOCKET_TRY(config.compressed_rope.base, root.number("compress_rope_theta"));
  for (const auto& [key, base] : {std::pair{"rope_theta", config.plain_rope.base},
                                  std::pair{"compress_rope_theta", config.compressed_rope.base}}) {
    if (!(base > 1)) return root.refuse(key, "a number above 1");
  }
  LOCKET_TRY(const ConfigObject scaling, root.object("rope_scaling"));
  const std::string_view type = scaling.has("rope_type") ? "rope_type" : "type";
  LOCKET_TRY_STATUS(scaling.string_of(type, {"yarn"}));
  RotaryConfig& yarn = config.compressed_rope;
  LOCKET_TRY(yarn.factor, scaling.number("factor"));
  LOCKET_TRY(yarn.beta_fast, scaling.number("beta_fast"));
  LOCKET_TRY(yarn.beta_slow, scaling.number("beta_slow"));
  LOCKET_TRY(yarn.original_context,
             scaling.integer_in("original_max_position_embeddings", kIdCount));
  for (const auto& [key, value] :
       {std::pair{"factor", yarn.factor}, std::pair{"beta_fast", yarn.beta_fast},
        std::pair{"beta_slow", yarn.beta_slow}}) {
    if (!(value > 0)) return scaling.refuse(key, "a number above 0");
  }
  for (const std::string_view key : {"mscale", "mscale_all_dim"}) {
    if (scaling.has(key)) return scaling.refuse(key, "no such key");
  }
  return {};
}

Status read_sizes(const ConfigObject& root, V4Config& config) {
  LOCKET_TRY_STATUS(
      read_integers(root, {{"vocab_size", &config.vocabulary_size, kIdCount},
                           {"hidden_size", &config.hidden_size},
                           {"num_hidden_layers", &config.layer_count},
                           {"num_attention_heads", &config.head_count},
                           {"head_dim", &config.head_dim},
                           {"qk_rope_head_dim", &config.rope_dim},
                           {"q_lora_rank", &config.q_lora_rank},
                           {"o_lora_rank", &config.o_lora_rank},
                           {"o_groups", &config.o_groups},
                           {"sliding_window", &config.sliding_window},
                           {"max_position_embeddings", &config.max_positions, kIdCount},
                           {"n_routed_experts", &config.expert_count},
                           {"num_experts_per_tok", &config.experts_per_token},
                           {"moe_intermediate_size", &config.expert_size},
                           {"num_hash_layers", &config.hash_layer_count, kNotNegative},
                           {"index_n_heads", &config.index_head_count},
                           {"index_head_dim", &config.index_head_dim},
                           {"index_topk", &config.index_topk},
                           {"hc_mult", &config.stream_count},
                           {"hc_sinkhorn_iters", &config.sinkhorn_iterations},
                           {"bos_token_id", &config.bos_token_id, kIdOrNone},
                           {"eos_token_id", &config.eos_token_id, kIdOrNone}}));
  LOCKET_TRY_STATUS(read_number(root, "rms_norm_eps", &config.rms_norm_eps));
  LOCKET_TRY_STATUS(read_number(root, "swiglu_limit", &config.swiglu_limit));
  LOCKET_TRY_STATUS(read_number(root, "routed_scaling_factor", &config.routed_scaling_factor));
  return read_number(root, "hc_eps", &config.hc_eps);
}

// Widths that a quantizer takes in whole groups, and sizes that must fit each other.
Status check_sizes(const ConfigObject& root, const V4Config& config) {
  constexpr std::int64_t kRowGroup = 64;
  const std::int64_t plain_dims = config.head_dim - config.rope_dim;
  if (config.rope_dim % 2 != 0 || config.rope_dim > kRowGroup ||
      config.rope_dim > config.index_head_dim) {
    return root.refuse("qk_rope_head_dim",
                       "an even number, at most 64 and at most index_head_dim,");
  }
  if (plain_dims < kRowGroup || plain_dims % kRowGroup != 0) {
    return root.refuse("head_dim", "qk_rope_head_dim and a multiple of 64 above it");
  }
  if (config.index_head_dim % 32 != 0 ||
      !std::has_single_bit(static_cast<std::uint64_t>(config.index_head_dim))) {
    return root.refuse("index_head_dim", "a power of two, at least 32,");
  }
  if (config.hidden_size % 32 != 0) return root.refuse("hidden_size", "a multiple of 32");
  if (config.expert_size % 32 != 0) return root.refuse("moe_intermediate_size", "a multiple of 32");
  if (config.head_count % config.o_groups != 0) {
    return root.refuse("o_groups", "a divisor of num_attention_heads");
  }
  if (config.experts_per_token > config.expert_count) {
    return root.refuse("num_experts_per_tok", "at most n_routed_experts");
  }
  // A start without rings is exact only if the window reaches over a block and its predecessor.
  if (config.sliding_window <= kChosenRatio) {
    return root.refuse("sliding_window", "more than 4, the tokens of a block");
  }
  return {};
}

// Entries behind the last layer belong to drafts, which have windows only.
Status read_layers(const ConfigObject& root, V4Config& config) {
  LOCKET_TRY(const std::vector<std::int64_t> ratios, root.integer_list("compress_ratios"));
  const auto layers = static_cast<std::size_t>(config.layer_count);
  if (ratios.size() < layers) {
    return root.refuse("compress_ratios", fmt::format("one entry per layer, {},", layers));
  }
  for (std::size_t layer = 0; layer < ratios.size(); ++layer) {
    const std::int64_t ratio = ratios[layer];
    if (layer >= layers) {
      if (ratio != 0) {
        return root.refuse("compress_ratios",
                           fmt::format("0 in every entry behind the first {}", layers));
      }
      continue;
    }
    if (ratio != 0 && ratio != kChosenRatio && ratio != kAllRatio) {
      return root.refuse("compress_ratios", fmt::format("0, 4 or 128 for layer {}", layer));
    }
    config.layers.push_back(ratio == 0              ? V4LayerKind::kWindow
                            : ratio == kChosenRatio ? V4LayerKind::kChosen
                                                    : V4LayerKind::kAll);
  }
  return {};
}

// Keys of training and of drafts, which are recognised and not loaded; read so that they do not
// count as unknown.
void read_ignored(const ConfigObject& root) {
  for (const std::string_view key :
       {"num_nextn_predict_layers", "pad_token_id", "attention_dropout", "initializer_range",
        "use_cache", "torch_dtype", "dtype", "transformers_version", "dspark_block_size",
        "dspark_noise_token_id", "dspark_target_layer_ids", "dspark_markov_rank"}) {
    static_cast<void>(root.has(key));
    static_cast<void>(root.integer(key));
  }
  static_cast<void>(root.string_list("architectures"));
}

}  // namespace

std::int64_t v4_ratio(V4LayerKind kind) {
  switch (kind) {
    case V4LayerKind::kWindow:
      return 0;
    case V4LayerKind::kChosen:
      return kChosenRatio;
    case V4LayerKind::kAll:
      return kAllRatio;
    case V4LayerKind::kCount:
      break;
  }
  LOCKET_CHECK(false);
}

Result<V4Config> read_v4_config(const ConfigObject& root) {
  static_assert(cache::kTokensPerPage % kAllRatio == 0 &&
                cache::kTokensPerPage % kChosenRatio == 0);
  LOCKET_TRY_STATUS(check_fixed(root));
  LOCKET_TRY_STATUS(check_quantization(root));
  V4Config config;
  LOCKET_TRY_STATUS(read_sizes(root, config));
  LOCKET_TRY_STATUS(check_sizes(root, config));
  LOCKET_TRY_STATUS(read_rope(root, config));
  LOCKET_TRY_STATUS(read_layers(root, config));
  read_ignored(root);
  return config;
}

}  // namespace locket::model
