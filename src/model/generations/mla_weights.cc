#include "model/generations/mla_weights.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <utility>

#include "model/generations/released_parts.h"
#include "numerics/bf16.h"

namespace locket::model {
namespace {

// A matrix of float values [rows, columns], packed without loss.
Result<kernels::WeightMatrix> pack_floats(std::span<const float> values, std::size_t rows,
                                          std::size_t columns) {
  const bool is_bf16 = std::ranges::all_of(
      values, [](float value) { return numerics::round_to_bf16(value) == value; });
  if (!is_bf16) {
    return kernels::pack_weights({.format = kernels::WeightFormat::kF32,
                                  .rows = rows,
                                  .columns = columns,
                                  .values = std::as_bytes(values),
                                  .scales = {}});
  }
  std::vector<numerics::Bf16> halves(values.size());
  std::ranges::transform(values, halves.begin(), numerics::to_bf16);
  return kernels::pack_weights({.format = kernels::WeightFormat::kBf16,
                                .rows = rows,
                                .columns = columns,
                                .values = std::as_bytes(std::span(halves)),
                                .scales = {}});
}

class Loader {
 public:
  Loader(const MlaModelConfig& config, WeightReader& reader) : config_(config), reader_(reader) {}

  Result<MlaModelWeights> load() {
    const std::int64_t vocabulary = config_.vocabulary_size;
    const std::int64_t hidden = config_.hidden_size;
    MlaModelWeights weights;
    weights.embedding.hidden = static_cast<std::size_t>(hidden);
    LOCKET_TRY(weights.embedding.table,
               reader_.bf16_bytes("model.embed_tokens.weight", {vocabulary, hidden}));
    LOCKET_TRY(weights.head.norm, reader_.values("model.norm.weight", {hidden}));
    LOCKET_TRY(weights.head.head, reader_.plain_matrix("lm_head.weight", vocabulary, hidden));
    std::vector<std::vector<ExpertWeights>> experts;
    for (std::int64_t layer = 0; layer < config_.layer_count; ++layer) {
      const std::string prefix = fmt::format("model.layers.{}.", layer);
      LOCKET_TRY(MlaLayerWeights loaded, load_layer(prefix, layer));
      weights.layers.push_back(std::move(loaded));
      LOCKET_TRY(std::vector<ExpertWeights> loaded_experts, load_experts(prefix, layer));
      experts.push_back(std::move(loaded_experts));
    }
    weights.experts = resident_experts(std::move(experts));
    return weights;
  }

 private:
  Result<MlaLayerWeights> load_layer(const std::string& prefix, std::int64_t layer) {
    const std::int64_t hidden = config_.hidden_size;
    MlaLayerWeights weights;
    LOCKET_TRY(weights.attention_norm, reader_.values(prefix + "input_layernorm.weight", {hidden}));
    LOCKET_TRY(weights.ffn_norm,
               reader_.values(prefix + "post_attention_layernorm.weight", {hidden}));
    LOCKET_TRY(weights.attention, load_attention(prefix + "self_attn.", layer));
    if (layer < config_.dense_layers) {
      LOCKET_TRY(ExpertWeights dense,
                 read_expert(reader_, prefix + "mlp.", expert_shape(config_.ffn_size)));
      weights.dense = DenseFfnWeights{
          .gate = std::move(dense.gate), .up = std::move(dense.up), .down = std::move(dense.down)};
      return weights;
    }
    LOCKET_TRY(weights.moe, load_moe(prefix + "mlp."));
    return weights;
  }

  Result<MlaWeights> load_attention(const std::string& prefix, std::int64_t layer) {
    const std::int64_t hidden = config_.hidden_size;
    const std::int64_t rank = config_.latent_rank;
    const std::int64_t heads = config_.head_count;
    const std::int64_t query = heads * (config_.nope_dim + config_.rope_dim);
    MlaWeights weights;
    if (config_.query_rank == 0) {
      LOCKET_TRY(weights.q_b, reader_.matrix(prefix + "q_proj", query, hidden));
    } else {
      LOCKET_TRY(weights.q_a, reader_.matrix(prefix + "q_a_proj", config_.query_rank, hidden));
      LOCKET_TRY(weights.q_norm,
                 reader_.values(prefix + "q_a_layernorm.weight", {config_.query_rank}));
      LOCKET_TRY(weights.q_b, reader_.matrix(prefix + "q_b_proj", query, config_.query_rank));
    }
    LOCKET_TRY(weights.kv_a,
               reader_.matrix(prefix + "kv_a_proj_with_mqa", config_.row_width(), hidden));
    LOCKET_TRY(weights.kv_norm, reader_.values(prefix + "kv_a_layernorm.weight", {rank}));
    LOCKET_TRY(
        const kernels::WeightMatrix projections,
        reader_.matrix(prefix + "kv_b_proj", heads * (config_.nope_dim + config_.value_dim), rank));
    if (reader_.reads() == WeightReader::Reads::kEverything) {
      LOCKET_TRY_STATUS(split_heads(projections, attention_config(config_, layer), weights));
    }
    LOCKET_TRY(weights.output,
               reader_.matrix(prefix + "o_proj", hidden, heads * config_.value_dim));
    if (config_.has_indexer()) {
      LOCKET_TRY(weights.indexer, load_indexer(prefix + "indexer."));
    }
    return weights;
  }

  Result<DsaIndexerWeights> load_indexer(const std::string& prefix) {
    const std::int64_t dim = config_.index_dim;
    const std::int64_t hidden = config_.hidden_size;
    DsaIndexerWeights weights;
    LOCKET_TRY(weights.wq_b,
               reader_.matrix(prefix + "wq_b", config_.index_heads * dim, config_.query_rank));
    LOCKET_TRY(weights.wk, reader_.matrix(prefix + "wk", dim, hidden));
    LOCKET_TRY(weights.key_norm, reader_.values(prefix + "k_norm.weight", {dim}));
    LOCKET_TRY(weights.key_norm_bias, reader_.values(prefix + "k_norm.bias", {dim}));
    LOCKET_TRY(weights.head_weights,
               reader_.matrix(prefix + "weights_proj", config_.index_heads, hidden));
    return weights;
  }

  Result<MoeWeights> load_moe(const std::string& prefix) {
    const std::int64_t experts = config_.expert_count;
    MoeWeights weights;
    LOCKET_TRY(weights.router.gate, reader_.matrix(prefix + "gate", experts, config_.hidden_size));
    if (config_.router_bias == MlaModelConfig::RouterBias::kLearned) {
      LOCKET_TRY(weights.router.bias,
                 reader_.values(prefix + "gate.e_score_correction_bias", {experts}));
    }
    LOCKET_TRY(weights.shared,
               read_expert(reader_, prefix + "shared_experts.",
                           expert_shape(config_.shared_experts * config_.expert_size)));
    return weights;
  }

  ExpertShape expert_shape(std::int64_t size) const {
    return {.hidden = config_.hidden_size, .size = size, .names = kLongExpertNames};
  }

  Result<std::vector<ExpertWeights>> load_experts(const std::string& prefix, std::int64_t layer) {
    const std::int64_t count = layer < config_.dense_layers ? 0 : config_.expert_count;
    return read_experts(reader_, prefix + "mlp.experts.", count, expert_shape(config_.expert_size));
  }

  const MlaModelConfig& config_;
  WeightReader& reader_;
};

}  // namespace

bool is_routed_expert(std::string_view tensor) {
  return tensor.find(".mlp.experts.") != std::string_view::npos;
}

std::vector<std::string> draft_prefixes(const MlaModelConfig& config) {
  std::vector<std::string> prefixes;
  for (std::int64_t layer = 0; layer < config.draft_layers; ++layer) {
    prefixes.push_back(fmt::format("model.layers.{}.", config.layer_count + layer));
  }
  return prefixes;
}

Status split_heads(const kernels::WeightMatrix& projections, const MlaConfig& config,
                   MlaWeights& weights) {
  const std::size_t rank = config.latent_rank;
  std::vector<float> key(rank * config.nope_dim);
  std::vector<float> value(config.value_dim * rank);
  for (std::size_t head = 0; head < config.heads; ++head) {
    const std::size_t first = head * (config.nope_dim + config.value_dim);
    for (std::size_t row = 0; row < config.nope_dim; ++row) {
      for (std::size_t i = 0; i < rank; ++i) {
        key[i * config.nope_dim + row] = kernels::weight_at(projections, first + row, i);
      }
    }
    for (std::size_t row = 0; row < config.value_dim; ++row) {
      for (std::size_t i = 0; i < rank; ++i) {
        value[row * rank + i] = kernels::weight_at(projections, first + config.nope_dim + row, i);
      }
    }
    LOCKET_TRY(kernels::WeightMatrix absorb, pack_floats(key, rank, config.nope_dim));
    LOCKET_TRY(kernels::WeightMatrix up, pack_floats(value, config.value_dim, rank));
    weights.absorb_key.push_back(std::move(absorb));
    weights.value_up.push_back(std::move(up));
  }
  return {};
}

Result<LoadedMlaWeights> load_mla_weights(const MlaModelConfig& config, WeightReader& reader) {
  LoadedMlaWeights loaded;
  LOCKET_TRY(loaded.weights, Loader(config, reader).load());
  const std::vector<std::string> names = draft_prefixes(config);
  const std::vector<std::string_view> prefixes(names.begin(), names.end());
  LOCKET_TRY_STATUS(reader.checkpoint().check_all_claimed(prefixes));
  loaded.skipped = reader.checkpoint().describe_skipped(prefixes);
  return loaded;
}

}  // namespace locket::model
