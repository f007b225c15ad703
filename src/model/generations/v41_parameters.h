// What a DeepSeek-V4.1 model is made of, counted from its configuration alone: values of each part
// of each layer, and how many of them one token uses. A token of a prompt goes through the encoder
// and the row writers of the boundary layer, a generated token through every layer and the output
// head. Drafts and vision, which this program does not run, are not counted; neither are scales.
//
// Plain data, built anew by each call; thread-safe.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "model/generations/v41_config.h"

namespace locket::model {

// What parameters and work are grouped by. kAttention and kIndexScan have work and no parameters,
// kEmbedding, kEngramTables and kNorms parameters and no multiply-adds that are counted.
enum class ModelPart {
  kEmbedding,
  kEngramTables,
  kEngram,
  kHyperConnections,
  kNorms,
  kAttentionWeights,
  kAttention,
  kIndexer,
  kIndexScan,
  kRowWriters,
  kRouter,
  kRoutedExperts,
  kSharedExpert,
  kHead,
  kCount
};

// For tables: "routed experts".
std::string_view model_part_name(ModelPart part);

struct ParameterGroup {
  ModelPart part = ModelPart::kCount;
  std::int64_t layer = -1;      // -1: embedding, last norm, output head
  std::uint64_t stored = 0;     // values in the checkpoint
  std::uint64_t prompt = 0;     // of them, used by one token of a prompt
  std::uint64_t generated = 0;  // of them, used by one generated token
};

// Every group that holds something, layer by layer.
std::vector<ParameterGroup> v41_parameters(const V41Config& config);

}  // namespace locket::model
