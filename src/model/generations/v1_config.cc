#include "model/generations/v1_config.h"

#include <fmt/format.h>
#include <string_view>

#include "model/generations/config_keys.h"

namespace locket::model {
namespace {

using checkpoint::ConfigObject;

constexpr double kFirstTheta = 10000;  // of releases before the key

// A key that may be missing, and whose only known value is false.
Status require_false(const ConfigObject& root, std::string_view key) {
  if (!root.has(key)) return {};
  LOCKET_TRY(const bool value, root.boolean(key));
  if (value) return refuse_unsupported(root, key, "false");
  return {};
}

Status require_none(const ConfigObject& root, std::string_view key, std::string_view needed) {
  if (!root.has(key)) return {};
  return refuse_unsupported(root, key, needed);
}

Status check_fixed(const ConfigObject& root) {
  LOCKET_TRY_STATUS(root.string_of("model_type", {"llama"}));
  LOCKET_TRY_STATUS(root.string_of("hidden_act", {"silu"}));
  LOCKET_TRY_STATUS(require_false(root, "attention_bias"));
  LOCKET_TRY_STATUS(require_false(root, "mlp_bias"));
  LOCKET_TRY_STATUS(require_none(root, "rope_scaling", "null: rotations are not scaled"));
  return require_none(root, "quantization_config",
                      "no such key: weights in BF16, F16 or F32, or a GGUF file");
}

Result<double> read_theta(const ConfigObject& root) {
  ConfigObject place = root;
  if (root.has("rope_parameters")) {
    LOCKET_TRY(place, root.object("rope_parameters"));
    LOCKET_TRY_STATUS(place.string_of("rope_type", {"default"}));
  }
  if (!place.has("rope_theta")) return kFirstTheta;
  LOCKET_TRY(const double theta, place.number("rope_theta"));
  if (!(theta > 1)) return place.refuse("rope_theta", "a number above 1");
  return theta;
}

Result<std::int64_t> read_id(const ConfigObject& root, std::string_view key) {
  if (!root.has(key)) return -1;
  return root.integer_in(key, kIdOrNone);
}

Status read_sizes(const ConfigObject& root, V1Config& config) {
  LOCKET_TRY(config.vocabulary_size, root.integer_in("vocab_size", kIdCount));
  LOCKET_TRY(config.hidden_size, root.integer_in("hidden_size", kPositive));
  LOCKET_TRY(config.layer_count, root.integer_in("num_hidden_layers", kPositive));
  LOCKET_TRY(config.head_count, root.integer_in("num_attention_heads", kPositive));
  LOCKET_TRY(config.ffn_size, root.integer_in("intermediate_size", kPositive));
  LOCKET_TRY(config.max_positions, root.integer_in("max_position_embeddings", kIdCount));
  config.kv_head_count = config.head_count;
  if (root.has("num_key_value_heads")) {
    LOCKET_TRY(config.kv_head_count, root.integer_in("num_key_value_heads", kPositive));
  }
  if (config.head_count % config.kv_head_count != 0) {
    return root.refuse("num_key_value_heads", "a divisor of num_attention_heads");
  }
  if (root.has("head_dim")) {
    LOCKET_TRY(config.head_dim, root.integer_in("head_dim", kPositive));
  } else if (config.hidden_size % config.head_count != 0) {
    return root.refuse("num_attention_heads", "a divisor of hidden_size");
  } else {
    config.head_dim = config.hidden_size / config.head_count;
  }
  if (config.head_dim % 2 != 0) {
    return root.refuse(root.has("head_dim") ? "head_dim" : "hidden_size",
                       fmt::format("an even head_dim, not {},", config.head_dim));
  }
  return {};
}

// Keys that say nothing about what is computed, read so that they do not count as unknown.
void read_ignored(const ConfigObject& root) {
  for (const std::string_view key :
       {"pad_token_id", "attention_dropout", "initializer_range", "pretraining_tp", "use_cache",
        "torch_dtype", "dtype", "transformers_version", "architectures"}) {
    if (root.has(key)) static_cast<void>(root.integer(key));
  }
}

}  // namespace

Result<V1Config> read_v1_config(const ConfigObject& root) {
  LOCKET_TRY_STATUS(check_fixed(root));
  V1Config config;
  LOCKET_TRY_STATUS(read_sizes(root, config));
  LOCKET_TRY(config.rope_theta, read_theta(root));
  LOCKET_TRY_STATUS(read_number(root, "rms_norm_eps", &config.rms_norm_eps));
  LOCKET_TRY(config.bos_token_id, read_id(root, "bos_token_id"));
  LOCKET_TRY(config.eos_token_id, read_id(root, "eos_token_id"));
  if (root.has("tie_word_embeddings")) {
    LOCKET_TRY(config.ties_embeddings, root.boolean("tie_word_embeddings"));
  }
  read_ignored(root);
  return config;
}

}  // namespace locket::model
