#include "model/generations/v41_work.h"

#include <algorithm>
#include <functional>

#include "base/check.h"

namespace locket::model {
namespace {

std::uint64_t to_count(std::int64_t value) { return static_cast<std::uint64_t>(value); }

// Rows of a memory with `ratio` tokens per row that a position sees.
std::int64_t visible_rows(std::int64_t ratio, std::int64_t position) {
  return (position + 1) / ratio;
}

// Keys that the indexer of a layer scores for one position.
std::int64_t scored_keys(const V41Config& config, const LayerRole& role, std::int64_t position) {
  const std::int64_t visible = visible_rows(role.ratio, position);
  const std::int64_t blocks = (visible + config.pool_block_size - 1) / config.pool_block_size;
  const bool pool_is_full = blocks > config.pool_blocks;
  const bool chooses = visible > config.index_topk;
  if (role.builds_pool && pool_is_full) return visible;
  if (!chooses) return 0;
  if (!role.uses_pool || !pool_is_full) return visible;
  // The newest block is always in the pool and may be partly filled; the others are whole.
  const std::int64_t newest = visible - (blocks - 1) * config.pool_block_size;
  return (config.pool_blocks - 1) * config.pool_block_size + newest;
}

// Slots that the attention of one position reads: its window, then the chosen rows.
std::int64_t slots_in_use(const V41Config& config, const LayerRole& role, std::int64_t position,
                          std::int64_t segment_start) {
  const std::int64_t window = std::min(config.sliding_window, position - segment_start + 1);
  if (role.ratio == 0) return window;
  return window + std::min(config.index_topk, visible_rows(role.ratio, position));
}

// Collects the operations of a run of positions.
class WorkList {
 public:
  WorkList(const V41Config& config, PositionRange positions, std::int64_t segment_start)
      : config_(config),
        positions_(positions),
        segment_start_(segment_start),
        tokens_(to_count(positions.count)) {
    LOCKET_CHECK(positions.first >= segment_start && positions.count >= 0);
  }

  std::vector<WorkOperation> take() { return std::move(operations_); }

  void add_engram(std::int64_t layer) {
    if (role(layer).engram_index < 0) return;
    const std::int64_t columns = (config_.engram.max_ngram_size - 1) * config_.engram.head_count;
    const std::int64_t rows = (config_.stream_count + 1) * config_.hidden_size;
    add({"engram wkv", ModelPart::kEngram, layer, tokens_, to_count(rows),
         to_count(columns * config_.engram_head_dim)});
  }

  // Compressor of every token; index keys of the rows that these positions complete.
  void add_row_writers(std::int64_t layer) {
    const std::int64_t ratio = role(layer).ratio;
    const std::uint64_t dim = to_count(config_.head_dim);
    const std::uint64_t hidden = to_count(config_.hidden_size);
    add({"compressor wkv", ModelPart::kRowWriters, layer, tokens_, dim, hidden});
    if (ratio > 1) {
      add({"compressor wgate", ModelPart::kRowWriters, layer, tokens_, dim, hidden});
    }
    const std::int64_t end = positions_.first + positions_.count;
    add({"index key wk", ModelPart::kRowWriters, layer,
         to_count(end / ratio - positions_.first / ratio), to_count(config_.index_head_dim), dim});
  }

  void add_attention_and_experts(std::int64_t layer) {
    add_site("attention hc", layer);
    add_attention(layer);
    add_site("ffn hc", layer);
    add_experts(layer);
  }

 private:
  const LayerRole& role(std::int64_t layer) const {
    return config_.layers[static_cast<std::size_t>(layer)];
  }

  void add(const WorkOperation& operation) { operations_.push_back(operation); }

  std::uint64_t sum_positions(const std::function<std::int64_t(std::int64_t)>& count) const {
    std::uint64_t sum = 0;
    for (std::int64_t i = 0; i < positions_.count; ++i)
      sum += to_count(count(positions_.first + i));
    return sum;
  }

  void add_site(std::string_view name, std::int64_t layer) {
    const std::int64_t streams = config_.stream_count;
    add({name, ModelPart::kHyperConnections, layer, tokens_, to_count((2 + streams) * streams),
         to_count(streams * config_.hidden_size)});
  }

  void add_attention(std::int64_t layer) {
    const ModelPart weights = ModelPart::kAttentionWeights;
    const std::uint64_t hidden = to_count(config_.hidden_size);
    const std::uint64_t rank = to_count(config_.q_lora_rank);
    const std::uint64_t dim = to_count(config_.head_dim);
    const std::uint64_t heads = to_count(config_.head_count);
    const std::uint64_t groups = to_count(config_.o_groups);
    const std::uint64_t low_rank = to_count(config_.o_lora_rank);
    add({"wq_a", weights, layer, tokens_, rank, hidden});
    add({"wq_b", weights, layer, tokens_, heads * dim, rank});
    add({"wkv", weights, layer, tokens_, dim, hidden});
    if (role(layer).selects_rows) add_indexer(layer);
    const std::uint64_t slots = sum_positions([&](std::int64_t position) {
      return slots_in_use(config_, role(layer), position, segment_start_);
    });
    add({"slots", ModelPart::kAttention, layer, 2 * slots, heads, dim});
    add({"wo_a", weights, layer, tokens_ * groups, low_rank, heads * dim / groups});
    add({"wo_b", weights, layer, tokens_, hidden, groups * low_rank});
  }

  void add_indexer(std::int64_t layer) {
    const std::uint64_t heads = to_count(config_.index_head_count);
    const std::uint64_t dim = to_count(config_.index_head_dim);
    add({"indexer wq_b", ModelPart::kIndexer, layer, tokens_, heads * dim,
         to_count(config_.q_lora_rank)});
    add({"indexer weights_proj", ModelPart::kIndexer, layer, tokens_, heads,
         to_count(config_.hidden_size)});
    const std::uint64_t keys = sum_positions(
        [&](std::int64_t position) { return scored_keys(config_, role(layer), position); });
    add({"index keys", ModelPart::kIndexScan, layer, keys, heads, dim});
  }

  void add_experts(std::int64_t layer) {
    const std::uint64_t hidden = to_count(config_.hidden_size);
    const std::uint64_t size = to_count(config_.expert_size);
    const std::uint64_t chosen = tokens_ * to_count(config_.experts_per_token);
    add({"gate", ModelPart::kRouter, layer, tokens_, to_count(config_.expert_count), hidden});
    add({"experts w1, w3", ModelPart::kRoutedExperts, layer, chosen, 2 * size, hidden});
    add({"experts w2", ModelPart::kRoutedExperts, layer, chosen, hidden, size});
    add({"shared w1, w3", ModelPart::kSharedExpert, layer, tokens_, 2 * size, hidden});
    add({"shared w2", ModelPart::kSharedExpert, layer, tokens_, hidden, size});
  }

  const V41Config& config_;
  PositionRange positions_;
  std::int64_t segment_start_;
  std::uint64_t tokens_;
  std::vector<WorkOperation> operations_;
};

void append(std::vector<WorkOperation>& list, const std::vector<WorkOperation>& more) {
  list.insert(list.end(), more.begin(), more.end());
}

}  // namespace

std::vector<WorkOperation> encoder_work(const V41Config& config, PositionRange positions) {
  WorkList work(config, positions, 0);
  for (std::int64_t layer = 0; layer < config.boundary; ++layer) {
    work.add_engram(layer);
    if (config.layers[static_cast<std::size_t>(layer)].writes_rows) work.add_row_writers(layer);
    work.add_attention_and_experts(layer);
  }
  work.add_engram(config.boundary);
  work.add_row_writers(config.boundary);
  return work.take();
}

std::vector<WorkOperation> decoder_work(const V41Config& config, PositionRange positions,
                                        std::int64_t segment_start) {
  WorkList work(config, positions, segment_start);
  for (std::int64_t layer = config.boundary; layer < config.layer_count; ++layer) {
    if (layer != config.boundary) work.add_engram(layer);
    work.add_attention_and_experts(layer);
  }
  return work.take();
}

WorkOperation head_work(const V41Config& config, std::int64_t position_count) {
  return {"head",
          ModelPart::kHead,
          -1,
          to_count(position_count),
          to_count(config.vocabulary_size),
          to_count(config.hidden_size)};
}

std::vector<WorkOperation> prompt_work(const V41Config& config, std::int64_t prompt_tokens,
                                       std::int64_t replayed) {
  LOCKET_CHECK(replayed >= 1 && replayed <= prompt_tokens);
  const std::int64_t start = prompt_tokens - replayed;
  std::vector<WorkOperation> work = encoder_work(config, {.first = 0, .count = prompt_tokens});
  append(work, decoder_work(config, {.first = start, .count = replayed}, start));
  work.push_back(head_work(config, 1));
  return work;
}

std::vector<WorkOperation> generated_token_work(const V41Config& config, std::int64_t position,
                                                std::int64_t segment_start) {
  const PositionRange one = {.first = position, .count = 1};
  std::vector<WorkOperation> work = encoder_work(config, one);
  append(work, decoder_work(config, one, segment_start));
  work.push_back(head_work(config, 1));
  return work;
}

WorkCount sum_work(std::span<const WorkOperation> operations) {
  WorkCount sum;
  for (const WorkOperation& operation : operations) {
    const std::uint64_t products = operation.multiply_adds();
    if (operation.part == ModelPart::kAttention) {
      sum.attention += products;
    } else if (operation.part == ModelPart::kIndexScan) {
      sum.index_scores += products;
    } else {
      sum.matmul += products;
    }
  }
  return sum;
}

}  // namespace locket::model
