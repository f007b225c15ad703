#include "model/generations/v41.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "kernels/rms_norm.h"
#include "model/expert_foresight.h"
#include "model/generations/v41_mechanisms.h"
#include "model/row_work.h"
#include "model/step_tools.h"

namespace locket::model {
namespace {

std::size_t to_size(std::int64_t value) { return static_cast<std::size_t>(value); }

}  // namespace

V41Model::V41Model(V41Config config, const Numerics& numerics)
    : config_(std::move(config)),
      numerics_(numerics),
      memory_(make_v41_memory(config_, numerics.mode)),
      outline_(outline_v41(config_, memory_)) {
  plain_frequencies_ = rotary_frequencies({.dim = config_.rope_dim, .base = config_.rope_theta});
  compressed_frequencies_ = compressed_frequencies(config_);
}

Result<V41Model> V41Model::load(checkpoint::Checkpoint& checkpoint,
                                std::vector<std::int32_t> token_map, const Numerics& numerics,
                                const LoadProgress& progress, const ExpertPlacement& placement) {
  LOCKET_TRY(V41Config config, read_v41_config(checkpoint.config().root()));
  V41Model model(std::move(config), numerics);
  if (!model.config_.engram.layer_ids.empty()) {
    LOCKET_TRY(EngramHash hash, EngramHash::create(model.config_.engram, std::move(token_map)));
    model.engram_hash_.push_back(std::move(hash));
  }
  WeightReader reader(checkpoint, progress);
  LOCKET_TRY(LoadedV41Weights loaded, load_v41_weights(model.config_, reader, placement));
  model.weights_ = std::move(loaded.weights);
  model.skipped_tensors_ = std::move(loaded.skipped);
  model.open_row_readers();
  reader.finish();
  return model;
}

Step V41Model::make_step(std::vector<StepPart> parts) const {
  Step step(std::move(parts), memory_.formats);
  const std::vector<std::int64_t> positions = step_positions(step);
  step.plain_rotary = rotary_table(plain_frequencies_, positions);
  step.compressed_rotary = rotary_table(compressed_frequencies_, positions);
  return step;
}

tensor::FloatMatrix V41Model::site_input(const ForwardContext& context,
                                         const std::vector<float>& norm,
                                         const ResidualRows& rows) const {
  tensor::FloatMatrix u = collapse_streams(context, rows.streams, rows.pre);
  for_each_row(context, u.rows(), u.columns() * kWorkPerNormedValue, [&](std::size_t i) {
    kernels::rms_norm(u.row(i), norm, config_.rms_norm_eps, context.numerics.rounding(), u.row(i));
  });
  return u;
}

// Rows that are in the memory already are left out, and those of parts that have failed.
void V41Model::write_memory(ForwardContext& context, std::int64_t layer,
                            const tensor::FloatMatrix& u, std::span<SequenceState* const> states,
                            const Step& step) const {
  const std::int64_t ratio = role(layer).ratio;
  const CompressorConfig config = compressor_config(config_, layer);
  std::vector<CompressorRun> runs;
  std::vector<std::size_t> numbers;
  RowWriter writer = {.targets = {},
                      .streams = memory_.layers[to_size(layer)],
                      .formats = step.formats,
                      .frequencies = compressed_frequencies_};
  std::int64_t first_written = -1;
  for (std::size_t index = 0; index < step.parts.size(); ++index) {
    const StepPart& part = step.parts[index];
    const auto stored = to_size(std::clamp<std::int64_t>(part.write_from - part.first_position, 0,
                                                         static_cast<std::int64_t>(part.count)));
    if (!part.status || stored == part.count) continue;
    const std::int64_t first = part.first_position + static_cast<std::int64_t>(stored);
    if (first_written < 0) first_written = first;
    PendingGroup& pending = states[index]->pending[to_size(layer)];
    const std::size_t count = part.count - stored;
    for (std::size_t i = 0; i < count; ++i) numbers.push_back(part.first_row + stored + i);
    runs.push_back({.pending = &pending, .count = count});
    writer.targets.push_back({.memory = part.memory,
                              .first_row = first / ratio,
                              .count = (pending.tokens(config.head_dim) + count) / to_size(ratio)});
  }
  if (runs.empty()) return;
  const CompressorWeights& weights = *weights_.layers[to_size(layer)].compressor;
  const bool is_whole = numbers.size() == u.rows();
  const tensor::FloatMatrix latents =
      compress(context, config, weights, is_whole ? u : pick_rows(u, numbers), runs);
  observe_rows(context, "latents", layer, first_written, latents);
  write_rows(context, config, weights, latents, writer);
}

ExpertSource& V41Model::experts_of(const ForwardContext& context) const {
  return context.experts != nullptr ? *context.experts : *weights_.experts;
}

// Before the attention of the layer, so that what it will need is read meanwhile.
void V41Model::expect_experts(const ForwardContext& context, std::int64_t layer,
                              const ResidualRows& rows) const {
  ExpertSource& experts = experts_of(context);
  if (!experts.reads_ahead()) return;
  const V41LayerWeights& weights = weights_.layers[to_size(layer)];
  experts.expect(layer,
                 likely_experts(context, moe_config(config_, layer).router, weights.moe.router,
                                site_input(context, weights.ffn_norm, rows)));
}

void V41Model::attention_site(ForwardContext& context, std::int64_t layer,
                              const tensor::FloatMatrix& u, Step& step, ResidualRows& rows) const {
  const V41LayerWeights& weights = weights_.layers[to_size(layer)];
  expect_experts(context, layer, rows);
  HyperConnections site =
      hyper_connections(context, site_config(config_), weights.attention_site, rows.streams);
  observe_rows(context, "attention_input", layer, step.first_position(), u);
  const tensor::FloatMatrix y =
      csa2_attention(context, attention_config(config_, layer), weights.attention, u,
                     memory_.layers[to_size(layer)], step);
  observe_rows(context, "attention", layer, step.first_position(), y);
  expand_streams(context, site, y, rows.streams);
  rows.pre = std::move(site.pre);
}

void V41Model::ffn_site(ForwardContext& context, std::int64_t layer, Step& step,
                        ResidualRows& rows) const {
  const V41LayerWeights& weights = weights_.layers[to_size(layer)];
  const std::int64_t first_position = step.first_position();
  HyperConnections site =
      hyper_connections(context, site_config(config_), weights.ffn_site, rows.streams);
  const tensor::FloatMatrix u = site_input(context, weights.ffn_norm, rows);
  observe_rows(context, "moe_input", layer, first_position, u);
  Result<tensor::FloatMatrix> sum = moe_forward(context, moe_config(config_, layer), weights.moe,
                                                experts_of(context), u, first_position);
  if (!sum) {
    fail_parts(step, sum.error());
    sum = tensor::FloatMatrix(u.rows(), u.columns());
  }
  const tensor::FloatMatrix& y = *sum;
  observe_rows(context, "moe", layer, first_position, y);
  expand_streams(context, site, y, rows.streams);
  rows.pre = std::move(site.pre);
  observe_rows(context, "streams", layer, first_position, rows.streams);
  observe_rows(context, "pre", layer, first_position, rows.pre);
}

ResidualRows V41Model::encode(ForwardContext& context, Step& step,
                              std::span<SequenceState* const> states) const {
  LOCKET_CHECK(step.rows() > 0 && states.size() == step.parts.size());
  const std::vector<std::int32_t> ids = step_tokens(step);
  ResidualRows rows = {.streams = embed(weights_.embedding, ids, to_size(config_.stream_count)),
                       .pre = {ids.size(), to_size(config_.stream_count)}};
  for (std::size_t i = 0; i < rows.count(); ++i) rows.pre.row(i)[0] = 1.0f;
  observe_rows(context, "embedding", -1, step.first_position(), rows.streams);
  read_engram_ahead(context, 0, config_.boundary, step);
  for (std::int64_t layer = 0; layer < config_.boundary && goes_on(step); ++layer) {
    run_layer(context, layer, step, states, rows);
  }
  // The boundary layer's row writers; its attention and FFN belong to the decoder.
  add_engram(context, config_.boundary, step, rows);
  const V41LayerWeights& boundary = weights_.layers[to_size(config_.boundary)];
  write_memory(context, config_.boundary, site_input(context, boundary.attention_norm, rows),
               states, step);
  return rows;
}

void V41Model::run_layer(ForwardContext& context, std::int64_t layer, Step& step,
                         std::span<SequenceState* const> states, ResidualRows& rows) const {
  add_engram(context, layer, step, rows);
  const tensor::FloatMatrix u =
      site_input(context, weights_.layers[to_size(layer)].attention_norm, rows);
  if (role(layer).writes_rows) write_memory(context, layer, u, states, step);
  if (role(layer).ratio != 0) wait_for_rows(step);
  attention_site(context, layer, u, step, rows);
  ffn_site(context, layer, step, rows);
}

void V41Model::decode(ForwardContext& context, Step& step, ResidualRows& rows) const {
  read_engram_ahead(context, config_.boundary + 1, config_.layer_count - 1, step);
  for (std::int64_t layer = config_.boundary; layer < config_.layer_count; ++layer) {
    if (!goes_on(step)) return;
    if (layer != config_.boundary) add_engram(context, layer, step, rows);
    const tensor::FloatMatrix u =
        site_input(context, weights_.layers[to_size(layer)].attention_norm, rows);
    if (role(layer).ratio != 0) wait_for_rows(step);
    attention_site(context, layer, u, step, rows);
    ffn_site(context, layer, step, rows);
  }
}

tensor::FloatMatrix V41Model::logits(ForwardContext& context, const ResidualRows& rows) const {
  return output_head(context, weights_.head, config_.rms_norm_eps,
                     collapse_streams(context, rows.streams, rows.pre));
}

std::vector<LargestLogit> V41Model::largest_logits(ForwardContext& context,
                                                   const ResidualRows& rows) const {
  return model::largest_logits(context, weights_.head, config_.rms_norm_eps,
                               collapse_streams(context, rows.streams, rows.pre));
}

void V41Model::make_head_copy(WorkerPool& workers) {
  const kernels::WeightMatrix& head = weights_.head.head;
  if (head.format != kernels::WeightFormat::kBf16) return;
  weights_.head.copy = kernels::coarse_copy(head, workers);
}

}  // namespace locket::model
