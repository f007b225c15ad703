#include "model/indexer.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "kernels/rotary.h"
#include "kernels/top_k.h"
#include "model/linear.h"
#include "model/row_work.h"
#include "numerics/group_scaled.h"

namespace locket::model {
namespace {

// Index keys are decoded this many at a time, once for all positions of the step.
constexpr std::size_t kKeysAtOnce = 1024;

// Work of which every item is worth a thread, in multiply-adds.
constexpr std::size_t kAWholeThread = std::size_t{1} << 30;

struct Queries {
  tensor::FloatMatrix heads;    // [count, heads * dim], rotated and quantized
  tensor::FloatMatrix weights;  // [count, heads]
};

Queries make_queries(ForwardContext& context, const IndexerConfig& config,
                     const IndexerWeights& weights, const IndexerInput& input, const Step& step) {
  const kernels::Rounding rounding = context.numerics.rounding();
  Queries queries = {.heads = rounded_linear(context, weights.wq_b, input.query_latent),
                     .weights = rounded_linear(context, weights.weights_proj, input.u)};
  const auto factor = static_cast<float>(1.0 / std::sqrt(static_cast<double>(config.dim)) *
                                         (1.0 / std::sqrt(static_cast<double>(config.heads))));
  for (float& weight : queries.weights.values()) {
    weight = kernels::round_value(weight * factor, rounding);
  }
  for_each_row(context, step.rows(), config.heads * config.dim * 8, [&](std::size_t i) {
    for (std::size_t head = 0; head < config.heads; ++head) {
      const auto query = queries.heads.row(i).subspan(head * config.dim, config.dim);
      kernels::rotate_pairs(query.last(config.rope_dim), step.compressed_rotary.cos.row(i),
                            step.compressed_rotary.sin.row(i), kernels::RotaryDirection::kForward,
                            rounding);
    }
    if (context.numerics.quantizes_memory()) {
      numerics::fake_quantize_fp4_index(queries.heads.row(i));
    }
  });
  return queries;
}

// Everything that one position gathers while keys stream past it.
struct PositionSearch {
  std::int64_t visible = 0;
  bool scans_all = false;  // else: nothing to choose, or only pool rows
  kernels::TopKSelector best_rows;
  kernels::TopKSelector best_blocks;
};

// The search of one sequence's rows: its keys stream past all of them.
class PartSearch {
 public:
  PartSearch(const Numerics& numerics, const IndexerConfig& config, const Queries& queries,
             std::size_t key_stream, Step& step, const StepPart& part)
      : numerics_(numerics),
        config_(config),
        queries_(queries),
        key_stream_(key_stream),
        step_(step),
        part_(part),
        searches_(part.count) {}

  // `for_each_index` calls a function with every index below a count, on any threads.
  template <class ForEachIndex>
  void run(const ForEachIndex& for_each_index) {
    prepare();
    scan_all_keys(for_each_index);
    for_each_index(part_.count, [&](std::size_t i) { finish(i); });
  }

  // Keys that were scored in scans of all.
  std::uint64_t scanned_keys() const {
    std::uint64_t keys = 0;
    for (const PositionSearch& search : searches_) {
      if (search.scans_all) keys += static_cast<std::uint64_t>(search.visible);
    }
    return keys;
  }

 private:
  std::int64_t block_size() const { return static_cast<std::int64_t>(config_.pool_block_size); }
  CandidatePool::Blocks& pool(std::size_t i) const {
    return step_.pool.positions[part_.first_row + i];
  }

  // The pool restricts only where there are more blocks than it holds.
  bool pool_is_full(std::int64_t visible) const {
    return (visible + block_size() - 1) / block_size() >
           static_cast<std::int64_t>(config_.pool_blocks);
  }

  void prepare() {
    for (std::size_t i = 0; i < part_.count; ++i) {
      PositionSearch& search = searches_[i];
      search.visible = (part_.position(part_.first_row + i) + 1) / config_.ratio;
      const bool chooses = search.visible > static_cast<std::int64_t>(config_.topk);
      const bool builds =
          config_.pool == IndexerConfig::Pool::kBuild && pool_is_full(search.visible);
      const bool restricted = config_.pool == IndexerConfig::Pool::kUse && !pool(i).holds_all;
      search.scans_all = builds || (chooses && !restricted);
      search.best_rows.reset(config_.topk);
      if (builds) {
        search.best_blocks.reset(config_.pool_blocks);
        pool(i).holds_all = false;
      }
    }
  }

  void decode_keys(std::int64_t first, std::span<float> keys) const {
    const std::size_t count = keys.size() / config_.dim;
    for (std::size_t j = 0; j < count; ++j) {
      decode_row(step_.formats.index_keys,
                 part_.memory->row(key_stream_, first + static_cast<std::int64_t>(j)),
                 keys.subspan(j * config_.dim, config_.dim));
    }
  }

  void score(std::size_t i, std::span<const float> keys, std::span<float> scores) const {
    kernels::index_scores({.heads = config_.heads,
                           .dim = config_.dim,
                           .query = queries_.heads.row(part_.first_row + i),
                           .weights = queries_.weights.row(part_.first_row + i),
                           .keys = keys,
                           .rounding = numerics_.index_scores},
                          scores);
  }

  // All keys, a stretch at a time, past every position that scans them all.
  template <class ForEachIndex>
  void scan_all_keys(const ForEachIndex& for_each_index) {
    std::int64_t most = 0;
    for (const PositionSearch& search : searches_) {
      if (search.scans_all) most = std::max(most, search.visible);
    }
    // A stretch is a whole number of pool blocks.
    const auto stretch =
        static_cast<std::int64_t>((kKeysAtOnce + config_.pool_block_size - 1) /
                                  config_.pool_block_size * config_.pool_block_size);
    std::vector<float> keys;
    for (std::int64_t first = 0; first < most; first += stretch) {
      const auto count = static_cast<std::size_t>(std::min(stretch, most - first));
      keys.resize(count * config_.dim);
      decode_keys(first, keys);
      for_each_index(part_.count, [&](std::size_t i) { scan_stretch(i, first, keys); });
    }
  }

  void scan_stretch(std::size_t i, std::int64_t first, std::span<const float> keys) {
    PositionSearch& search = searches_[i];
    const std::int64_t left = search.visible - first;
    if (!search.scans_all || left <= 0) return;
    const std::size_t count = std::min(keys.size() / config_.dim, static_cast<std::size_t>(left));
    std::vector<float> scores(count);
    score(i, keys.first(count * config_.dim), scores);
    search.best_rows.add(scores, static_cast<std::int32_t>(first));
    if (config_.pool == IndexerConfig::Pool::kBuild && !pool(i).holds_all) {
      add_blocks(search, first, scores);
    }
  }

  void add_blocks(PositionSearch& search, std::int64_t first, std::span<const float> scores) {
    std::vector<float> best;
    for (std::size_t at = 0; at < scores.size(); at += config_.pool_block_size) {
      const std::size_t size = std::min(config_.pool_block_size, scores.size() - at);
      const auto block = scores.subspan(at, size);
      const std::int64_t newest = search.visible - 1 - first - static_cast<std::int64_t>(at);
      const bool holds_newest = newest >= 0 && newest < static_cast<std::int64_t>(size);
      best.push_back(holds_newest ? HUGE_VALF : *std::max_element(block.begin(), block.end()));
    }
    search.best_blocks.add(best, static_cast<std::int32_t>(first / block_size()));
  }

  void finish(std::size_t i) {
    PositionSearch& search = searches_[i];
    std::vector<std::int32_t>& rows = step_.selection.rows[part_.first_row + i];
    if (search.visible <= static_cast<std::int64_t>(config_.topk)) {
      rows.resize(static_cast<std::size_t>(search.visible));
      std::iota(rows.begin(), rows.end(), 0);
    } else {
      if (!search.scans_all) scan_pool(i);
      search.best_rows.take_ascending(rows);
    }
    if (config_.pool == IndexerConfig::Pool::kBuild && !pool(i).holds_all) {
      search.best_blocks.take_ascending(pool(i).chosen);
    }
  }

  // Rows of the pool's blocks only.
  void scan_pool(std::size_t i) {
    PositionSearch& search = searches_[i];
    std::vector<float> keys(config_.pool_block_size * config_.dim);
    std::vector<float> scores(config_.pool_block_size);
    for (const std::int32_t block : pool(i).chosen) {
      const std::int64_t first = block * block_size();
      const auto count = static_cast<std::size_t>(std::min(block_size(), search.visible - first));
      decode_keys(first, std::span(keys).first(count * config_.dim));
      score(i, std::span(keys).first(count * config_.dim), std::span(scores).first(count));
      search.best_rows.add(std::span(scores).first(count), static_cast<std::int32_t>(first));
    }
  }

  const Numerics& numerics_;
  const IndexerConfig& config_;
  const Queries& queries_;
  std::size_t key_stream_;
  Step& step_;
  const StepPart& part_;
  std::vector<PositionSearch> searches_;  // [part.count]
};

// Work of the positions whose search stays inside the pool.
std::uint64_t pool_scan_work(const IndexerConfig& config, const Step& step) {
  if (config.pool != IndexerConfig::Pool::kUse) return 0;
  std::uint64_t rows = 0;
  for (std::size_t i = 0; i < step.rows(); ++i) {
    if (!step.part(i).status) continue;
    const std::int64_t visible = (step.position(i) + 1) / config.ratio;
    const CandidatePool::Blocks& blocks = step.pool.positions[i];
    if (blocks.holds_all || visible <= static_cast<std::int64_t>(config.topk)) continue;
    for (const std::int32_t block : blocks.chosen) {
      const auto size = static_cast<std::int64_t>(config.pool_block_size);
      rows += static_cast<std::uint64_t>(std::min(size, visible - block * size));
    }
  }
  return rows * config.heads * config.dim;
}

// Sequences with many rows one after the other, their rows shared out; then those with few rows,
// each searched by one thread.
std::uint64_t search_parts(ForwardContext& context, const IndexerConfig& config,
                           const Queries& queries, std::size_t key_stream, Step& step) {
  std::vector<PartSearch> few;
  std::uint64_t scanned = 0;
  for (const StepPart& part : step.parts) {
    if (!part.status) continue;
    PartSearch search(context.numerics, config, queries, key_stream, step, part);
    const bool is_alone = step.parts.size() == 1;
    if (!is_alone && part.count < 2 * context.workers.thread_count()) {
      few.push_back(std::move(search));
      continue;
    }
    search.run([&](std::size_t count, const auto& function) {
      for_each_row(context, count, kAWholeThread, function);
    });
    scanned += search.scanned_keys();
  }
  for_each_row(context, few.size(), kAWholeThread, [&](std::size_t index) {
    few[index].run([](std::size_t count, const auto& function) {
      for (std::size_t i = 0; i < count; ++i) function(i);
    });
  });
  for (const PartSearch& search : few) scanned += search.scanned_keys();
  return scanned;
}

}  // namespace

void select_rows(ForwardContext& context, const IndexerConfig& config,
                 const IndexerWeights& weights, const IndexerInput& input, Step& step) {
  const Queries queries = make_queries(context, config, weights, input, step);
  if (config.pool == IndexerConfig::Pool::kBuild) step.pool.positions.assign(step.rows(), {});
  step.selection.rows.assign(step.rows(), {});
  context.work.index_scores += pool_scan_work(config, step);
  const std::uint64_t scanned = search_parts(context, config, queries, input.key_stream, step);
  context.work.index_scores += scanned * config.heads * config.dim;
}

}  // namespace locket::model
