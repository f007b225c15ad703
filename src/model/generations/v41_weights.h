// The weights of a V4.1 model under their released names, and how they are loaded. What the text
// path does not need (drafts, vision) is recognised and left unread; everything else must be there,
// and nothing else may be.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/compressor.h"
#include "model/csa2_attention.h"
#include "model/embedding.h"
#include "model/engram.h"
#include "model/expert_placement.h"
#include "model/expert_source.h"
#include "model/generations/v41_config.h"
#include "model/generations/weight_reader.h"
#include "model/hyper_connections.h"
#include "model/moe.h"
#include "model/streamed_experts.h"

namespace locket::model {

struct V41LayerWeights {
  std::vector<float> attention_norm;  // [hidden]
  std::vector<float> ffn_norm;        // [hidden]
  HyperConnectionsWeights attention_site;
  HyperConnectionsWeights ffn_site;
  Csa2Weights attention;
  std::optional<CompressorWeights> compressor;  // KV sources
  MoeWeights moe;
  std::optional<EngramWeights> engram;
  std::optional<EngramTable> engram_table;
};

struct V41Weights {
  EmbeddingWeights embedding;
  std::vector<V41LayerWeights> layers;
  OutputHeadWeights head;
  std::unique_ptr<ExpertSource> experts;  // the routed experts of all layers
  StreamedExperts* streamed = nullptr;    // the same, if they stay on disk
};

struct LoadedV41Weights {
  V41Weights weights;
  std::string skipped;  // one line about tensors that were recognised and not loaded; may be empty
};

// Tensors that may stay on disk, read piece by piece: routed experts and Engram tables.
bool is_streamed_v41_tensor(std::string_view name);
// Tensors that are recognised and left unread: drafts, vision.
bool is_skipped_v41_tensor(std::string_view name);

// kBadCheckpoint names the tensor, the file, what was found and what is wanted.
[[nodiscard]] Result<LoadedV41Weights> load_v41_weights(const V41Config& config,
                                                        WeightReader& reader,
                                                        const ExpertPlacement& placement = {});

}  // namespace locket::model
