#include "model/mla_attention.h"

#include <algorithm>
#include <cstdint>

#include "kernels/kernel_table.h"
#include "kernels/rms_norm.h"
#include "kernels/rotary.h"
#include "kernels/row_codec.h"
#include "kernels/sparse_attention.h"
#include "model/even_shares.h"
#include "model/linear.h"
#include "model/row_work.h"
#include "model/step_tools.h"

namespace locket::model {
namespace {

// About how many multiply-adds the scalar work on one value is worth.
constexpr std::size_t kWorkPerRotatedValue = 16;

void rotate(const ForwardContext& context, const Step& step, std::size_t row,
            std::span<float> pairs) {
  kernels::rotate_pairs(pairs, step.plain_rotary.cos.row(row), step.plain_rotary.sin.row(row),
                        kernels::RotaryDirection::kForward, context.numerics.rounding());
}

// The queries' own latent; empty where queries come straight from the input.
tensor::FloatMatrix query_latent(ForwardContext& context, const MlaConfig& config,
                                 const MlaWeights& weights, const tensor::FloatMatrix& u) {
  if (weights.q_a.rows == 0) return {};
  tensor::FloatMatrix latent = rounded_linear(context, weights.q_a, u);
  for_each_row(context, latent.rows(), latent.columns() * kWorkPerNormedValue, [&](std::size_t i) {
    kernels::rms_norm(latent.row(i), weights.q_norm, config.norm_eps, context.numerics.rounding(),
                      latent.row(i));
  });
  return latent;
}

// One product per head: head h takes columns from h * in_step on of its input and writes columns
// from h * out_step on.
struct HeadProducts {
  std::span<const kernels::WeightMatrix> weights;  // [heads], of one shape
  std::size_t in_step;
  std::size_t out_step;
};

void multiply_heads(ForwardContext& context, const HeadProducts& products,
                    const tensor::FloatMatrix& in, tensor::FloatMatrix& out) {
  const kernels::WeightMatrix& shape = products.weights.front();
  const std::size_t row_groups = shape.row_groups();
  const kernels::KernelTable& table = kernels::active_kernels();
  const auto multiply = [&](std::size_t begin, std::size_t end) {
    while (begin < end) {
      const std::size_t head = begin / row_groups;
      const std::size_t stop = std::min(end, (head + 1) * row_groups);
      const kernels::ActivationRows rows = {.data = in.values().data() + head * products.in_step,
                                            .stride = in.columns(),
                                            .tokens = in.rows(),
                                            .values = context.numerics.activation_values()};
      table.matmul_groups(products.weights[head], rows,
                          out.values().data() + head * products.out_step, out.columns(),
                          begin - head * row_groups, stop - head * row_groups);
      begin = stop;
    }
  };
  const std::size_t heads = products.weights.size();
  context.workers.parallel_for(heads * row_groups,
                               WorkerPool::grain_for(in.rows() * shape.columns * 16), multiply);
  context.work.matmul += in.rows() * heads * shape.rows * shape.columns;
}

// Queries as rows are: per head the query of the latent and the rotated query of the key.
tensor::FloatMatrix absorbed_queries(ForwardContext& context, const MlaConfig& config,
                                     const MlaWeights& weights, const tensor::FloatMatrix& input,
                                     const Step& step) {
  tensor::FloatMatrix query = rounded_linear(context, weights.q_b, input);
  tensor::FloatMatrix absorbed(query.rows(), config.heads * config.row_width());
  multiply_heads(context,
                 {.weights = weights.absorb_key,
                  .in_step = config.query_dim(),
                  .out_step = config.row_width()},
                 query, absorbed);
  const std::size_t work = config.heads * config.rope_dim * kWorkPerRotatedValue;
  for_each_row(context, query.rows(), work, [&](std::size_t i) {
    for (std::size_t head = 0; head < config.heads; ++head) {
      const auto rotated =
          query.row(i).subspan(head * config.query_dim() + config.nope_dim, config.rope_dim);
      rotate(context, step, i, rotated);
      std::ranges::copy(
          rotated, absorbed.row(i).subspan(head * config.row_width() + config.latent_rank).begin());
    }
  });
  return absorbed;
}

// Rows that are in the memory already are left out, and those of parts that have failed.
void write_rows(ForwardContext& context, const MlaConfig& config, const MlaWeights& weights,
                const tensor::FloatMatrix& u, std::size_t stream, const Step& step) {
  tensor::FloatMatrix rows = rounded_linear(context, weights.kv_a, u);
  for_each_row(context, rows.rows(), rows.columns() * kWorkPerRotatedValue, [&](std::size_t i) {
    const StepPart& part = step.part(i);
    if (!part.status || part.position(i) < part.write_from) return;
    const std::span<float> latent = rows.row(i).first(config.latent_rank);
    kernels::rms_norm(latent, weights.kv_norm, config.norm_eps, context.numerics.rounding(),
                      latent);
    rotate(context, step, i, rows.row(i).last(config.rope_dim));
    kernels::encode_row(step.formats.rows, rows.row(i), part.memory->row(stream, part.position(i)));
  });
}

// The rows that positions read; the next position of a sequence only adds to a list of all.
class RowLists {
 public:
  RowLists(const Step& step, std::size_t stream, bool is_selected)
      : step_(step), stream_(stream), is_selected_(is_selected) {}

  std::size_t count(std::size_t row) const {
    if (is_selected_) return step_.selection.rows[row].size();
    return static_cast<std::size_t>(step_.position(row) + 1);
  }

  // Valid until the next call.
  std::span<const kernels::AttentionRow> of(std::size_t row) {
    const StepPart& part = step_.part(row);
    if (!part.status) return {};
    if (is_selected_ || part_ != &part) slots_.clear();
    part_ = &part;
    const std::size_t wanted = count(row);
    while (slots_.size() < wanted) {
      const auto number = is_selected_ ? step_.selection.rows[row][slots_.size()]
                                       : static_cast<std::int64_t>(slots_.size());
      slots_.push_back(
          {.bytes = part.memory->row(stream_, number).data(), .format = step_.formats.rows});
    }
    return std::span(slots_).first(wanted);
  }

 private:
  const Step& step_;
  std::size_t stream_;
  bool is_selected_;
  const StepPart* part_ = nullptr;
  std::vector<kernels::AttentionRow> slots_;
};

// How the heads of a position are cut, so that few positions keep every thread busy. Kernels take
// 16 heads at a time. The bits do not depend on it.
struct HeadCut {
  std::size_t heads;
  std::size_t parts;

  HeadCut(std::size_t head_count, std::size_t threads)
      : heads(head_count), parts(std::min((head_count + 15) / 16, threads)) {}

  std::size_t begin(std::size_t part) const {
    return part == parts ? heads : (heads + 15) / 16 * part / parts * 16;
  }
};

// The average of the latents of all heads: [rows, heads * latent_rank].
tensor::FloatMatrix attend(ForwardContext& context, const MlaConfig& config,
                           const tensor::FloatMatrix& queries, const RowLists& lists,
                           const Step& step) {
  tensor::FloatMatrix averages(step.rows(), config.heads * config.latent_rank);
  const HeadCut cut(config.heads, context.workers.thread_count());
  const std::size_t width = config.row_width();
  EvenShares shares;
  for (std::size_t i = 0; i < step.rows(); ++i) {
    const std::uint64_t work =
        std::max<std::uint64_t>(1, lists.count(i) * config.heads * (width + config.latent_rank));
    context.work.attention += work;
    shares.add(cut.parts, work);
  }
  shares.run(context.workers, [&](Share share) {
    RowLists own = lists;
    shares.for_each(share, [&](std::size_t i, Share parts) {
      const std::size_t first = cut.begin(parts.begin);
      const std::size_t count = cut.begin(parts.end) - first;
      kernels::sparse_attention(
          {.heads = count,
           .head_dim = width,
           .scale = config.softmax_scale,
           .query = queries.row(i).subspan(first * width, count * width),
           .rows = own.of(i),
           .sink = {},
           .rounding = context.numerics.rounding(),
           .value_dim = config.latent_rank},
          averages.row(i).subspan(first * config.latent_rank, count * config.latent_rank));
    });
  });
  return averages;
}

void observe_selection(const ForwardContext& context, const MlaConfig& config, const Step& step) {
  if (context.observer == nullptr) return;
  std::vector<std::int32_t> tokens;
  for (const auto& chosen : step.selection.rows) {
    tokens.insert(tokens.end(), chosen.begin(), chosen.end());
    tokens.insert(tokens.end(), config.indexer->topk - chosen.size(), -1);
  }
  context.observer->on_integers({.name = "index",
                                 .layer = config.layer,
                                 .first_position = step.first_position(),
                                 .width = config.indexer->topk},
                                tokens);
}

}  // namespace

tensor::FloatMatrix mla_attention(ForwardContext& context, const MlaConfig& config,
                                  const MlaWeights& weights, const tensor::FloatMatrix& u,
                                  const MlaMemory& memory, Step& step) {
  const tensor::FloatMatrix latent = query_latent(context, config, weights, u);
  const tensor::FloatMatrix queries =
      absorbed_queries(context, config, weights, latent.empty() ? u : latent, step);
  write_rows(context, config, weights, u, memory.rows, step);
  if (config.indexer) {
    select_tokens(context, *config.indexer, weights.indexer,
                  {.u = u, .query_latent = latent, .key_stream = memory.index_keys}, step);
    observe_selection(context, config, step);
  }
  wait_for_rows(step);
  const RowLists lists(step, memory.rows, config.indexer.has_value());
  const tensor::FloatMatrix averages = attend(context, config, queries, lists, step);
  tensor::FloatMatrix heads(step.rows(), config.heads * config.value_dim);
  multiply_heads(
      context,
      {.weights = weights.value_up, .in_step = config.latent_rank, .out_step = config.value_dim},
      averages, heads);
  return rounded_linear(context, weights.output, heads);
}

}  // namespace locket::model
