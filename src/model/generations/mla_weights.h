// The weights of a model with latent attention under their released names (V2, V3, V3.2), and how
// they are loaded. Layers behind the last are drafts: recognised and left unread. Everything else
// must be there, and nothing else may be.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/dense_ffn.h"
#include "model/embedding.h"
#include "model/expert_source.h"
#include "model/generations/mla_config.h"
#include "model/generations/weight_reader.h"
#include "model/mla_attention.h"
#include "model/moe.h"

namespace locket::model {

struct MlaLayerWeights {
  std::vector<float> attention_norm;  // [hidden]
  std::vector<float> ffn_norm;        // [hidden]
  MlaWeights attention;
  std::optional<DenseFfnWeights> dense;  // instead of experts
  MoeWeights moe;
};

struct MlaModelWeights {
  EmbeddingWeights embedding;
  std::vector<MlaLayerWeights> layers;
  OutputHeadWeights head;
  std::unique_ptr<ExpertSource> experts;  // the routed experts of all layers
};

struct LoadedMlaWeights {
  MlaModelWeights weights;
  std::string skipped;  // one line about tensors that were recognised and not loaded; may be empty
};

bool is_routed_expert(std::string_view tensor);
// "model.layers.61." of every draft layer.
std::vector<std::string> draft_prefixes(const MlaModelConfig& config);

// The key and value projections of all heads, [heads * (nope + value), rank] with a head's keys
// first, as attention takes them: bfloat16 where that is exact, else float32.
[[nodiscard]] Status split_heads(const kernels::WeightMatrix& projections, const MlaConfig& config,
                                 MlaWeights& weights);

// kBadCheckpoint names the tensor, the file, what was found and what is wanted.
[[nodiscard]] Result<LoadedMlaWeights> load_mla_weights(const MlaModelConfig& config,
                                                        WeightReader& reader);

}  // namespace locket::model
