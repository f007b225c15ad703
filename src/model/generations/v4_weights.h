// The weights of a V4 model under their released names, and how they are loaded. Drafts (mtp.*) are
// recognised and left unread; everything else must be there, and nothing else may be.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/block_compressor.h"
#include "model/csa2_attention.h"
#include "model/embedding.h"
#include "model/expert_placement.h"
#include "model/expert_source.h"
#include "model/generations/v4_config.h"
#include "model/generations/weight_reader.h"
#include "model/hyper_connections.h"
#include "model/router.h"
#include "model/streamed_experts.h"
#include "model/token_router.h"

namespace locket::model {

struct V4LayerWeights {
  std::vector<float> attention_norm;  // [hidden]
  std::vector<float> ffn_norm;        // [hidden]
  HyperConnectionsWeights attention_site;
  HyperConnectionsWeights ffn_site;
  Csa2Weights attention;
  std::optional<BlockCompressorWeights> rows;  // CSA and HCA layers
  std::optional<BlockCompressorWeights> keys;  // CSA layers
  std::optional<RouterWeights> router;
  std::optional<TokenRouterWeights> token_router;  // in place of the router, first layers
  ExpertWeights shared;
};

struct V4Weights {
  EmbeddingWeights embedding;
  std::vector<V4LayerWeights> layers;
  HyperConnectionsWeights head_site;  // collapse alone
  OutputHeadWeights head;
  std::unique_ptr<ExpertSource> experts;  // the routed experts of all layers
  StreamedExperts* streamed = nullptr;    // the same, if they stay on disk
};

struct LoadedV4Weights {
  V4Weights weights;
  std::string skipped;  // one line about tensors that were recognised and not loaded; may be empty
};

// Routed experts.
bool is_streamed_v4_tensor(std::string_view name);
// Tensors that are recognised and left unread: drafts.
bool is_skipped_v4_tensor(std::string_view name);

// kBadCheckpoint names the tensor, the file, what was found and what is wanted.
// REQUIRES: the reader takes FP8 scales per 128 x 128.
[[nodiscard]] Result<LoadedV4Weights> load_v4_weights(const V4Config& config, WeightReader& reader,
                                                      const ExpertPlacement& placement = {});

}  // namespace locket::model
