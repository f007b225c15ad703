#include "model/generations/v41_weights.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <string_view>
#include <utility>

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
  Result<V41LayerWeights> load_layer(std::int64_t layer) {
    const LayerRole& role = config_.layers[static_cast<std::size_t>(layer)];
    const std::string prefix = fmt::format("layers.{}.", layer);
    const std::int64_t hidden = config_.hidden_size;
    V41LayerWeights weights;
    LOCKET_TRY(weights.attention_norm, reader_.values(prefix + "attn_norm.weight", {hidden}));
    LOCKET_TRY(weights.ffn_norm, reader_.values(prefix + "ffn_norm.weight", {hidden}));
    LOCKET_TRY(weights.attention_site, load_site(prefix + "hc_attn_"));
    LOCKET_TRY(weights.ffn_site, load_site(prefix + "hc_ffn_"));
    LOCKET_TRY(weights.attention, load_attention(prefix + "attn.", role));
    if (role.writes_rows) {
      LOCKET_TRY(weights.compressor, load_compressor(prefix + "attn.", role));
    }
    LOCKET_TRY(weights.moe, load_moe(prefix + "ffn."));
    if (role.engram_index >= 0) LOCKET_TRY_STATUS(load_engram(prefix + "engram.", role, weights));
    return weights;
  }

  Result<HyperConnectionsWeights> load_site(const std::string& prefix) {
    const std::int64_t streams = config_.stream_count;
    const std::int64_t mixes = 2 * streams + streams * streams;
    HyperConnectionsWeights weights;
    LOCKET_TRY(weights.fn, reader_.values(prefix + "fn", {mixes, streams * config_.hidden_size}));
    LOCKET_TRY(weights.base, reader_.values(prefix + "base", {mixes}));
    LOCKET_TRY(weights.scale, reader_.values(prefix + "scale", {3}));
    return weights;
  }

  Result<Csa2Weights> load_attention(const std::string& prefix, const LayerRole& role) {
    const std::int64_t hidden = config_.hidden_size;
    const std::int64_t rank = config_.q_lora_rank;
    const std::int64_t heads = config_.head_count;
    const std::int64_t dim = config_.head_dim;
    Csa2Weights weights;
    LOCKET_TRY(weights.wq_a, reader_.matrix(prefix + "wq_a", rank, hidden));
    LOCKET_TRY(weights.q_norm, reader_.values(prefix + "q_norm.weight", {rank}));
    LOCKET_TRY(weights.wq_b, reader_.matrix(prefix + "wq_b", heads * dim, rank));
    LOCKET_TRY(weights.wkv, reader_.matrix(prefix + "wkv", dim, hidden));
    LOCKET_TRY(weights.kv_norm, reader_.values(prefix + "kv_norm.weight", {dim}));
    LOCKET_TRY(weights.sink, reader_.values(prefix + "attn_sink", {heads}));
    const std::int64_t groups = config_.o_groups;
    LOCKET_TRY(weights.wo_a, reader_.grouped_matrix(prefix + "wo_a", groups * config_.o_lora_rank,
                                                    heads * dim / groups, groups));
    LOCKET_TRY(weights.wo_b, reader_.matrix(prefix + "wo_b", hidden, groups * config_.o_lora_rank));
    if (!role.selects_rows) return weights;
    LOCKET_TRY(weights.indexer.wq_b,
               reader_.matrix(prefix + "indexer.wq_b",
                              config_.index_head_count * config_.index_head_dim, rank));
    LOCKET_TRY(weights.indexer.weights_proj,
               reader_.matrix(prefix + "indexer.weights_proj", config_.index_head_count, hidden));
    return weights;
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

  Result<ExpertWeights> load_expert(const std::string& prefix) {
    const std::int64_t hidden = config_.hidden_size;
    const std::int64_t size = config_.expert_size;
    ExpertWeights weights;
    LOCKET_TRY(weights.gate, reader_.matrix(prefix + "w1", size, hidden));
    LOCKET_TRY(weights.up, reader_.matrix(prefix + "w3", size, hidden));
    LOCKET_TRY(weights.down, reader_.matrix(prefix + "w2", hidden, size));
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
    LOCKET_TRY(weights.shared, load_expert(prefix + "shared_experts."));
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

  Result<std::unique_ptr<StreamedExperts>> stream_experts() {
    const std::int64_t hidden = config_.hidden_size;
    const std::int64_t size = config_.expert_size;
    std::vector<std::vector<StoredExpert>> layers;
    for (std::int64_t layer = 0; layer < config_.layer_count; ++layer) {
      std::vector<StoredExpert>& experts = layers.emplace_back();
      for (std::int64_t expert = 0; expert < config_.expert_count; ++expert) {
        const std::string prefix = fmt::format("layers.{}.ffn.experts.{}.", layer, expert);
        StoredExpert found;
        LOCKET_TRY(found.gate, find_weight(reader_.checkpoint(), prefix + "w1", size, hidden));
        LOCKET_TRY(found.up, find_weight(reader_.checkpoint(), prefix + "w3", size, hidden));
        LOCKET_TRY(found.down, find_weight(reader_.checkpoint(), prefix + "w2", hidden, size));
        experts.push_back(std::move(found));
      }
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
