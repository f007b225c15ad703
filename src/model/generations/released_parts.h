// Parts of V4 and V4.1 that have the same names and shapes in both releases, read; and experts,
// which every generation with experts has. Errors as WeightReader.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/csa2_attention.h"
#include "model/expert_load.h"
#include "model/expert_source.h"
#include "model/generations/weight_reader.h"
#include "model/hyper_connections.h"

namespace locket::model {

// The matrices of an expert under its prefix.
struct ExpertNames {
  std::string_view gate;
  std::string_view up;
  std::string_view down;
};
inline constexpr ExpertNames kShortExpertNames = {.gate = "w1", .up = "w3", .down = "w2"};
inline constexpr ExpertNames kLongExpertNames = {
    .gate = "gate_proj", .up = "up_proj", .down = "down_proj"};

// gate and up [size, hidden], down [hidden, size].
struct ExpertShape {
  std::int64_t hidden = 0;
  std::int64_t size = 0;
  ExpertNames names = kShortExpertNames;
};

// Where V4 and V4.1 have the experts of a layer.
std::string experts_prefix(std::int64_t layer);
[[nodiscard]] Result<ExpertWeights> read_expert(WeightReader& reader, const std::string& prefix,
                                                const ExpertShape& shape);
// Those of a layer: PREFIX0., PREFIX1. and so on.
[[nodiscard]] Result<std::vector<ExpertWeights>> read_experts(WeightReader& reader,
                                                              const std::string& prefix,
                                                              std::int64_t count,
                                                              const ExpertShape& shape);
// The same, found and claimed but not read.
[[nodiscard]] Result<std::vector<StoredExpert>> find_experts(WeightReader& reader,
                                                             const std::string& prefix,
                                                             std::int64_t count,
                                                             const ExpertShape& shape);

// fn [mixes, width], base [mixes], scale [scales].
struct SiteShape {
  std::int64_t mixes = 0;
  std::int64_t width = 0;
  std::int64_t scales = 3;
};
[[nodiscard]] Result<HyperConnectionsWeights> read_site(WeightReader& reader,
                                                        const std::string& prefix,
                                                        const SiteShape& shape);

struct Csa2Shape {
  std::int64_t hidden = 0;
  std::int64_t query_rank = 0;
  std::int64_t heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t output_groups = 0;
  std::int64_t output_rank = 0;
  std::int64_t index_heads = 0;  // 0: no indexer
  std::int64_t index_dim = 0;
};
[[nodiscard]] Result<Csa2Weights> read_csa2(WeightReader& reader, const std::string& prefix,
                                            const Csa2Shape& shape);

}  // namespace locket::model
