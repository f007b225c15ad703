#include "model/csa2_attention.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/kernel_table.h"
#include "kernels/rms_norm.h"
#include "kernels/rotary.h"
#include "kernels/rounding.h"
#include "kernels/row_codec.h"
#include "kernels/sparse_attention.h"
#include "model/linear.h"
#include "model/row_work.h"
#include "model/window.h"

namespace locket::model {
namespace {

using kernels::RotaryDirection;

// About how many multiply-adds the scalar work on one value is worth.
constexpr std::size_t kWorkPerRotatedValue = 16;

const RotaryTable& table_of(const Csa2Config& config, const Step& step) {
  return config.ratio > 0 ? step.compressed_rotary : step.plain_rotary;
}

// The last rope_dim dims of every head of every position.
void rotate_heads(ForwardContext& context, const Csa2Config& config, const Step& step,
                  RotaryDirection direction, tensor::FloatMatrix& heads) {
  const RotaryTable& table = table_of(config, step);
  const std::size_t head_count = heads.columns() / config.head_dim;
  const auto rotate_row = [&](std::size_t i) {
    for (std::size_t head = 0; head < head_count; ++head) {
      const auto values = heads.row(i).subspan(head * config.head_dim, config.head_dim);
      kernels::rotate_pairs(values.last(config.rope_dim), table.cos.row(i), table.sin.row(i),
                            direction, context.numerics.rounding());
    }
  };
  for_each_row(context, heads.rows(), head_count * config.rope_dim * kWorkPerRotatedValue,
               rotate_row);
}

void norm_rows(ForwardContext& context, float eps, const std::vector<float>& weight,
               tensor::FloatMatrix& rows) {
  for_each_row(context, rows.rows(), rows.columns() * kWorkPerNormedValue, [&](std::size_t i) {
    kernels::rms_norm(rows.row(i), weight, eps, context.numerics.rounding(), rows.row(i));
  });
}

void norm_heads(ForwardContext& context, const Csa2Config& config, tensor::FloatMatrix& heads) {
  for_each_row(context, heads.rows(), heads.columns() * kWorkPerNormedValue, [&](std::size_t i) {
    for (std::size_t head = 0; head < config.heads; ++head) {
      const auto values = heads.row(i).subspan(head * config.head_dim, config.head_dim);
      const float factor = kernels::reciprocal_rms(values, config.norm_eps);
      for (float& value : values) {
        value = kernels::round_value(value * factor, context.numerics.rounding());
      }
    }
  });
}

// Where the rows of the slots come from.
struct SlotSources {
  const std::vector<WindowRows>& windows;  // [parts]
  const LayerMemory& memory;
};

// The slots of one row: its window, then its selected rows.
void list_slots(const Csa2Config& config, const SlotSources& sources, const Step& step,
                std::size_t i, std::vector<kernels::AttentionRow>& slots) {
  const auto window_slots = static_cast<std::size_t>(config.window);
  const std::size_t selected = config.ratio > 0 ? step.selection.rows[i].size() : 0;
  slots.assign(window_slots + selected, {});
  const StepPart& part = step.part(i);
  if (!part.status) return;
  const WindowRows& window = sources.windows[step.part_of_row[i]];
  const std::int64_t position = part.position(i);
  const std::int64_t start = std::max(part.segment_start, position - config.window + 1);
  for (std::int64_t p = start; p <= position; ++p) {
    slots[static_cast<std::size_t>(p - start)] = {.bytes = window.row(p).data(),
                                                  .format = step.formats.window};
  }
  for (std::size_t n = 0; n < selected; ++n) {
    const auto row =
        part.memory->row(static_cast<std::size_t>(sources.memory.rows), step.selection.rows[i][n]);
    slots[window_slots + n] = {.bytes = row.data(), .format = step.formats.rows};
  }
}

std::vector<WindowRows> update_windows(ForwardContext& context, const WindowPlace& place,
                                       const tensor::FloatMatrix& rows, const Step& step) {
  std::vector<WindowRows> windows(step.parts.size());
  context.workers.parallel_for(windows.size(), 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t part = begin; part < end; ++part) {
      if (!step.parts[part].status) continue;
      windows[part] = update_window(place, rows, step.parts[part], step.formats.window);
    }
  });
  return windows;
}

// Multiply-adds of attend(): both products over the slots in use.
std::uint64_t attention_work(const Csa2Config& config, const Step& step) {
  std::uint64_t slots = 0;
  for (std::size_t i = 0; i < step.rows(); ++i) {
    slots += static_cast<std::uint64_t>(
        std::min(config.window, step.position(i) - step.part(i).segment_start + 1));
    if (config.ratio > 0) slots += step.selection.rows[i].size();
  }
  return slots * config.heads * config.head_dim * 2;
}

// How the heads of a position are cut when positions alone do not keep every thread busy. The bits
// do not depend on it.
struct HeadCut {
  std::size_t parts;
  std::size_t heads;
  std::size_t step;  // of a cut; kernels take 16 heads at a time

  HeadCut(const Csa2Config& config, std::size_t rows, std::size_t threads)
      : heads(config.heads), step(config.heads >= 16 * threads ? 16 : 1) {
    constexpr std::size_t kEnoughRows = 8;  // a thread's: one more or less hardly counts
    const bool even = rows % threads == 0 || rows >= kEnoughRows * threads;
    parts = even ? 1 : std::min(heads, threads);
  }

  std::size_t begin(std::size_t part) const {
    return std::min(heads, (heads + step - 1) / step * part / parts * step);
  }
};

// Attention of all positions: heads [count, heads * head_dim], before the inverse rotation.
tensor::FloatMatrix attend(ForwardContext& context, const Csa2Config& config,
                           const Csa2Weights& weights, const tensor::FloatMatrix& query,
                           const SlotSources& sources, const Step& step) {
  tensor::FloatMatrix heads(step.rows(), config.heads * config.head_dim);
  const auto scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(config.head_dim)));
  const HeadCut cut(config, step.rows(), context.workers.thread_count());
  const std::size_t items = step.rows() * cut.parts;
  const std::size_t grain = WorkerPool::grain_for(attention_work(config, step) / items);
  context.workers.parallel_for(items, grain, [&](std::size_t begin, std::size_t end) {
    std::vector<kernels::AttentionRow> slots;
    for (std::size_t item = begin; item < end; ++item) {
      const std::size_t i = item / cut.parts;
      const std::size_t first = cut.begin(item % cut.parts);
      const std::size_t count = cut.begin(item % cut.parts + 1) - first;
      list_slots(config, sources, step, i, slots);
      const std::size_t from = first * config.head_dim;
      const std::size_t size = count * config.head_dim;
      kernels::sparse_attention({.heads = count,
                                 .head_dim = config.head_dim,
                                 .scale = scale,
                                 .query = query.row(i).subspan(from, size),
                                 .rows = slots,
                                 .sink = std::span(weights.sink).subspan(first, count),
                                 .rounding = context.numerics.rounding()},
                                heads.row(i).subspan(from, size));
    }
  });
  return heads;
}

// Every group of heads times its own weights, all groups in one go: [rows, groups * rank].
tensor::FloatMatrix project_groups(ForwardContext& context, const Csa2Config& config,
                                   const Csa2Weights& weights, const tensor::FloatMatrix& heads) {
  const std::size_t groups = config.output_groups;
  const std::size_t width = heads.columns() / groups;
  const std::size_t rank = weights.wo_a.front().rows;
  const std::size_t row_groups = weights.wo_a.front().row_groups();
  tensor::FloatMatrix joined(heads.rows(), groups * rank);
  const kernels::KernelTable& table = kernels::active_kernels();
  const std::size_t grain = WorkerPool::grain_for(heads.rows() * width * 16);
  const auto multiply = [&](std::size_t begin, std::size_t end) {
    while (begin < end) {
      const std::size_t group = begin / row_groups;
      const std::size_t stop = std::min(end, (group + 1) * row_groups);
      const kernels::ActivationRows rows = {.data = heads.values().data() + group * width,
                                            .stride = heads.columns(),
                                            .tokens = heads.rows(),
                                            .values = context.numerics.activation_values()};
      table.matmul_groups(weights.wo_a[group], rows, joined.values().data() + group * rank,
                          joined.columns(), begin - group * row_groups, stop - group * row_groups);
      begin = stop;
    }
  };
  context.workers.parallel_for(groups * row_groups, grain, multiply);
  context.work.matmul += heads.rows() * groups * rank * width;
  kernels::round_values(joined.values(), context.numerics.rounding());
  return joined;
}

tensor::FloatMatrix project_output(ForwardContext& context, const Csa2Config& config,
                                   const Csa2Weights& weights, const tensor::FloatMatrix& heads) {
  const tensor::FloatMatrix joined = project_groups(context, config, weights, heads);
  return rounded_linear(context, weights.wo_b, quantize_activations(context, joined));
}

void observe_window(const ForwardContext& context, const Csa2Config& config, const Step& step,
                    const WindowRows& window) {
  if (context.observer == nullptr || !step.parts.front().status) return;
  tensor::FloatMatrix newest(step.rows(), config.head_dim);
  for (std::size_t i = 0; i < step.rows(); ++i) {
    kernels::decode_row(step.formats.window, window.row(step.position(i)), newest.row(i));
  }
  context.observer->on_floats({.name = "window",
                               .layer = config.layer,
                               .first_position = step.first_position(),
                               .width = config.head_dim},
                              newest.values());
}

// Block numbers of the candidate pool; every block if it holds all.
void observe_pool(const ForwardContext& context, const Csa2Config& config, const Step& step) {
  const auto block_size = static_cast<std::int64_t>(config.indexer.pool_block_size);
  std::vector<std::int32_t> blocks;
  for (std::size_t i = 0; i < step.rows(); ++i) {
    std::vector<std::int32_t> chosen = step.pool.positions[i].chosen;
    if (step.pool.positions[i].holds_all) {
      const std::int64_t visible = (step.position(i) + 1) / config.ratio;
      chosen.resize(static_cast<std::size_t>((visible + block_size - 1) / block_size));
      std::iota(chosen.begin(), chosen.end(), 0);
    }
    chosen.resize(config.indexer.pool_blocks, -1);
    blocks.insert(blocks.end(), chosen.begin(), chosen.end());
  }
  context.observer->on_integers({.name = "pool",
                                 .layer = config.layer,
                                 .first_position = step.first_position(),
                                 .width = config.indexer.pool_blocks},
                                blocks);
}

void observe_selection(const ForwardContext& context, const Csa2Config& config, const Step& step) {
  if (context.observer == nullptr) return;
  std::vector<std::int32_t> rows;
  for (const auto& chosen : step.selection.rows) {
    rows.insert(rows.end(), chosen.begin(), chosen.end());
    rows.insert(rows.end(), config.indexer.topk - chosen.size(), -1);
  }
  context.observer->on_integers({.name = "index",
                                 .layer = config.layer,
                                 .first_position = step.first_position(),
                                 .width = config.indexer.topk},
                                rows);
  if (config.indexer.pool == IndexerConfig::Pool::kBuild) observe_pool(context, config, step);
}

}  // namespace

tensor::FloatMatrix csa2_attention(ForwardContext& context, const Csa2Config& config,
                                   const Csa2Weights& weights, const tensor::FloatMatrix& u,
                                   const LayerMemory& memory, Step& step) {
  const tensor::FloatMatrix input = quantize_activations(context, u);
  tensor::FloatMatrix latent = rounded_linear(context, weights.wq_a, input);
  norm_rows(context, config.norm_eps, weights.q_norm, latent);
  latent = quantize_activations(context, latent);
  tensor::FloatMatrix query = rounded_linear(context, weights.wq_b, latent);
  if (config.query_norm == Csa2Config::QueryNorm::kPerHead) norm_heads(context, config, query);
  rotate_heads(context, config, step, RotaryDirection::kForward, query);

  tensor::FloatMatrix rows = rounded_linear(context, weights.wkv, input);
  norm_rows(context, config.norm_eps, weights.kv_norm, rows);
  rotate_heads(context, config, step, RotaryDirection::kForward, rows);
  const std::vector<WindowRows> windows = update_windows(
      context, {.slots = config.window, .ring = static_cast<std::size_t>(memory.ring)}, rows, step);
  observe_window(context, config, step, windows.front());
  if (config.selects_rows) {
    select_rows(
        context, config.indexer, weights.indexer,
        {.u = u, .query_latent = latent, .key_stream = static_cast<std::size_t>(memory.index_keys)},
        step);
    observe_selection(context, config, step);
  }
  context.work.attention += attention_work(config, step);
  tensor::FloatMatrix heads =
      attend(context, config, weights, query, {.windows = windows, .memory = memory}, step);
  rotate_heads(context, config, step, RotaryDirection::kInverse, heads);
  return project_output(context, config, weights, heads);
}

}  // namespace locket::model
