#include "model/generations/v41.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/check.h"
#include "kernels/rms_norm.h"
#include "model/generations/v41_mechanisms.h"

namespace locket::model {
namespace {

std::size_t to_size(std::int64_t value) { return static_cast<std::size_t>(value); }

void observe(const ForwardContext& context, std::string_view name, std::int64_t layer,
             std::int64_t first_position, const tensor::FloatMatrix& values) {
  if (context.observer == nullptr) return;
  context.observer->on_floats(
      {.name = name, .layer = layer, .first_position = first_position, .width = values.columns()},
      values.values());
}

// The rows of `matrix` from `first` on.
tensor::FloatMatrix rows_from(const tensor::FloatMatrix& matrix, std::size_t first) {
  tensor::FloatMatrix rest(matrix.rows() - first, matrix.columns());
  std::ranges::copy(matrix.values().subspan(first * matrix.columns()), rest.values().begin());
  return rest;
}

}  // namespace

V41Model::V41Model(V41Config config, const Numerics& numerics)
    : config_(std::move(config)),
      numerics_(numerics),
      memory_(make_v41_memory(config_, numerics.mode)) {
  plain_frequencies_ = rotary_frequencies({.dim = config_.rope_dim, .base = config_.rope_theta});
  compressed_frequencies_ = compressed_frequencies(config_);
}

Result<V41Model> V41Model::load(checkpoint::Checkpoint& checkpoint,
                                std::vector<std::int32_t> token_map, const Numerics& numerics,
                                const LoadProgress& progress) {
  LOCKET_TRY(V41Config config, read_v41_config(checkpoint.config().root()));
  V41Model model(std::move(config), numerics);
  if (!model.config_.engram.layer_ids.empty()) {
    LOCKET_TRY(EngramHash hash, EngramHash::create(model.config_.engram, std::move(token_map)));
    model.engram_hash_.push_back(std::move(hash));
  }
  WeightReader reader(checkpoint, progress);
  LOCKET_TRY(LoadedV41Weights loaded, load_v41_weights(model.config_, reader));
  model.weights_ = std::move(loaded.weights);
  model.skipped_tensors_ = std::move(loaded.skipped);
  reader.finish();
  return model;
}

Step V41Model::make_step(const cache::KvView& memory, std::int64_t first_position,
                         std::size_t count, std::int64_t segment_start) const {
  Step step = {.memory = memory,
               .formats = memory_.formats,
               .first_position = first_position,
               .count = count,
               .segment_start = segment_start};
  step.plain_rotary = rotary_table(plain_frequencies_, first_position, 1, count);
  step.compressed_rotary = rotary_table(compressed_frequencies_, first_position, 1, count);
  return step;
}

Status V41Model::add_engram(ForwardContext& context, std::int64_t layer,
                            std::span<const std::int32_t> tokens, ResidualRows& rows) const {
  const V41LayerWeights& weights = weights_.layers[to_size(layer)];
  if (!weights.engram) return {};
  const EngramHash& hash = engram_hash_.front();
  const auto engram_index = to_size(role(layer).engram_index);
  const std::size_t width = weights.engram_table->head_dim();
  tensor::FloatMatrix gathered(rows.count(), hash.columns() * width);
  std::atomic<bool> failed = false;
  std::vector<Status> statuses(rows.count());
  context.workers.parallel_for(rows.count(), 16, [&](std::size_t begin, std::size_t end) {
    std::vector<std::int64_t> ids(hash.columns());
    std::vector<std::int32_t> recent;
    for (std::size_t i = begin; i < end; ++i) {
      const std::size_t position = to_size(rows.first_position) + i;
      recent.clear();
      for (std::size_t s = 0; s < hash.max_ngram_size() && s <= position; ++s) {
        recent.push_back(tokens[position - s]);
      }
      hash.row_ids(engram_index, recent, ids);
      for (std::size_t column = 0; column < ids.size() && statuses[i]; ++column) {
        statuses[i] = weights.engram_table->read_row(
            ids[column], gathered.row(i).subspan(column * width, width));
      }
      if (!statuses[i]) failed = true;
    }
  });
  if (failed) {
    for (Status& status : statuses) {
      if (!status) return status;
    }
  }
  engram_forward(context, *weights.engram, config_.rms_norm_eps, gathered, rows.streams);
  observe(context, "engram", layer, rows.first_position, rows.streams);
  return {};
}

tensor::FloatMatrix V41Model::site_input(const ForwardContext& context,
                                         const std::vector<float>& norm,
                                         const ResidualRows& rows) const {
  tensor::FloatMatrix u = collapse_streams(context, rows.streams, rows.pre);
  for (std::size_t i = 0; i < u.rows(); ++i) {
    kernels::rms_norm(u.row(i), norm, config_.rms_norm_eps, context.numerics.rounding(), u.row(i));
  }
  return u;
}

void V41Model::write_memory(ForwardContext& context, std::int64_t layer,
                            const tensor::FloatMatrix& u, V41SequenceState& state,
                            const Step& step) const {
  const auto stored = to_size(std::clamp<std::int64_t>(step.write_from - step.first_position, 0,
                                                       static_cast<std::int64_t>(step.count)));
  if (stored == step.count) return;
  const std::int64_t first = step.first_position + static_cast<std::int64_t>(stored);
  const CompressorConfig config = compressor_config(config_, layer);
  const CompressorWeights& weights = *weights_.layers[to_size(layer)].compressor;
  const tensor::FloatMatrix rest = stored == 0 ? tensor::FloatMatrix() : rows_from(u, stored);
  const tensor::FloatMatrix latents =
      compress(context, config, weights, stored == 0 ? u : rest, state.pending[to_size(layer)]);
  observe(context, "latents", layer, first, latents);
  write_rows(context, config, weights, latents,
             {.first_row = first / role(layer).ratio,
              .streams = memory_.layers[to_size(layer)],
              .frequencies = compressed_frequencies_},
             step);
}

Status V41Model::wait_for_rows(std::int64_t layer, const Step& step) const {
  return role(layer).ratio > 0 ? step.memory.wait_for_rows() : Status();
}

void V41Model::attention_site(ForwardContext& context, std::int64_t layer,
                              const tensor::FloatMatrix& u, Step& step, ResidualRows& rows) const {
  const V41LayerWeights& weights = weights_.layers[to_size(layer)];
  HyperConnections site =
      hyper_connections(context, site_config(config_), weights.attention_site, rows.streams);
  observe(context, "attention_input", layer, rows.first_position, u);
  const tensor::FloatMatrix y =
      csa2_attention(context, attention_config(config_, layer), weights.attention, u,
                     memory_.layers[to_size(layer)], step);
  observe(context, "attention", layer, rows.first_position, y);
  expand_streams(context, site, y, rows.streams);
  rows.pre = std::move(site.pre);
}

void V41Model::ffn_site(ForwardContext& context, std::int64_t layer, ResidualRows& rows) const {
  const V41LayerWeights& weights = weights_.layers[to_size(layer)];
  HyperConnections site =
      hyper_connections(context, site_config(config_), weights.ffn_site, rows.streams);
  const tensor::FloatMatrix u = site_input(context, weights.ffn_norm, rows);
  observe(context, "moe_input", layer, rows.first_position, u);
  const tensor::FloatMatrix y =
      moe_forward(context, moe_config(config_, layer), weights.moe, u, rows.first_position);
  observe(context, "moe", layer, rows.first_position, y);
  expand_streams(context, site, y, rows.streams);
  rows.pre = std::move(site.pre);
  observe(context, "streams", layer, rows.first_position, rows.streams);
  observe(context, "pre", layer, rows.first_position, rows.pre);
}

Result<ResidualRows> V41Model::encode(ForwardContext& context, const cache::KvView& memory,
                                      V41SequenceState& state, const TokenSlice& slice) const {
  const std::size_t count = slice.count();
  LOCKET_CHECK(count > 0);
  ResidualRows rows = {
      .first_position = slice.first_position,
      .streams = embed(weights_.embedding, slice.tokens.last(count), to_size(config_.stream_count)),
      .pre = {count, to_size(config_.stream_count)}};
  for (std::size_t i = 0; i < count; ++i) rows.pre.row(i)[0] = 1.0f;
  observe(context, "embedding", -1, slice.first_position, rows.streams);
  Step step = make_step(memory, slice.first_position, count, slice.window_start);
  step.write_from = slice.write_from;
  for (std::int64_t layer = 0; layer < config_.boundary; ++layer) {
    LOCKET_TRY_STATUS(run_layer(context, layer, slice.tokens, state, step, rows));
  }
  // The boundary layer's row writers; its attention and FFN belong to the decoder.
  LOCKET_TRY_STATUS(add_engram(context, config_.boundary, slice.tokens, rows));
  const V41LayerWeights& boundary = weights_.layers[to_size(config_.boundary)];
  write_memory(context, config_.boundary, site_input(context, boundary.attention_norm, rows), state,
               step);
  return rows;
}

Status V41Model::run_layer(ForwardContext& context, std::int64_t layer,
                           std::span<const std::int32_t> tokens, V41SequenceState& state,
                           Step& step, ResidualRows& rows) const {
  LOCKET_TRY_STATUS(add_engram(context, layer, tokens, rows));
  const tensor::FloatMatrix u =
      site_input(context, weights_.layers[to_size(layer)].attention_norm, rows);
  if (role(layer).writes_rows) write_memory(context, layer, u, state, step);
  LOCKET_TRY_STATUS(wait_for_rows(layer, step));
  attention_site(context, layer, u, step, rows);
  ffn_site(context, layer, rows);
  return {};
}

Status V41Model::decode(ForwardContext& context, const cache::KvView& memory,
                        std::span<const std::int32_t> tokens, std::int64_t segment_start,
                        ResidualRows& rows) const {
  Step step = make_step(memory, rows.first_position, rows.count(), segment_start);
  for (std::int64_t layer = config_.boundary; layer < config_.layer_count; ++layer) {
    if (layer != config_.boundary) {
      LOCKET_TRY_STATUS(add_engram(context, layer, tokens, rows));
    }
    const tensor::FloatMatrix u =
        site_input(context, weights_.layers[to_size(layer)].attention_norm, rows);
    LOCKET_TRY_STATUS(wait_for_rows(layer, step));
    attention_site(context, layer, u, step, rows);
    ffn_site(context, layer, rows);
  }
  return {};
}

tensor::FloatMatrix V41Model::logits(ForwardContext& context, const ResidualRows& rows,
                                     std::size_t first) const {
  const tensor::FloatMatrix collapsed = collapse_streams(context, rows.streams, rows.pre);
  tensor::FloatMatrix wanted(rows.count() - first, collapsed.columns());
  for (std::size_t i = 0; i < wanted.rows(); ++i) {
    std::ranges::copy(collapsed.row(first + i), wanted.row(i).begin());
  }
  return output_head(context, weights_.head, config_.rms_norm_eps, wanted);
}

}  // namespace locket::model
