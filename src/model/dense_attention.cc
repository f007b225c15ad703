#include "model/dense_attention.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/check.h"
#include "kernels/rotary.h"
#include "kernels/row_codec.h"
#include "kernels/sparse_attention.h"
#include "model/linear.h"
#include "model/row_work.h"
#include "model/step_tools.h"

namespace locket::model {
namespace {

// About how many multiply-adds the scalar work on one value is worth.
constexpr std::size_t kWorkPerRotatedValue = 16;

void rotate_heads(ForwardContext& context, const DenseAttentionConfig& config, const Step& step,
                  tensor::FloatMatrix& heads) {
  const RotaryTable& table = step.plain_rotary;
  for_each_row(context, heads.rows(), heads.columns() * kWorkPerRotatedValue, [&](std::size_t i) {
    for (std::size_t first = 0; first < heads.columns(); first += config.head_dim) {
      kernels::rotate_halves(heads.row(i).subspan(first, config.head_dim), table.cos.row(i),
                             table.sin.row(i), kernels::RotaryDirection::kForward,
                             context.numerics.rounding());
    }
  });
}

// Rows that are in the memory already are left out, and those of parts that have failed.
void write_rows(ForwardContext& context, const DenseAttentionConfig& config,
                const tensor::FloatMatrix& keys, const tensor::FloatMatrix& values,
                const Step& step) {
  const std::size_t dim = config.head_dim;
  for_each_row(context, keys.rows(), config.row_width() * kWorkPerNormedValue, [&](std::size_t i) {
    const StepPart& part = step.part(i);
    if (!part.status || part.position(i) < part.write_from) return;
    std::vector<float> row(config.row_width());
    for (std::size_t head = 0; head < config.kv_heads; ++head) {
      const std::span<float> target = std::span(row).subspan(head * 2 * dim, 2 * dim);
      std::ranges::copy(keys.row(i).subspan(head * dim, dim), target.begin());
      std::ranges::copy(values.row(i).subspan(head * dim, dim), target.subspan(dim).begin());
    }
    kernels::encode_row(step.formats.rows, row, part.memory->row(config.stream, part.position(i)));
  });
}

// The part of every earlier row that belongs to one KV head.
void list_slots(const DenseAttentionConfig& config, const Step& step, std::size_t i,
                std::size_t kv_head, std::vector<kernels::AttentionRow>& slots) {
  slots.clear();
  const StepPart& part = step.part(i);
  if (!part.status) return;
  const kernels::RowFormat format = step.formats.rows;
  const std::size_t offset = kv_head * kernels::row_bytes(format, 2 * config.head_dim);
  for (std::int64_t position = 0; position <= part.position(i); ++position) {
    slots.push_back(
        {.bytes = part.memory->row(config.stream, position).data() + offset, .format = format});
  }
}

// Multiply-adds of attend(): both products over the rows in sight.
std::uint64_t attention_work(const DenseAttentionConfig& config, const Step& step) {
  std::uint64_t rows = 0;
  for (std::size_t i = 0; i < step.rows(); ++i) {
    rows += static_cast<std::uint64_t>(step.position(i) + 1);
  }
  return rows * config.heads * config.head_dim * 2;
}

// [rows, heads * head_dim]. The KV heads of a position are shared out among the threads.
tensor::FloatMatrix attend(ForwardContext& context, const DenseAttentionConfig& config,
                           const tensor::FloatMatrix& query, const Step& step) {
  tensor::FloatMatrix heads(query.rows(), query.columns());
  const std::size_t group = config.heads / config.kv_heads;
  const auto scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(config.head_dim)));
  const std::size_t items = step.rows() * config.kv_heads;
  const std::uint64_t work = attention_work(config, step);
  context.work.attention += work;
  const std::size_t grain = WorkerPool::grain_for(work / items);
  context.workers.parallel_for(items, grain, [&](std::size_t begin, std::size_t end) {
    std::vector<kernels::AttentionRow> slots;
    for (std::size_t item = begin; item < end; ++item) {
      const std::size_t i = item / config.kv_heads;
      const std::size_t kv_head = item % config.kv_heads;
      list_slots(config, step, i, kv_head, slots);
      const std::size_t from = kv_head * group * config.head_dim;
      const std::size_t size = group * config.head_dim;
      kernels::sparse_attention({.heads = group,
                                 .head_dim = config.head_dim,
                                 .scale = scale,
                                 .query = query.row(i).subspan(from, size),
                                 .rows = slots,
                                 .sink = {},
                                 .rounding = context.numerics.rounding(),
                                 .row_width = 2 * config.head_dim,
                                 .value_first = config.head_dim,
                                 .value_dim = config.head_dim},
                                heads.row(i).subspan(from, size));
    }
  });
  return heads;
}

}  // namespace

tensor::FloatMatrix dense_attention(ForwardContext& context, const DenseAttentionConfig& config,
                                    const DenseAttentionWeights& weights,
                                    const tensor::FloatMatrix& u, Step& step) {
  LOCKET_CHECK(step.formats.rows == kernels::RowFormat::kBf16 ||
               step.formats.rows == kernels::RowFormat::kF32);
  const tensor::FloatMatrix input = quantize_activations(context, u);
  tensor::FloatMatrix query = rounded_linear(context, weights.query, input);
  tensor::FloatMatrix key = rounded_linear(context, weights.key, input);
  const tensor::FloatMatrix value = rounded_linear(context, weights.value, input);
  rotate_heads(context, config, step, query);
  rotate_heads(context, config, step, key);
  write_rows(context, config, key, value, step);
  wait_for_rows(step);
  const tensor::FloatMatrix heads = attend(context, config, query, step);
  return rounded_linear(context, weights.output, quantize_activations(context, heads));
}

}  // namespace locket::model
