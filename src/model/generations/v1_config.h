// What the config.json of a DeepSeek LLM (V1) says, checked. V1 is the plain Llama architecture,
// and any other model of it without scaled rotations and biases runs the same way (SmolLM2).
#pragma once

#include <cstdint>

#include "base/result.h"
#include "checkpoint/config_json.h"

namespace locket::model {

struct V1Config {
  std::int64_t vocabulary_size = 0;
  std::int64_t hidden_size = 0;
  std::int64_t layer_count = 0;
  std::int64_t head_count = 0;
  std::int64_t kv_head_count = 0;
  std::int64_t head_dim = 0;
  std::int64_t ffn_size = 0;
  std::int64_t max_positions = 0;
  std::int64_t bos_token_id = -1;  // -1: none
  std::int64_t eos_token_id = -1;
  double rope_theta = 0;
  float rms_norm_eps = 0;
  bool ties_embeddings = false;  // the head is the embedding
};

// kBadCheckpoint names the key, the value and what is needed; kUnsupported for known keys with
// values that this program does not have. Keys that the architecture got after the first releases
// have its published defaults: num_key_value_heads (all heads), head_dim, rope_theta (10000),
// tie_word_embeddings (false).
[[nodiscard]] Result<V1Config> read_v1_config(const checkpoint::ConfigObject& root);

}  // namespace locket::model
