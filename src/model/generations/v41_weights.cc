#include "model/generations/v41_weights.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <string_view>
#include <utility>

#include "model/generations/released_parts.h"

namespace locket::model {
namespace {

using numerics::Dtype;

constexpr std::array<std::string_view, 4> kSkippedPrefixes = {"mtp.", "vision.", "aligner.",
                                                              "image_"};

class Loader {
 public:
  Loader(const V41Config& config, WeightReader& reader, const ExpertPlacement& placement)
      : config_(config), reader_(reader), placement_(placement) {}

  Result<V41Weights> load() {
    V41Weights weights;
    const std::int64_t vocabulary = config_.vocabulary_size;
    const std::int64_t hidden = config_.hidden_size;
    weights.embedding.hidden = static_cast<std::size_t>(hidden);
    LOCKET_TRY(weights.embedding.table, reader_.bf16_bytes("embed.weight", {vocabulary, hidden}));
    LOCKET_TRY(weights.head.norm, reader_.values("norm.weight", {hidden}));
    LOCKET_TRY(weights.head.head, reader_.plain_matrix("head.weight", vocabulary, hidden));
    const bool streams = placement_.budget_bytes > 0;
    std::vector<std::vector<ExpertWeights>> experts;
    for (std::int64_t layer = 0; layer < config_.layer_count; ++layer) {
      LOCKET_TRY(V41LayerWeights loaded, load_layer(layer));
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
  Result<V41LayerWeights> load_layer(std::int64_t layer) {
    const LayerRole& role = config_.layers[static_cast<std::size_t>(layer)];
    const std::string prefix = fmt::format("layers.{}.", layer);
    const std::int64_t hidden = config_.hidden_size;
    const SiteShape site = {.mixes = (2 + config_.stream_count) * config_.stream_count,
                            .width = config_.stream_count * hidden};
    V41LayerWeights weights;
    LOCKET_TRY(weights.attention_norm, reader_.values(prefix + "attn_norm.weight", {hidden}));
    LOCKET_TRY(weights.ffn_norm, reader_.values(prefix + "ffn_norm.weight", {hidden}));
    LOCKET_TRY(weights.attention_site, read_site(reader_, prefix + "hc_attn_", site));
    LOCKET_TRY(weights.ffn_site, read_site(reader_, prefix + "hc_ffn_", site));
    LOCKET_TRY(weights.attention, read_csa2(reader_, prefix + "attn.", attention_shape(role)));
    if (role.writes_rows) {
      LOCKET_TRY(weights.compressor, load_compressor(prefix + "attn.", role));
    }
    LOCKET_TRY(weights.moe, load_moe(prefix + "ffn."));
    if (role.engram_index >= 0) LOCKET_TRY_STATUS(load_engram(prefix + "engram.", role, weights));
    return weights;
  }

  Csa2Shape attention_shape(const LayerRole& role) const {
    return {.hidden = config_.hidden_size,
            .query_rank = config_.q_lora_rank,
            .heads = config_.head_count,
            .head_dim = config_.head_dim,
            .output_groups = config_.o_groups,
            .output_rank = config_.o_lora_rank,
            .index_heads = role.selects_rows ? config_.index_head_count : 0,
            .index_dim = config_.index_head_dim};
  }

  Result<CompressorWeights> load_compressor(const std::string& prefix, const LayerRole& role) {
    const std::int64_t dim = config_.head_dim;
    const std::int64_t index_dim = config_.index_head_dim;
    CompressorWeights weights;
    LOCKET_TRY(weights.wkv, reader_.matrix(prefix + "compressor.wkv", dim, config_.hidden_size));
    if (role.ratio > 1) {
      LOCKET_TRY(weights.wgate,
                 reader_.matrix(prefix + "compressor.wgate", dim, config_.hidden_size));
    }
    LOCKET_TRY(weights.norm, reader_.values(prefix + "compressor.norm.weight", {dim}));
    LOCKET_TRY(weights.index_wk, reader_.matrix(prefix + "indexer.wk", index_dim, dim));
    LOCKET_TRY(weights.index_k_norm, reader_.values(prefix + "indexer.k_norm.weight", {index_dim}));
    return weights;
  }

  Result<MoeWeights> load_moe(const std::string& prefix) {
    const std::int64_t experts = config_.expert_count;
    MoeWeights weights;
    LOCKET_TRY(weights.router.gate, reader_.matrix(prefix + "gate", experts, config_.hidden_size));
    LOCKET_TRY(weights.router.bias, reader_.values(prefix + "gate.bias", {experts}));
    // The bias of image tokens: there in every release, used by no text.
    if (reader_.checkpoint().find(prefix + "gate.bias_vl")) {
      LOCKET_TRY_STATUS(
          reader_.checkpoint().require(prefix + "gate.bias_vl", Dtype::kF32, {experts}));
    }
    LOCKET_TRY(weights.shared, read_expert(reader_, prefix + "shared_experts.", expert_shape()));
    return weights;
  }

  ExpertShape expert_shape() const {
    return {.hidden = config_.hidden_size, .size = config_.expert_size};
  }

  Result<std::unique_ptr<StreamedExperts>> stream_experts() {
    std::vector<std::vector<StoredExpert>> layers;
    for (std::int64_t layer = 0; layer < config_.layer_count; ++layer) {
      LOCKET_TRY(
          std::vector<StoredExpert> experts,
          find_experts(reader_, experts_prefix(layer), config_.expert_count, expert_shape()));
      layers.push_back(std::move(experts));
    }
    return StreamedExperts::create(std::move(layers), {.budget_bytes = placement_.budget_bytes,
                                                       .readers = placement_.readers});
  }

  Status load_engram(const std::string& prefix, const LayerRole& role, V41LayerWeights& layer) {
    const std::int64_t hidden = config_.hidden_size;
    const std::int64_t streams = config_.stream_count;
    const std::int64_t columns = (config_.engram.max_ngram_size - 1) * config_.engram.head_count;
    EngramWeights weights;
    LOCKET_TRY(weights.wkv, reader_.matrix(prefix + "wkv", (streams + 1) * hidden,
                                           columns * config_.engram_head_dim));
    LOCKET_TRY(weights.query_key, reader_.values(prefix + "q_weight", {streams, hidden}));
    LOCKET_TRY(const std::vector<float> key,
               reader_.values(prefix + "k_weight", {streams, hidden}));
    for (std::size_t i = 0; i < key.size(); ++i) weights.query_key[i] *= key[i];
    layer.engram = std::move(weights);

    const std::int64_t rows =
        config_.engram.table_rows[static_cast<std::size_t>(role.engram_index)];
    const std::int64_t width = config_.engram_head_dim;
    std::optional<checkpoint::StoredTensor> scale;
    checkpoint::StoredTensor table;
    checkpoint::Checkpoint& checkpoint = reader_.checkpoint();
    if (checkpoint.find(prefix + "embed.scale")) {
      LOCKET_TRY(scale,
                 checkpoint.require(prefix + "embed.scale", Dtype::kE8m0, {rows, width / 32}));
      LOCKET_TRY(table,
                 checkpoint.require(prefix + "embed.weight", Dtype::kFp8E4m3, {rows, width}));
    } else {
      LOCKET_TRY(table, checkpoint.require(prefix + "embed.weight", Dtype::kBf16, {rows, width}));
    }
    const bool reads = reader_.reads() == WeightReader::Reads::kEverything;
    const std::uint64_t resident_limit = reads ? kResidentTableBytes : 0;
    LOCKET_TRY(layer.engram_table, EngramTable::open(table, scale, resident_limit));
    return {};
  }

  const V41Config& config_;
  WeightReader& reader_;
  const ExpertPlacement& placement_;
};

}  // namespace

bool is_streamed_v41_tensor(std::string_view name) {
  return name.find(".experts.") != std::string_view::npos ||
         name.find(".engram.embed.") != std::string_view::npos;
}

bool is_skipped_v41_tensor(std::string_view name) {
  return std::ranges::any_of(kSkippedPrefixes,
                             [&](std::string_view prefix) { return name.starts_with(prefix); });
}

Result<LoadedV41Weights> load_v41_weights(const V41Config& config, WeightReader& reader,
                                          const ExpertPlacement& placement) {
  LoadedV41Weights loaded;
  LOCKET_TRY(loaded.weights, Loader(config, reader, placement).load());
  LOCKET_TRY_STATUS(reader.checkpoint().check_all_claimed(kSkippedPrefixes));
  loaded.skipped = reader.checkpoint().describe_skipped(kSkippedPrefixes);
  return loaded;
}

}  // namespace locket::model
