// What the config.json of a model with latent attention says (V2, V3, V3.2), checked: the keys that
// these generations share, and the mechanisms that a generation composes from the others. Plain
// data.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "checkpoint/config_json.h"
#include "kernels/row_codec.h"
#include "model/dsa_indexer.h"
#include "model/generations/config_keys.h"
#include "model/mla_attention.h"
#include "model/moe.h"
#include "model/numerics_mode.h"
#include "model/rotary_table.h"

namespace locket::model {

struct MlaModelConfig {
  std::string generation;  // "V2", as ModelShape::generation
  std::int64_t vocabulary_size = 0;
  std::int64_t hidden_size = 0;
  std::int64_t layer_count = 0;
  std::int64_t head_count = 0;
  std::int64_t query_rank = 0;  // 0: queries come straight from the input
  std::int64_t latent_rank = 0;
  std::int64_t nope_dim = 0;
  std::int64_t rope_dim = 0;
  std::int64_t value_dim = 0;
  std::int64_t max_positions = 0;
  std::int64_t bos_token_id = 0;
  std::int64_t eos_token_id = 0;
  float rms_norm_eps = 0;
  RotaryConfig rotary;
  float softmax_scale = 0;

  std::int64_t dense_layers = 0;  // the first ones, without experts
  std::int64_t ffn_size = 0;      // of those
  std::int64_t expert_count = 0;
  std::int64_t expert_size = 0;
  std::int64_t shared_experts = 0;  // joined to one of so many times expert_size
  RouterConfig router;
  enum class RouterBias { kNone, kLearned } router_bias = RouterBias::kNone;

  std::int64_t index_heads = 0;  // 0: no indexer
  std::int64_t index_dim = 0;
  std::int64_t index_topk = 0;
  std::int64_t draft_layers = 0;  // behind the others; recognised, not loaded

  // Of the memory as the generation is served.
  kernels::RowFormat served_rows = kernels::RowFormat::kBf16;
  kernels::RowFormat served_keys = kernels::RowFormat::kFp8Index;

  std::int64_t row_width() const { return latent_rank + rope_dim; }
  bool has_indexer() const { return index_heads > 0; }
};

// The keys that all of these generations have: sizes, rotations, experts but for their router.
// kBadCheckpoint names the key, the value and what is needed; kUnsupported for known keys with
// values that this program does not have.
[[nodiscard]] Result<MlaModelConfig> read_mla_config(const checkpoint::ConfigObject& root);

// Groups of experts: `n_group` and `topk_group`, once the score of a group is set.
[[nodiscard]] Status read_expert_groups(const checkpoint::ConfigObject& root,
                                        MlaModelConfig& config);

// The router of V3: sigmoid scores, a learned bias for the choice, a group's two best experts,
// normalised weights; and the number of draft layers.
[[nodiscard]] Status read_balanced_router(const checkpoint::ConfigObject& root,
                                          MlaModelConfig& config);

// A quantization_config of FP8 in 128 x 128 tiles with float32 scales; none for plain weights.
[[nodiscard]] Status check_fp8_weights(const checkpoint::ConfigObject& root);

// Index heads, width and count of chosen tokens, for a generation with an indexer.
[[nodiscard]] Status read_indexer(const checkpoint::ConfigObject& root, MlaModelConfig& config);

// What each mechanism of a layer needs to know.
MlaConfig attention_config(const MlaModelConfig& config, std::int64_t layer);
MoeConfig moe_config(const MlaModelConfig& config, std::int64_t layer);
MemoryFormats memory_formats(const MlaModelConfig& config, NumericsMode mode);

}  // namespace locket::model
