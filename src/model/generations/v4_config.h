// What a DeepSeek-V4 config.json (V4-Flash, V4-Pro) says, checked, and the kind of every layer.
// Nothing has a default; a known key with a value that is not known is refused. Plain data.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "checkpoint/config_json.h"
#include "model/rotary_table.h"

namespace locket::model {

// What a layer reads besides its window.
enum class V4LayerKind {
  kWindow,  // nothing
  kChosen,  // CSA: rows of overlapping blocks of 4 tokens, chosen by an indexer
  kAll,     // HCA: all rows of blocks of 128 tokens
  kCount
};

struct V4Config {
  std::int64_t vocabulary_size = 0;
  std::int64_t hidden_size = 0;
  std::int64_t layer_count = 0;
  std::int64_t head_count = 0;
  std::int64_t head_dim = 0;
  std::int64_t rope_dim = 0;
  std::int64_t q_lora_rank = 0;
  std::int64_t o_lora_rank = 0;
  std::int64_t o_groups = 0;
  std::int64_t sliding_window = 0;
  std::int64_t max_positions = 0;
  RotaryConfig plain_rope;       // of window layers
  RotaryConfig compressed_rope;  // of the others, YaRN
  float rms_norm_eps = 0;
  float swiglu_limit = 0;

  std::int64_t expert_count = 0;
  std::int64_t experts_per_token = 0;
  std::int64_t expert_size = 0;       // moe_intermediate_size
  std::int64_t hash_layer_count = 0;  // first layers, which choose experts by token id
  float routed_scaling_factor = 0;

  std::int64_t index_head_count = 0;
  std::int64_t index_head_dim = 0;
  std::int64_t index_topk = 0;

  std::int64_t stream_count = 0;  // hc_mult
  std::int64_t sinkhorn_iterations = 0;
  float hc_eps = 0;

  std::int64_t bos_token_id = 0;
  std::int64_t eos_token_id = 0;

  std::vector<V4LayerKind> layers;  // [layer_count]

  V4LayerKind kind(std::int64_t layer) const { return layers[static_cast<std::size_t>(layer)]; }
  bool routes_by_token(std::int64_t layer) const { return layer < hash_layer_count; }
};

// Tokens of a row; 0: the layer has none.
std::int64_t v4_ratio(V4LayerKind kind);

// kBadCheckpoint names the key, the value and what is needed; kUnsupported for known keys with
// values that this program does not have.
[[nodiscard]] Result<V4Config> read_v4_config(const checkpoint::ConfigObject& root);

}  // namespace locket::model
