#include "model/generations/v4_weights.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <utility>

#include "model/generations/v4_layout.h"

namespace locket::model {
namespace {

constexpr std::array<std::string_view, 1> kSkippedPrefixes = {"mtp."};

class Loader {
 public:
  Loader(const V4Config& config, WeightReader& reader, const ExpertPlacement& placement)
      : config_(config), reader_(reader), placement_(placement) {}

  Result<V4Weights> load() {
    V4Weights weights;
    const std::int64_t vocabulary = config_.vocabulary_size;
    const std::int64_t hidden = config_.hidden_size;
    weights.embedding.hidden = static_cast<std::size_t>(hidden);
    LOCKET_TRY(weights.embedding.table, reader_.bf16_bytes("embed.weight", {vocabulary, hidden}));
    LOCKET_TRY(weights.head.norm, reader_.values("norm.weight", {hidden}));
    LOCKET_TRY(weights.head.head, reader_.plain_matrix("head.weight", vocabulary, hidden));
    LOCKET_TRY(weights.head_site, load_site("hc_head_", config_.stream_count, 1));
    const bool streams = placement_.budget_bytes > 0;
    std::vector<std::vector<ExpertWeights>> experts;
    for (std::int64_t layer = 0; layer < config_.layer_count; ++layer) {
      LOCKET_TRY(V4LayerWeights loaded, load_layer(layer));
      weights.layers.push_back(std::move(loaded));
      if (streams) continue;
      LOCKET_TRY(std::vector<ExpertWeights> loaded_experts, load_experts(layer));
      experts.push_back(std::move(loaded_experts));
    }
    if (!streams) {
      weights.experts = resident_experts(std::move(experts));
      return weights;
    }
    LOCKET_TRY(std::unique_ptr<StreamedExperts> streamed, stream_experts());
    weights.streamed = streamed.get();
    weights.experts = std::move(streamed);
    return weights;
  }

 private:
  Result<V4LayerWeights> load_layer(std::int64_t layer) {
    const std::string prefix = fmt::format("layers.{}.", layer);
    const std::int64_t hidden = config_.hidden_size;
    const std::int64_t mixes = (2 + config_.stream_count) * config_.stream_count;
    const V4LayerKind kind = config_.kind(layer);
    V4LayerWeights weights;
    LOCKET_TRY(weights.attention_norm, reader_.values(prefix + "attn_norm.weight", {hidden}));
    LOCKET_TRY(weights.ffn_norm, reader_.values(prefix + "ffn_norm.weight", {hidden}));
    LOCKET_TRY(weights.attention_site, load_site(prefix + "hc_attn_", mixes, 3));
    LOCKET_TRY(weights.ffn_site, load_site(prefix + "hc_ffn_", mixes, 3));
    LOCKET_TRY(weights.attention, load_attention(prefix + "attn.", kind));
    if (kind != V4LayerKind::kWindow) {
      LOCKET_TRY(weights.rows,
                 load_compressor(prefix + "attn.compressor.", v4_row_compressor(config_, layer)));
    }
    if (kind == V4LayerKind::kChosen) {
      LOCKET_TRY(weights.keys, load_compressor(prefix + "attn.indexer.compressor.",
                                               v4_key_compressor(config_, layer, {})));
    }
    LOCKET_TRY_STATUS(load_router(prefix + "ffn.gate", layer, weights));
    LOCKET_TRY(weights.shared, load_expert(prefix + "ffn.shared_experts."));
    return weights;
  }

  Result<HyperConnectionsWeights> load_site(const std::string& prefix, std::int64_t mixes,
                                            std::int64_t scales) {
    HyperConnectionsWeights weights;
    LOCKET_TRY(weights.fn,
               reader_.values(prefix + "fn", {mixes, config_.stream_count * config_.hidden_size}));
    LOCKET_TRY(weights.base, reader_.values(prefix + "base", {mixes}));
    LOCKET_TRY(weights.scale, reader_.values(prefix + "scale", {scales}));
    return weights;
  }

  Result<Csa2Weights> load_attention(const std::string& prefix, V4LayerKind kind) {
    const std::int64_t hidden = config_.hidden_size;
    const std::int64_t rank = config_.q_lora_rank;
    const std::int64_t heads = config_.head_count;
    const std::int64_t dim = config_.head_dim;
    const std::int64_t groups = config_.o_groups;
    const std::int64_t joined = groups * config_.o_lora_rank;
    Csa2Weights weights;
    LOCKET_TRY(weights.wq_a, reader_.matrix(prefix + "wq_a", rank, hidden));
    LOCKET_TRY(weights.q_norm, reader_.values(prefix + "q_norm.weight", {rank}));
    LOCKET_TRY(weights.wq_b, reader_.matrix(prefix + "wq_b", heads * dim, rank));
    LOCKET_TRY(weights.wkv, reader_.matrix(prefix + "wkv", dim, hidden));
    LOCKET_TRY(weights.kv_norm, reader_.values(prefix + "kv_norm.weight", {dim}));
    LOCKET_TRY(weights.sink, reader_.values(prefix + "attn_sink", {heads}));
    LOCKET_TRY(weights.wo_a,
               reader_.grouped_matrix(prefix + "wo_a", joined, heads * dim / groups, groups));
    LOCKET_TRY(weights.wo_b, reader_.matrix(prefix + "wo_b", hidden, joined));
    if (kind != V4LayerKind::kChosen) return weights;
    LOCKET_TRY(weights.indexer.wq_b,
               reader_.matrix(prefix + "indexer.wq_b",
                              config_.index_head_count * config_.index_head_dim, rank));
    LOCKET_TRY(weights.indexer.weights_proj,
               reader_.matrix(prefix + "indexer.weights_proj", config_.index_head_count, hidden));
    return weights;
  }

  Result<BlockCompressorWeights> load_compressor(const std::string& prefix,
                                                 const BlockCompressorConfig& compressor) {
    const auto tokens = static_cast<std::int64_t>(compressor.tokens);
    const auto width = static_cast<std::int64_t>(compressor.token_width());
    BlockCompressorWeights weights;
    LOCKET_TRY(weights.wkv, reader_.matrix(prefix + "wkv", width, config_.hidden_size));
    LOCKET_TRY(weights.wgate, reader_.matrix(prefix + "wgate", width, config_.hidden_size));
    LOCKET_TRY(weights.ape, reader_.values(prefix + "ape", {tokens, width}));
    LOCKET_TRY(weights.norm, reader_.values(prefix + "norm.weight",
                                            {static_cast<std::int64_t>(compressor.width)}));
    return weights;
  }

  Status load_router(const std::string& prefix, std::int64_t layer, V4LayerWeights& weights) {
    const std::int64_t experts = config_.expert_count;
    LOCKET_TRY(kernels::WeightMatrix gate, reader_.matrix(prefix, experts, config_.hidden_size));
    if (!config_.routes_by_token(layer)) {
      weights.router = RouterWeights{.gate = std::move(gate), .bias = {}};
      LOCKET_TRY(weights.router->bias, reader_.values(prefix + ".bias", {experts}));
      return {};
    }
    weights.token_router = TokenRouterWeights{.gate = std::move(gate), .expert_of_token = {}};
    LOCKET_TRY(weights.token_router->expert_of_token,
               reader_.numbers(prefix + ".tid2eid",
                               {config_.vocabulary_size, config_.experts_per_token}, experts));
    return {};
  }

  Result<ExpertWeights> load_expert(const std::string& prefix) {
    const std::int64_t hidden = config_.hidden_size;
    const std::int64_t size = config_.expert_size;
    ExpertWeights weights;
    LOCKET_TRY(weights.gate, reader_.matrix(prefix + "w1", size, hidden));
    LOCKET_TRY(weights.up, reader_.matrix(prefix + "w3", size, hidden));
    LOCKET_TRY(weights.down, reader_.matrix(prefix + "w2", hidden, size));
    return weights;
  }

  Result<std::vector<ExpertWeights>> load_experts(std::int64_t layer) {
    std::vector<ExpertWeights> experts;
    for (std::int64_t expert = 0; expert < config_.expert_count; ++expert) {
      LOCKET_TRY(ExpertWeights loaded,
                 load_expert(fmt::format("layers.{}.ffn.experts.{}.", layer, expert)));
      experts.push_back(std::move(loaded));
    }
    return experts;
  }

  // Only FP4 has its scales in rows, as its values, so that pieces can be read alone.
  Status find_streamed(const std::string& name, std::int64_t rows, std::int64_t columns,
                       StoredWeight& found) {
    LOCKET_TRY(found, find_weight(reader_.checkpoint(), name, rows, columns, Fp8Tile::k128));
    if (found.format != kernels::WeightFormat::kFp8) return {};
    return fail(ErrorCode::kUnsupported,
                fmt::format("tensor {}.weight is FP8; routed experts that stay on disk must be FP4 "
                            "(load them into memory)",
                            name));
  }

  Result<std::unique_ptr<StreamedExperts>> stream_experts() {
    const std::int64_t hidden = config_.hidden_size;
    const std::int64_t size = config_.expert_size;
    std::vector<std::vector<StoredExpert>> layers;
    for (std::int64_t layer = 0; layer < config_.layer_count; ++layer) {
      std::vector<StoredExpert>& experts = layers.emplace_back();
      for (std::int64_t expert = 0; expert < config_.expert_count; ++expert) {
        const std::string prefix = fmt::format("layers.{}.ffn.experts.{}.", layer, expert);
        StoredExpert found;
        LOCKET_TRY_STATUS(find_streamed(prefix + "w1", size, hidden, found.gate));
        LOCKET_TRY_STATUS(find_streamed(prefix + "w3", size, hidden, found.up));
        LOCKET_TRY_STATUS(find_streamed(prefix + "w2", hidden, size, found.down));
        experts.push_back(std::move(found));
      }
    }
    return StreamedExperts::create(std::move(layers), {.budget_bytes = placement_.budget_bytes,
                                                       .readers = placement_.readers});
  }

  const V4Config& config_;
  WeightReader& reader_;
  const ExpertPlacement& placement_;
};

}  // namespace

bool is_streamed_v4_tensor(std::string_view name) {
  return name.find(".experts.") != std::string_view::npos;
}

bool is_skipped_v4_tensor(std::string_view name) {
  return std::ranges::any_of(kSkippedPrefixes,
                             [&](std::string_view prefix) { return name.starts_with(prefix); });
}

Result<LoadedV4Weights> load_v4_weights(const V4Config& config, WeightReader& reader,
                                        const ExpertPlacement& placement) {
  LoadedV4Weights loaded;
  LOCKET_TRY(loaded.weights, Loader(config, reader, placement).load());
  LOCKET_TRY_STATUS(reader.checkpoint().check_all_claimed(kSkippedPrefixes));
  loaded.skipped = reader.checkpoint().describe_skipped(kSkippedPrefixes);
  return loaded;
}

}  // namespace locket::model
