#include "model/generations/v41_config.h"

#include <algorithm>
#include <fmt/format.h>

#include "cache/kv_layout.h"
#include "model/generations/config_keys.h"

namespace locket::model {
namespace {

using checkpoint::ConfigObject;

bool contains(const std::vector<std::int64_t>& list, std::int64_t value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

Status refuse(const ConfigObject& object, std::string_view key, std::string_view needed) {
  return object.refuse(key, needed);
}

// Keys whose only known value is the one that this program computes.
Status check_fixed(const ConfigObject& root, const ConfigObject& text) {
  LOCKET_TRY_STATUS(root.string_of("model_type", {"deepseek_v41"}));
  LOCKET_TRY_STATUS(text.string_of("model_type", {"deepseek_v41_text"}));
  LOCKET_TRY_STATUS(text.string_of("hidden_act", {"silu"}));
  LOCKET_TRY_STATUS(text.string_of("scoring_func", {"sqrtsoftplus"}));
  LOCKET_TRY_STATUS(text.string_of("topk_method", {"noaux_tc"}));
  LOCKET_TRY(const bool normalizes, text.boolean("norm_topk_prob"));
  if (!normalizes) return refuse(text, "norm_topk_prob", "true");
  LOCKET_TRY(const bool tied, text.boolean("tie_word_embeddings"));
  if (tied) return refuse(text, "tie_word_embeddings", "false");
  LOCKET_TRY(const std::int64_t kv_heads, text.integer("num_key_value_heads"));
  if (kv_heads != 1) return refuse(text, "num_key_value_heads", "1");
  LOCKET_TRY(const std::int64_t shared, text.integer("n_shared_experts"));
  if (shared != 1) return refuse(text, "n_shared_experts", "1");
  return {};
}

Status check_quantization(const ConfigObject& root) {
  if (!root.has("quantization_config")) return {};
  LOCKET_TRY(const ConfigObject quantization, root.object("quantization_config"));
  LOCKET_TRY_STATUS(quantization.string_of("quant_method", {"fp8"}));
  LOCKET_TRY_STATUS(quantization.string_of("activation_scheme", {"dynamic"}));
  LOCKET_TRY_STATUS(quantization.string_of("scale_fmt", {"ue8m0"}));
  LOCKET_TRY_STATUS(quantization.string_of("expert_dtype", {"fp4"}));
  LOCKET_TRY(const auto tile, quantization.integer_list("weight_block_size"));
  if (tile != std::vector<std::int64_t>{32, 32}) {
    return refuse(quantization, "weight_block_size", "[32, 32]");
  }
  return {};
}

Status read_rope(const ConfigObject& text, V41Config& config) {
  LOCKET_TRY(config.rope_theta, text.number("rope_theta"));
  LOCKET_TRY(config.compress_rope_theta, text.number("compress_rope_theta"));
  LOCKET_TRY(const ConfigObject scaling, text.object("rope_scaling"));
  LOCKET_TRY_STATUS(scaling.string_of("rope_type", {"yarn"}));
  LOCKET_TRY(config.yarn.factor, scaling.number("factor"));
  LOCKET_TRY(config.yarn.beta_fast, scaling.number("beta_fast"));
  LOCKET_TRY(config.yarn.beta_slow, scaling.number("beta_slow"));
  LOCKET_TRY(config.yarn.original_context,
             scaling.integer_in("original_max_position_embeddings", kIdOrNone));
  if (config.rope_theta <= 1) return refuse(text, "rope_theta", "a number above 1");
  if (config.compress_rope_theta <= 1) {
    return refuse(text, "compress_rope_theta", "a number above 1");
  }
  for (const auto& [key, value] :
       {std::pair{"factor", config.yarn.factor}, std::pair{"beta_fast", config.yarn.beta_fast},
        std::pair{"beta_slow", config.yarn.beta_slow}}) {
    if (value <= 0) return refuse(scaling, key, "a number above 0");
  }
  return {};
}

Status read_sizes(const ConfigObject& text, V41Config& config) {
  LOCKET_TRY_STATUS(
      read_integers(text, {{"vocab_size", &config.vocabulary_size, kIdCount},
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
                           {"index_n_heads", &config.index_head_count},
                           {"index_head_dim", &config.index_head_dim},
                           {"index_topk", &config.index_topk},
                           {"candidate_topk_blocks", &config.pool_blocks},
                           {"candidate_block_size", &config.pool_block_size},
                           {"hc_mult", &config.stream_count},
                           {"hc_sinkhorn_iters", &config.sinkhorn_iterations},
                           {"num_nextn_predict_layers", &config.draft_layer_count, kNotNegative}}));
  LOCKET_TRY_STATUS(read_number(text, "rms_norm_eps", &config.rms_norm_eps));
  LOCKET_TRY_STATUS(read_number(text, "swiglu_limit", &config.swiglu_limit));
  LOCKET_TRY_STATUS(read_number(text, "routed_scaling_factor", &config.routed_scaling_factor));
  return read_number(text, "hc_eps", &config.hc_eps);
}

// Widths that a quantizer takes in whole groups, and sizes that must fit each other.
Status check_sizes(const ConfigObject& text, const V41Config& config) {
  const std::pair<std::string_view, std::int64_t> widths[] = {
      {"hidden_size", config.hidden_size},
      {"q_lora_rank", config.q_lora_rank},
      {"head_dim", config.head_dim},
      {"index_head_dim", config.index_head_dim},
      {"moe_intermediate_size", config.expert_size},
      {"o_lora_rank", config.o_lora_rank}};
  for (const auto& [key, width] : widths) {
    if (width % 32 != 0) return refuse(text, key, "a multiple of 32");
  }
  if (config.rope_dim % 2 != 0 ||
      config.rope_dim > std::min(config.head_dim, config.index_head_dim)) {
    return refuse(text, "qk_rope_head_dim", "an even number, at most head_dim and index_head_dim,");
  }
  if (config.head_count % config.o_groups != 0) {
    return refuse(text, "o_groups", "a divisor of num_attention_heads");
  }
  if (config.experts_per_token > config.expert_count) {
    return refuse(text, "num_experts_per_tok", "at most n_routed_experts");
  }
  const std::int64_t pool_rows =
      (config.pool_blocks - 1) * config.pool_block_size + 1;  // the least that a pool can hold
  if (pool_rows < config.index_topk) {
    return refuse(
        text, "index_topk",
        fmt::format("at most {}, the rows that the candidate pool holds at least,", pool_rows));
  }
  return {};
}

Status read_engram(const ConfigObject& text, V41Config& config) {
  EngramHashConfig& engram = config.engram;
  LOCKET_TRY(engram.layer_ids, text.integer_list("engram_layer_ids"));
  LOCKET_TRY(engram.table_rows, text.integer_list("engram_num_embeddings"));
  LOCKET_TRY_STATUS(read_integers(
      text, {{"engram_max_ngram_size", &engram.max_ngram_size, kNotNegative},
             {"engram_n_heads", &engram.head_count, kNotNegative},
             {"engram_vocab_size", &engram.vocabulary_size, kIdOrNone},
             {"engram_head_dim", &config.engram_head_dim, kNotNegative},
             {"engram_compressed_vocab_size", &engram.compressed_vocabulary_size, kIdOrNone},
             {"engram_pad_token_id", &engram.pad_token_id, kIdOrNone}}));
  if (!engram.layer_ids.empty() &&
      (config.engram_head_dim == 0 || config.engram_head_dim % 32 != 0)) {
    return refuse(text, "engram_head_dim", "a multiple of 32 above 0");
  }
  return {};
}

struct LayerLists {
  std::vector<std::int64_t> ratios;
  std::vector<std::int64_t> kv_sources;
  std::vector<std::int64_t> index_sources;
};

Status check_layer_ids(const ConfigObject& text, std::string_view key,
                       const std::vector<std::int64_t>& ids, std::int64_t layer_count) {
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || ids[i] >= layer_count || (i > 0 && ids[i] <= ids[i - 1])) {
      return refuse(text, key,
                    fmt::format("a list of ascending layer numbers below {}", layer_count));
    }
  }
  return {};
}

Status read_layer_lists(const ConfigObject& text, const V41Config& config, LayerLists& lists) {
  LOCKET_TRY(lists.ratios, text.integer_list("compress_ratios"));
  LOCKET_TRY(lists.kv_sources, text.integer_list("kv_source_layer_ids"));
  LOCKET_TRY(lists.index_sources, text.integer_list("index_source_layer_ids"));
  const auto ratio_count = static_cast<std::int64_t>(lists.ratios.size());
  if (ratio_count != config.layer_count &&
      ratio_count != config.layer_count + config.draft_layer_count) {
    return refuse(text, "compress_ratios",
                  fmt::format("one entry per layer, {}, or {} with the draft layers,",
                              config.layer_count, config.layer_count + config.draft_layer_count));
  }
  for (std::int64_t layer = 0; layer < config.layer_count; ++layer) {
    const std::int64_t ratio = lists.ratios[static_cast<std::size_t>(layer)];
    if (ratio < 0 || (ratio > 0 && cache::kTokensPerPage % ratio != 0)) {
      return refuse(text, "compress_ratios",
                    fmt::format("0 or a divisor of {}, the tokens of a page, for layer {}",
                                cache::kTokensPerPage, layer));
    }
  }
  LOCKET_TRY_STATUS(
      check_layer_ids(text, "kv_source_layer_ids", lists.kv_sources, config.layer_count));
  LOCKET_TRY_STATUS(
      check_layer_ids(text, "index_source_layer_ids", lists.index_sources, config.layer_count));
  LOCKET_TRY_STATUS(
      check_layer_ids(text, "engram_layer_ids", config.engram.layer_ids, config.layer_count));
  if (lists.kv_sources.empty()) {
    return refuse(text, "kv_source_layer_ids", "at least one layer");
  }
  return {};
}

// Gives every layer its role; a layer with a ratio reads the newest sources at or before it.
Status assign_roles(const ConfigObject& text, const LayerLists& lists, V41Config& config) {
  config.boundary = lists.kv_sources.back();
  LOCKET_TRY(const std::int64_t pool_source, text.integer("candidate_source_layer_id"));
  if (pool_source != config.boundary || !contains(lists.index_sources, pool_source)) {
    return refuse(
        text, "candidate_source_layer_id",
        fmt::format("layer {}, the last KV source and also an index source,", config.boundary));
  }
  LayerRole current;
  for (std::int64_t layer = 0; layer < config.layer_count; ++layer) {
    LayerRole role;
    role.ratio = lists.ratios[static_cast<std::size_t>(layer)];
    role.writes_rows = contains(lists.kv_sources, layer);
    role.selects_rows = contains(lists.index_sources, layer);
    const auto& engram_ids = config.engram.layer_ids;
    const auto engram = std::find(engram_ids.begin(), engram_ids.end(), layer);
    if (engram != engram_ids.end()) role.engram_index = engram - engram_ids.begin();
    if (role.ratio == 0 && (role.writes_rows || role.selects_rows)) {
      return refuse(text, "compress_ratios",
                    fmt::format("a ratio above 0 for layer {}, which is a source,", layer));
    }
    if (role.writes_rows) current.kv_source = layer;
    if (role.selects_rows) current.index_source = layer;
    if (role.writes_rows && !role.selects_rows) {
      return refuse(text, "index_source_layer_ids",
                    fmt::format("layer {}, which writes rows and so must select them,", layer));
    }
    if (role.ratio > 0) {
      role.kv_source = current.kv_source;
      role.index_source = current.index_source;
      if (role.kv_source < 0 ||
          lists.ratios[static_cast<std::size_t>(role.kv_source)] != role.ratio) {
        return refuse(text, "compress_ratios",
                      fmt::format("for layer {} with ratio {} a KV source of that ratio before it",
                                  layer, role.ratio));
      }
    }
    role.builds_pool = layer == pool_source;
    role.uses_pool = role.selects_rows && layer > pool_source;
    config.layers.push_back(role);
  }
  return {};
}

// Keys of parts that are recognised and not loaded (drafts, vision), read so that they do not count
// as unknown.
void read_ignored(const ConfigObject& root, const ConfigObject& text) {
  for (const std::string_view key :
       {"dspark_block_size", "dspark_noise_token_id", "dspark_target_layer_ids",
        "dspark_markov_rank", "dspark_n_routed_experts", "dspark_num_experts_per_tok",
        "bos_token_id", "eos_token_id", "pad_token_id"}) {
    static_cast<void>(text.has(key));
    static_cast<void>(text.integer(key));
  }
  static_cast<void>(root.string_list("architectures"));
  static_cast<void>(root.integer("image_token_id"));
  static_cast<void>(root.integer("pad_token_id"));
  static_cast<void>(root.boolean("tie_word_embeddings"));
  if (const auto vision = root.object("vision_config")) {
    for (const std::string_view key :
         {"model_type", "num_hidden_layers", "hidden_size", "num_attention_heads",
          "intermediate_size", "patch_size", "rope_theta", "downsample_ratio", "max_image_tokens",
          "min_pixels", "max_wh_ratio"}) {
      static_cast<void>(vision->integer(key));
    }
  }
}

}  // namespace

std::vector<std::int64_t> V41Config::row_writers() const {
  std::vector<std::int64_t> writers;
  for (std::int64_t layer = 0; layer < layer_count; ++layer) {
    if (layers[static_cast<std::size_t>(layer)].writes_rows) writers.push_back(layer);
  }
  return writers;
}

Result<V41Config> read_v41_config(const ConfigObject& root) {
  LOCKET_TRY(const ConfigObject text, root.object("text_config"));
  LOCKET_TRY_STATUS(check_fixed(root, text));
  LOCKET_TRY_STATUS(check_quantization(root));
  V41Config config;
  LOCKET_TRY_STATUS(read_sizes(text, config));
  LOCKET_TRY_STATUS(check_sizes(text, config));
  LOCKET_TRY_STATUS(read_rope(text, config));
  LOCKET_TRY_STATUS(read_engram(text, config));
  LayerLists lists;
  LOCKET_TRY_STATUS(read_layer_lists(text, config, lists));
  LOCKET_TRY_STATUS(assign_roles(text, lists, config));
  read_ignored(root, text);
  const ConfigObject& ids = root.has("eos_token_id") ? root : text;
  LOCKET_TRY(config.bos_token_id, ids.integer_in("bos_token_id", kIdOrNone));
  LOCKET_TRY(config.eos_token_id, ids.integer_in("eos_token_id", kIdOrNone));
  return config;
}

}  // namespace locket::model
