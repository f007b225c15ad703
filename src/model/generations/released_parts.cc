#include "model/generations/released_parts.h"

#include <fmt/format.h>
#include <utility>

namespace locket::model {
namespace {

std::string joined(const std::string& prefix, std::string_view name) {
  return prefix + std::string(name);
}

}  // namespace

std::string experts_prefix(std::int64_t layer) {
  return fmt::format("layers.{}.ffn.experts.", layer);
}

Result<ExpertWeights> read_expert(WeightReader& reader, const std::string& prefix,
                                  const ExpertShape& shape) {
  const auto& [hidden, size, names] = shape;
  ExpertWeights weights;
  LOCKET_TRY(weights.gate, reader.matrix(joined(prefix, names.gate), size, hidden));
  LOCKET_TRY(weights.up, reader.matrix(joined(prefix, names.up), size, hidden));
  LOCKET_TRY(weights.down, reader.matrix(joined(prefix, names.down), hidden, size));
  return weights;
}

Result<std::vector<ExpertWeights>> read_experts(WeightReader& reader, const std::string& prefix,
                                                std::int64_t count, const ExpertShape& shape) {
  std::vector<ExpertWeights> experts;
  for (std::int64_t expert = 0; expert < count; ++expert) {
    LOCKET_TRY(ExpertWeights loaded,
               read_expert(reader, fmt::format("{}{}.", prefix, expert), shape));
    experts.push_back(std::move(loaded));
  }
  return experts;
}

Result<std::vector<StoredExpert>> find_experts(WeightReader& reader, const std::string& prefix,
                                               std::int64_t count, const ExpertShape& shape) {
  const auto& [hidden, size, names] = shape;
  std::vector<StoredExpert> experts;
  for (std::int64_t expert = 0; expert < count; ++expert) {
    const std::string place = fmt::format("{}{}.", prefix, expert);
    const auto find = [&](std::string_view name, std::int64_t rows, std::int64_t columns) {
      return find_weight(reader.checkpoint(), joined(place, name), rows, columns,
                         reader.fp8_tile());
    };
    StoredExpert found;
    LOCKET_TRY(found.gate, find(names.gate, size, hidden));
    LOCKET_TRY(found.up, find(names.up, size, hidden));
    LOCKET_TRY(found.down, find(names.down, hidden, size));
    experts.push_back(std::move(found));
  }
  return experts;
}

Result<HyperConnectionsWeights> read_site(WeightReader& reader, const std::string& prefix,
                                          const SiteShape& shape) {
  HyperConnectionsWeights weights;
  LOCKET_TRY(weights.fn, reader.values(prefix + "fn", {shape.mixes, shape.width}));
  LOCKET_TRY(weights.base, reader.values(prefix + "base", {shape.mixes}));
  LOCKET_TRY(weights.scale, reader.values(prefix + "scale", {shape.scales}));
  return weights;
}

Result<Csa2Weights> read_csa2(WeightReader& reader, const std::string& prefix,
                              const Csa2Shape& shape) {
  const std::int64_t rank = shape.query_rank;
  const std::int64_t width = shape.heads * shape.head_dim;
  const std::int64_t groups = shape.output_groups;
  const std::int64_t output = groups * shape.output_rank;
  Csa2Weights weights;
  LOCKET_TRY(weights.wq_a, reader.matrix(prefix + "wq_a", rank, shape.hidden));
  LOCKET_TRY(weights.q_norm, reader.values(prefix + "q_norm.weight", {rank}));
  LOCKET_TRY(weights.wq_b, reader.matrix(prefix + "wq_b", width, rank));
  LOCKET_TRY(weights.wkv, reader.matrix(prefix + "wkv", shape.head_dim, shape.hidden));
  LOCKET_TRY(weights.kv_norm, reader.values(prefix + "kv_norm.weight", {shape.head_dim}));
  LOCKET_TRY(weights.sink, reader.values(prefix + "attn_sink", {shape.heads}));
  LOCKET_TRY(weights.wo_a, reader.grouped_matrix(prefix + "wo_a", output, width / groups, groups));
  LOCKET_TRY(weights.wo_b, reader.matrix(prefix + "wo_b", shape.hidden, output));
  if (shape.index_heads == 0) return weights;
  LOCKET_TRY(weights.indexer.wq_b,
             reader.matrix(prefix + "indexer.wq_b", shape.index_heads * shape.index_dim, rank));
  LOCKET_TRY(weights.indexer.weights_proj,
             reader.matrix(prefix + "indexer.weights_proj", shape.index_heads, shape.hidden));
  return weights;
}

}  // namespace locket::model
