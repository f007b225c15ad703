// What a DeepSeek-V4.1 config.json says, checked, and the roles of the layers that follow from it.
// Composite layout: model_type and quantization_config at the top, sizes in text_config. Nothing
// has a default; a known key with a value that is not known is refused.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "checkpoint/config_json.h"
#include "model/engram_hash.h"

namespace locket::model {

// YaRN of the layers with compressed rows; original_context 0 turns it off.
struct YarnConfig {
  double factor = 1.0;
  double beta_fast = 32.0;
  double beta_slow = 1.0;
  std::int64_t original_context = 0;
};

// What one layer does with the memory (report 4.2.1: Full, Reindex, Reuse).
struct LayerRole {
  std::int64_t ratio = 0;          // tokens per compressed row; 0: window attention only
  std::int64_t kv_source = -1;     // layer whose rows and keys it reads; -1: none
  std::int64_t index_source = -1;  // layer whose selection it uses; -1: none
  std::int64_t engram_index = -1;  // position in engram_layer_ids; -1: none
  bool writes_rows = false;        // is a KV source
  bool selects_rows = false;       // is an index source
  bool builds_pool = false;        // publishes the candidate pool
  bool uses_pool = false;          // its selection is restricted to the pool
};

struct V41Config {
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
  double rope_theta = 0;
  double compress_rope_theta = 0;
  YarnConfig yarn;
  float rms_norm_eps = 0;
  float swiglu_limit = 0;

  std::int64_t expert_count = 0;
  std::int64_t experts_per_token = 0;
  std::int64_t expert_size = 0;  // moe_intermediate_size
  float routed_scaling_factor = 0;

  std::int64_t index_head_count = 0;
  std::int64_t index_head_dim = 0;
  std::int64_t index_topk = 0;
  std::int64_t pool_blocks = 0;      // candidate_topk_blocks
  std::int64_t pool_block_size = 0;  // candidate_block_size

  std::int64_t stream_count = 0;  // hc_mult
  std::int64_t sinkhorn_iterations = 0;
  float hc_eps = 0;

  std::int64_t engram_head_dim = 0;
  EngramHashConfig engram;

  std::int64_t draft_layer_count = 0;  // recognised, not loaded
  std::int64_t bos_token_id = 0;
  std::int64_t eos_token_id = 0;

  std::vector<LayerRole> layers;  // [layer_count]
  std::int64_t boundary = 0;      // first decoder layer: the last KV source

  // Layers that write rows, ascending.
  std::vector<std::int64_t> row_writers() const;
};

// kBadCheckpoint names the key, the value and what is needed; kUnsupported for known keys with
// values that this program does not have. Keys that nobody reads can be listed with
// config.unread_keys().
[[nodiscard]] Result<V41Config> read_v41_config(const checkpoint::ConfigObject& root);

}  // namespace locket::model
