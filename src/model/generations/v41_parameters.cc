#include "model/generations/v41_parameters.h"

#include "base/check.h"

namespace locket::model {
namespace {

std::uint64_t product(std::int64_t a, std::int64_t b) {
  return static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b);
}

// Which tokens go through a part of a layer.
enum class UsedBy { kEveryToken, kGeneratedTokens };

class Counter {
 public:
  explicit Counter(const V41Config& config) : config_(config) {}

  std::vector<ParameterGroup> count() {
    const std::uint64_t table = product(config_.vocabulary_size, config_.hidden_size);
    const auto row = static_cast<std::uint64_t>(config_.hidden_size);
    groups_.push_back(
        {.part = ModelPart::kEmbedding, .stored = table, .prompt = row, .generated = row});
    for (std::int64_t layer = 0; layer < config_.layer_count; ++layer) add_layer(layer);
    add(ModelPart::kNorms, -1, row, UsedBy::kGeneratedTokens);
    add(ModelPart::kHead, -1, table, UsedBy::kGeneratedTokens);
    return std::move(groups_);
  }

 private:
  void add(ModelPart part, std::int64_t layer, std::uint64_t values, UsedBy used_by) {
    groups_.push_back({.part = part,
                       .layer = layer,
                       .stored = values,
                       .prompt = used_by == UsedBy::kEveryToken ? values : 0,
                       .generated = values});
  }

  void add_layer(std::int64_t layer) {
    const LayerRole& role = config_.layers[static_cast<std::size_t>(layer)];
    // Of the boundary layer a prompt token needs what leads to its rows.
    const UsedBy layer_use =
        layer < config_.boundary ? UsedBy::kEveryToken : UsedBy::kGeneratedTokens;
    const UsedBy row_use =
        layer <= config_.boundary ? UsedBy::kEveryToken : UsedBy::kGeneratedTokens;
    const auto hidden = static_cast<std::uint64_t>(config_.hidden_size);
    if (role.engram_index >= 0) add_engram(layer, role, row_use);
    add(ModelPart::kHyperConnections, layer, 2 * site_values(), layer_use);
    add(ModelPart::kNorms, layer, hidden, row_use);
    add(ModelPart::kNorms, layer, hidden, layer_use);
    if (role.writes_rows) add(ModelPart::kRowWriters, layer, writer_values(role), row_use);
    add(ModelPart::kAttentionWeights, layer, attention_values(), layer_use);
    if (role.selects_rows) {
      const std::uint64_t queries =
          product(config_.index_head_count * config_.index_head_dim, config_.q_lora_rank);
      add(ModelPart::kIndexer, layer,
          queries + product(config_.index_head_count, config_.hidden_size), layer_use);
    }
    add_experts(layer, layer_use);
  }

  void add_engram(std::int64_t layer, const LayerRole& role, UsedBy used_by) {
    const std::int64_t columns = (config_.engram.max_ngram_size - 1) * config_.engram.head_count;
    const std::int64_t rows =
        config_.engram.table_rows[static_cast<std::size_t>(role.engram_index)];
    const std::uint64_t looked_up = product(columns, config_.engram_head_dim);
    groups_.push_back({.part = ModelPart::kEngramTables,
                       .layer = layer,
                       .stored = product(rows, config_.engram_head_dim),
                       .prompt = used_by == UsedBy::kEveryToken ? looked_up : 0,
                       .generated = looked_up});
    const std::uint64_t projection = product((config_.stream_count + 1) * config_.hidden_size,
                                             columns * config_.engram_head_dim);
    const std::uint64_t gates = 2 * product(config_.stream_count, config_.hidden_size);
    add(ModelPart::kEngram, layer, projection + gates, used_by);
  }

  void add_experts(std::int64_t layer, UsedBy used_by) {
    const auto experts = static_cast<std::uint64_t>(config_.expert_count);
    const auto chosen = static_cast<std::uint64_t>(config_.experts_per_token);
    const std::uint64_t router = product(config_.expert_count, config_.hidden_size) + experts;
    const std::uint64_t expert = 3 * product(config_.expert_size, config_.hidden_size);
    const bool is_for_all = used_by == UsedBy::kEveryToken;
    // A second bias, for image tokens, is stored and used by no text.
    groups_.push_back({.part = ModelPart::kRouter,
                       .layer = layer,
                       .stored = router + experts,
                       .prompt = is_for_all ? router : 0,
                       .generated = router});
    groups_.push_back({.part = ModelPart::kRoutedExperts,
                       .layer = layer,
                       .stored = experts * expert,
                       .prompt = is_for_all ? chosen * expert : 0,
                       .generated = chosen * expert});
    add(ModelPart::kSharedExpert, layer, expert, used_by);
  }

  // fn, base and scale of one site.
  std::uint64_t site_values() const {
    const std::int64_t mixes = (2 + config_.stream_count) * config_.stream_count;
    return product(mixes, config_.stream_count * config_.hidden_size) +
           static_cast<std::uint64_t>(mixes) + 3;
  }

  // wq_a, wq_b, wkv, wo_a, wo_b, q_norm, kv_norm, sinks.
  std::uint64_t attention_values() const {
    const std::int64_t heads_width = config_.head_count * config_.head_dim;
    const std::int64_t low_rank = config_.o_groups * config_.o_lora_rank;
    return product(config_.q_lora_rank, config_.hidden_size + heads_width) +
           product(config_.head_dim, config_.hidden_size) +
           product(low_rank, heads_width / config_.o_groups + config_.hidden_size) +
           static_cast<std::uint64_t>(config_.q_lora_rank + config_.head_dim + config_.head_count);
  }

  // Compressor and index key projection, with their norms.
  std::uint64_t writer_values(const LayerRole& role) const {
    const std::int64_t projections = role.ratio > 1 ? 2 : 1;
    return product(projections * config_.head_dim, config_.hidden_size) +
           product(config_.index_head_dim, config_.head_dim) +
           static_cast<std::uint64_t>(config_.head_dim + config_.index_head_dim);
  }

  const V41Config& config_;
  std::vector<ParameterGroup> groups_;
};

}  // namespace

std::string_view model_part_name(ModelPart part) {
  switch (part) {
    case ModelPart::kEmbedding:
      return "embedding";
    case ModelPart::kEngramTables:
      return "Engram tables";
    case ModelPart::kEngram:
      return "Engram projections";
    case ModelPart::kHyperConnections:
      return "hyper-connections";
    case ModelPart::kNorms:
      return "norms";
    case ModelPart::kAttentionWeights:
      return "attention weights";
    case ModelPart::kAttention:
      return "attention over rows";
    case ModelPart::kIndexer:
      return "indexer weights";
    case ModelPart::kIndexScan:
      return "index scan";
    case ModelPart::kRowWriters:
      return "row writers";
    case ModelPart::kRouter:
      return "routers";
    case ModelPart::kRoutedExperts:
      return "routed experts";
    case ModelPart::kSharedExpert:
      return "shared experts";
    case ModelPart::kHead:
      return "output head";
    case ModelPart::kCount:
      break;
  }
  LOCKET_CHECK(false);
}

std::vector<ParameterGroup> v41_parameters(const V41Config& config) {
  return Counter(config).count();
}

}  // namespace locket::model
