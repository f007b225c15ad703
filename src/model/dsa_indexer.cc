#include "model/dsa_indexer.h"

#include <cmath>

#include "kernels/hadamard.h"
#include "kernels/rotary.h"
#include "kernels/row_codec.h"
#include "kernels/sum_order.h"
#include "model/index_search.h"
#include "model/linear.h"
#include "model/row_work.h"

namespace locket::model {
namespace {

constexpr float kKeyNormEps = 1e-6f;  // a constant of the model, not the norm's epsilon
// About how many multiply-adds the scalar work on one value is worth.
constexpr std::size_t kWorkPerValue = 32;

void layer_norm(const std::vector<float>& weight, const std::vector<float>& bias,
                std::span<float> values) {
  const auto count = static_cast<float>(values.size());
  const float mean =
      kernels::ordered_sum(values.size(), [&](std::size_t i) { return values[i]; }) / count;
  for (float& value : values) value -= mean;
  const float variance =
      kernels::ordered_sum(values.size(), [&](std::size_t i) { return values[i] * values[i]; }) /
      count;
  const float factor = 1.0f / std::sqrt(variance + kKeyNormEps);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = values[i] * factor * weight[i] + bias[i];
  }
}

// Rotates a key or a query's head, and mixes it if it will be quantized.
void place_vector(const ForwardContext& context, const DsaIndexerConfig& config, const Step& step,
                  std::size_t row, std::span<float> values) {
  kernels::rotate_halves(values.first(config.rope_dim), step.plain_rotary.cos.row(row),
                         step.plain_rotary.sin.row(row), kernels::RotaryDirection::kForward,
                         context.numerics.rounding());
  if (context.numerics.quantizes_memory()) kernels::hadamard_transform(values);
}

// Rows that are in the memory already are left out, and those of parts that have failed.
void write_keys(ForwardContext& context, const DsaIndexerConfig& config,
                const DsaIndexerWeights& weights, const DsaInput& input, const Step& step) {
  tensor::FloatMatrix keys = rounded_linear(context, weights.wk, input.u);
  for_each_row(context, keys.rows(), config.dim * kWorkPerValue, [&](std::size_t i) {
    const StepPart& part = step.part(i);
    if (!part.status || part.position(i) < part.write_from) return;
    layer_norm(weights.key_norm, weights.key_norm_bias, keys.row(i));
    place_vector(context, config, step, i, keys.row(i));
    kernels::encode_row(step.formats.index_keys, keys.row(i),
                        part.memory->row(input.key_stream, part.position(i)));
  });
}

// What a stored key would be of these values: the queries are quantized as the keys are.
void quantize_as_key(const Step& step, std::span<float> values) {
  std::vector<std::byte> bytes(kernels::row_bytes(step.formats.index_keys, values.size()));
  kernels::encode_row(step.formats.index_keys, values, bytes);
  kernels::decode_row(step.formats.index_keys, bytes, values);
}

IndexQueries make_queries(ForwardContext& context, const DsaIndexerConfig& config,
                          const DsaIndexerWeights& weights, const DsaInput& input,
                          const Step& step) {
  IndexQueries queries = {.heads = rounded_linear(context, weights.wq_b, input.query_latent),
                          .weights = rounded_linear(context, weights.head_weights, input.u)};
  const auto factor = static_cast<float>(1.0 / std::sqrt(static_cast<double>(config.dim)) *
                                         (1.0 / std::sqrt(static_cast<double>(config.heads))));
  for (float& weight : queries.weights.values()) weight *= factor;
  for_each_row(context, step.rows(), config.heads * config.dim * kWorkPerValue, [&](std::size_t i) {
    for (std::size_t head = 0; head < config.heads; ++head) {
      const auto query = queries.heads.row(i).subspan(head * config.dim, config.dim);
      place_vector(context, config, step, i, query);
      if (context.numerics.quantizes_memory()) quantize_as_key(step, query);
    }
  });
  return queries;
}

}  // namespace

void select_tokens(ForwardContext& context, const DsaIndexerConfig& config,
                   const DsaIndexerWeights& weights, const DsaInput& input, Step& step) {
  write_keys(context, config, weights, input, step);
  const IndexQueries queries = make_queries(context, config, weights, input, step);
  step.selection.rows.assign(step.rows(), {});
  const IndexerConfig search_config = {
      .heads = config.heads, .dim = config.dim, .rope_dim = config.rope_dim, .topk = config.topk};
  IndexSearch search(context, search_config, queries, input.key_stream, step);
  search.run();
  context.work.index_scores += search.scored_keys() * config.heads * config.dim;
}

}  // namespace locket::model
