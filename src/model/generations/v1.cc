#include "model/generations/v1.h"

#include <utility>

#include "base/check.h"
#include "model/rotary_table.h"
#include "model/step_tools.h"

namespace locket::model {
namespace {

std::size_t to_size(std::int64_t value) { return static_cast<std::size_t>(value); }

kernels::RowFormat row_format(NumericsMode mode) {
  return Numerics{.mode = mode}.quantizes_memory() ? kernels::RowFormat::kBf16
                                                   : kernels::RowFormat::kF32;
}

DenseAttentionConfig attention_config(const V1Config& config, std::int64_t layer) {
  return {.heads = to_size(config.head_count),
          .kv_heads = to_size(config.kv_head_count),
          .head_dim = to_size(config.head_dim),
          .stream = to_size(layer)};
}

}  // namespace

ModelOutline outline_v1(const V1Config& config, NumericsMode mode) {
  ModelOutline outline = {.shape = {.generation = "V1",
                                    .layer_count = config.layer_count,
                                    .hidden = config.hidden_size,
                                    .vocabulary_size = config.vocabulary_size,
                                    .max_positions = config.max_positions,
                                    .bos_token_id = config.bos_token_id,
                                    .eos_token_id = config.eos_token_id,
                                    .boundary = config.layer_count},
                          .memory = {}};
  const kernels::RowFormat format = row_format(mode);
  for (std::int64_t layer = 0; layer < config.layer_count; ++layer) {
    const std::size_t width = attention_config(config, layer).row_width();
    outline.memory.layout.streams.push_back({.name = "keys and values",
                                             .layer = layer,
                                             .tokens_per_row = 1,
                                             .row_bytes = kernels::row_bytes(format, width)});
    outline.memory.stream_rows.push_back({.format = format, .width = width});
  }
  return outline;
}

V1Model::V1Model(const V1Config& config, const Numerics& numerics)
    : config_(config),
      numerics_(numerics),
      outline_(outline_v1(config, numerics.mode)),
      frequencies_(rotary_frequencies({.dim = config.head_dim, .base = config.rope_theta})) {}

Result<V1Model> V1Model::load(checkpoint::Checkpoint& checkpoint, const LoadOptions& options) {
  LOCKET_TRY(const V1Config config, read_v1_config(checkpoint.config().root()));
  V1Model model(config, options.numerics);
  WeightReader reader(checkpoint, options.progress);
  LOCKET_TRY(model.weights_, load_v1_weights(config, reader));
  reader.finish();
  return model;
}

Step V1Model::make_step(std::vector<StepPart> parts) const {
  Step step(std::move(parts), {.rows = row_format(numerics_.mode)});
  const std::vector<std::int64_t> positions = step_positions(step);
  step.plain_rotary = rotary_table(frequencies_, positions);
  return step;
}

void V1Model::run_layer(ForwardContext& context, std::int64_t layer, Step& step,
                        tensor::FloatMatrix& residual) const {
  const V1LayerWeights& weights = weights_.layers[to_size(layer)];
  const float eps = config_.rms_norm_eps;
  const tensor::FloatMatrix attention =
      dense_attention(context, attention_config(config_, layer), weights.attention,
                      normed_rows(context, eps, weights.attention_norm, residual), step);
  observe_rows(context, "attention", layer, step, attention);
  add_rows(attention, residual);
  const tensor::FloatMatrix ffn =
      dense_ffn(context, weights.ffn, normed_rows(context, eps, weights.ffn_norm, residual));
  observe_rows(context, "ffn", layer, step, ffn);
  add_rows(ffn, residual);
  observe_rows(context, "streams", layer, step, residual);
}

ResidualRows V1Model::encode(ForwardContext& context, Step& step,
                             std::span<SequenceState* const> states) const {
  LOCKET_CHECK(step.rows() > 0 && states.size() == step.parts.size());
  const std::vector<std::int32_t> ids = step_tokens(step);
  ResidualRows rows = {.streams = embed(weights_.embeddings(), ids), .pre = {ids.size(), 0}};
  observe_rows(context, "embedding", -1, step, rows.streams);
  for (std::int64_t layer = 0; layer < config_.layer_count && goes_on(step); ++layer) {
    run_layer(context, layer, step, rows.streams);
  }
  return rows;
}

void V1Model::decode(ForwardContext& /*context*/, Step& /*step*/, ResidualRows& /*rows*/) const {}

tensor::FloatMatrix V1Model::logits(ForwardContext& context, const ResidualRows& rows) const {
  return output_head(context, weights_.head, config_.rms_norm_eps, rows.streams);
}

}  // namespace locket::model
