#include "model/generations/mla_model.h"

#include <utility>

#include "base/check.h"
#include "model/rotary_table.h"
#include "model/step_tools.h"

namespace locket::model {
namespace {

std::size_t to_size(std::int64_t value) { return static_cast<std::size_t>(value); }

void add_stream(cache::RowStream stream, kernels::RowFormat format, std::int64_t width,
                MemoryDescription& memory) {
  stream.tokens_per_row = 1;
  stream.row_bytes = kernels::row_bytes(format, to_size(width));
  memory.layout.streams.push_back(std::move(stream));
  memory.stream_rows.push_back({.format = format, .width = to_size(width)});
}

}  // namespace

ModelOutline outline_mla(const MlaModelConfig& config, NumericsMode mode) {
  ModelOutline outline = {.shape = {.generation = config.generation,
                                    .layer_count = config.layer_count,
                                    .hidden = config.hidden_size,
                                    .vocabulary_size = config.vocabulary_size,
                                    .max_positions = config.max_positions,
                                    .bos_token_id = config.bos_token_id,
                                    .eos_token_id = config.eos_token_id,
                                    .boundary = config.layer_count},
                          .memory = {}};
  const MemoryFormats formats = memory_formats(config, mode);
  for (std::int64_t layer = 0; layer < config.layer_count; ++layer) {
    add_stream({.name = "latents", .layer = layer}, formats.rows, config.row_width(),
               outline.memory);
    if (!config.has_indexer()) continue;
    add_stream({.name = "index keys", .layer = layer, .part = cache::PagePart::kKeys},
               formats.index_keys, config.index_dim, outline.memory);
  }
  return outline;
}

Result<std::string> check_mla_weights(const MlaModelConfig& config,
                                      checkpoint::Checkpoint& checkpoint) {
  WeightReader reader(checkpoint, {}, WeightReader::Reads::kNothing);
  LOCKET_TRY(LoadedMlaWeights loaded, load_mla_weights(config, reader));
  return std::move(loaded.skipped);
}

MlaModel::MlaModel(const MlaModelConfig& config, const Numerics& numerics, LoadedMlaWeights loaded)
    : config_(config),
      numerics_(numerics),
      outline_(outline_mla(config, numerics.mode)),
      weights_(std::move(loaded.weights)),
      skipped_tensors_(std::move(loaded.skipped)),
      frequencies_(rotary_frequencies(config.rotary)) {}

Result<std::unique_ptr<LanguageModel>> MlaModel::load(const MlaModelConfig& config,
                                                      checkpoint::Checkpoint& checkpoint,
                                                      const LoadOptions& options) {
  WeightReader reader(checkpoint, options.progress);
  LOCKET_TRY(LoadedMlaWeights loaded, load_mla_weights(config, reader));
  reader.finish();
  return std::unique_ptr<LanguageModel>(
      std::make_unique<MlaModel>(MlaModel(config, options.numerics, std::move(loaded))));
}

Step MlaModel::make_step(std::vector<StepPart> parts) const {
  Step step(std::move(parts), memory_formats(config_, numerics_.mode));
  const std::vector<std::int64_t> positions = step_positions(step);
  step.plain_rotary = rotary_table(frequencies_, positions);
  return step;
}

// Streams stand in the order of layers, keys behind the rows of theirs.
MlaMemory MlaModel::memory_of(std::int64_t layer) const {
  if (!config_.has_indexer()) return {.rows = to_size(layer)};
  return {.rows = to_size(2 * layer), .index_keys = to_size(2 * layer + 1)};
}

tensor::FloatMatrix MlaModel::run_ffn(ForwardContext& context, std::int64_t layer, Step& step,
                                      const tensor::FloatMatrix& u) const {
  const MlaLayerWeights& weights = weights_.layers[to_size(layer)];
  if (weights.dense) return dense_ffn(context, *weights.dense, u);
  Result<tensor::FloatMatrix> sum = moe_forward(context, moe_config(config_, layer), weights.moe,
                                                *weights_.experts, u, step.first_position());
  if (sum) return std::move(*sum);
  fail_parts(step, sum.error());
  return {u.rows(), u.columns()};
}

void MlaModel::run_layer(ForwardContext& context, std::int64_t layer, Step& step,
                         tensor::FloatMatrix& residual) const {
  const MlaLayerWeights& weights = weights_.layers[to_size(layer)];
  const float eps = config_.rms_norm_eps;
  const tensor::FloatMatrix attention = mla_attention(
      context, attention_config(config_, layer), weights.attention,
      normed_rows(context, eps, weights.attention_norm, residual), memory_of(layer), step);
  observe_rows(context, "attention", layer, step, attention);
  add_rows(attention, residual);
  const tensor::FloatMatrix ffn =
      run_ffn(context, layer, step, normed_rows(context, eps, weights.ffn_norm, residual));
  observe_rows(context, "ffn", layer, step, ffn);
  add_rows(ffn, residual);
  observe_rows(context, "streams", layer, step, residual);
}

ResidualRows MlaModel::encode(ForwardContext& context, Step& step,
                              std::span<SequenceState* const> states) const {
  LOCKET_CHECK(step.rows() > 0 && states.size() == step.parts.size());
  const std::vector<std::int32_t> ids = step_tokens(step);
  ResidualRows rows = {.streams = embed(weights_.embedding, ids, 1), .pre = {ids.size(), 0}};
  observe_rows(context, "embedding", -1, step, rows.streams);
  for (std::int64_t layer = 0; layer < config_.layer_count && goes_on(step); ++layer) {
    run_layer(context, layer, step, rows.streams);
  }
  return rows;
}

void MlaModel::decode(ForwardContext& /*context*/, Step& /*step*/, ResidualRows& /*rows*/) const {}

tensor::FloatMatrix MlaModel::logits(ForwardContext& context, const ResidualRows& rows) const {
  return output_head(context, weights_.head, config_.rms_norm_eps, rows.streams);
}

}  // namespace locket::model
