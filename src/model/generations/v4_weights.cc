#include "model/generations/v4_weights.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <utility>

#include "model/generations/released_parts.h"
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
    const std::int64_t width = config_.stream_count * hidden;
    LOCKET_TRY(weights.head_site,
               read_site(reader_, "hc_head_",
                         {.mixes = config_.stream_count, .width = width, .scales = 1}));
    const bool streams = placement_.budget_bytes > 0;
    std::vector<std::vector<ExpertWeights>> experts;
    for (std::int64_t layer = 0; layer < config_.layer_count; ++layer) {
      LOCKET_TRY(V4LayerWeights loaded, load_layer(layer));
      weights.layers.push_back(std::move(loaded));
      if (streams) continue;
      LOCKET_TRY(
          std::vector<ExpertWeights> loaded_experts,
          read_experts(reader_, experts_prefix(layer), config_.expert_count, expert_shape()));
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
    const SiteShape site = {.mixes = (2 + config_.stream_count) * config_.stream_count,
                            .width = config_.stream_count * hidden};
    const V4LayerKind kind = config_.kind(layer);
    V4LayerWeights weights;
    LOCKET_TRY(weights.attention_norm, reader_.values(prefix + "attn_norm.weight", {hidden}));
    LOCKET_TRY(weights.ffn_norm, reader_.values(prefix + "ffn_norm.weight", {hidden}));
    LOCKET_TRY(weights.attention_site, read_site(reader_, prefix + "hc_attn_", site));
    LOCKET_TRY(weights.ffn_site, read_site(reader_, prefix + "hc_ffn_", site));
    LOCKET_TRY(weights.attention, read_csa2(reader_, prefix + "attn.", attention_shape(kind)));
    if (kind != V4LayerKind::kWindow) {
      LOCKET_TRY(weights.rows,
                 load_compressor(prefix + "attn.compressor.", v4_row_compressor(config_, layer)));
    }
    if (kind == V4LayerKind::kChosen) {
      LOCKET_TRY(weights.keys, load_compressor(prefix + "attn.indexer.compressor.",
                                               v4_key_compressor(config_, layer, {})));
    }
    LOCKET_TRY_STATUS(load_router(prefix + "ffn.gate", layer, weights));
    LOCKET_TRY(weights.shared,
               read_expert(reader_, prefix + "ffn.shared_experts.", expert_shape()));
    return weights;
  }

  Csa2Shape attention_shape(V4LayerKind kind) const {
    return {.hidden = config_.hidden_size,
            .query_rank = config_.q_lora_rank,
            .heads = config_.head_count,
            .head_dim = config_.head_dim,
            .output_groups = config_.o_groups,
            .output_rank = config_.o_lora_rank,
            .index_heads = kind == V4LayerKind::kChosen ? config_.index_head_count : 0,
            .index_dim = config_.index_head_dim};
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

  ExpertShape expert_shape() const {
    return {.hidden = config_.hidden_size, .size = config_.expert_size};
  }

  // Only FP4 has its scales in rows, as its values, so that pieces can be read alone.
  static Status check_streamed(const StoredExpert& expert) {
    for (const StoredWeight* weight : {&expert.gate, &expert.up, &expert.down}) {
      if (weight->format != kernels::WeightFormat::kFp8) continue;
      return fail(
          ErrorCode::kUnsupported,
          fmt::format("tensor {} is FP8; routed experts that stay on disk must be FP4 (load "
                      "them into memory)",
                      weight->weight.name()));
    }
    return {};
  }

  Result<std::unique_ptr<StreamedExperts>> stream_experts() {
    std::vector<std::vector<StoredExpert>> layers;
    for (std::int64_t layer = 0; layer < config_.layer_count; ++layer) {
      LOCKET_TRY(
          std::vector<StoredExpert> experts,
          find_experts(reader_, experts_prefix(layer), config_.expert_count, expert_shape()));
      for (const StoredExpert& expert : experts) LOCKET_TRY_STATUS(check_streamed(expert));
      layers.push_back(std::move(experts));
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
