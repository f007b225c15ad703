#include "model/generations/v4.h"

#include <numeric>
#include <utility>

#include "base/check.h"
#include "model/moe.h"
#include "model/step_tools.h"

namespace locket::model {
namespace {

std::size_t to_size(std::int64_t value) { return static_cast<std::size_t>(value); }

// Every row that a position sees.
void select_all_rows(std::int64_t ratio, Step& step) {
  step.selection.rows.assign(step.rows(), {});
  for (std::size_t i = 0; i < step.rows(); ++i) {
    step.selection.rows[i].resize(to_size((step.position(i) + 1) / ratio));
    std::iota(step.selection.rows[i].begin(), step.selection.rows[i].end(), 0);
  }
}

}  // namespace

V4Model::V4Model(V4Config config, const V4LoadOptions& options)
    : config_(std::move(config)),
      numerics_(options.numerics),
      memory_(make_v4_memory(config_, numerics_.mode, options.row_tail)),
      plain_frequencies_(rotary_frequencies(config_.plain_rope)),
      compressed_frequencies_(rotary_frequencies(config_.compressed_rope)) {}

Result<V4Model> V4Model::load(checkpoint::Checkpoint& checkpoint, const V4LoadOptions& options) {
  LOCKET_TRY(V4Config config, read_v4_config(checkpoint.config().root()));
  V4Model model(std::move(config), options);
  WeightReader reader(checkpoint, options.progress, WeightReader::Reads::kEverything,
                      Fp8Tile::k128);
  LOCKET_TRY(LoadedV4Weights loaded, load_v4_weights(model.config_, reader, options.placement));
  model.weights_ = std::move(loaded.weights);
  model.skipped_tensors_ = std::move(loaded.skipped);
  reader.finish();
  return model;
}

HyperConnectionsConfig V4Model::site_config() const {
  return {.streams = to_size(config_.stream_count),
          .sinkhorn_iterations = to_size(config_.sinkhorn_iterations),
          .hc_eps = config_.hc_eps,
          .norm_eps = config_.rms_norm_eps};
}

Csa2Config V4Model::attention_config(std::int64_t layer) const {
  const V4LayerKind kind = config_.kind(layer);
  Csa2Config attention = {.layer = layer,
                          .heads = to_size(config_.head_count),
                          .head_dim = to_size(config_.head_dim),
                          .rope_dim = to_size(config_.rope_dim),
                          .output_groups = to_size(config_.o_groups),
                          .window = config_.sliding_window,
                          .ratio = v4_ratio(kind),
                          .norm_eps = config_.rms_norm_eps,
                          .query_norm = Csa2Config::QueryNorm::kPerHead,
                          .selects_rows = kind == V4LayerKind::kChosen};
  if (!attention.selects_rows) return attention;
  attention.indexer = {.heads = to_size(config_.index_head_count),
                       .dim = to_size(config_.index_head_dim),
                       .rope_dim = to_size(config_.rope_dim),
                       .topk = to_size(config_.index_topk),
                       .ratio = v4_ratio(kind)};
  if (numerics_.quantizes_memory()) attention.indexer.spread = IndexerConfig::Spread::kHadamard;
  return attention;
}

Step V4Model::make_step(std::vector<StepPart> parts) const {
  Step step(std::move(parts), memory_.formats);
  const std::vector<std::int64_t> positions = step_positions(step);
  step.plain_rotary = rotary_table(plain_frequencies_, positions);
  step.compressed_rotary = rotary_table(compressed_frequencies_, positions);
  return step;
}

tensor::FloatMatrix V4Model::site_input(const ForwardContext& context,
                                        const std::vector<float>& norm,
                                        const HyperConnections& site,
                                        const tensor::FloatMatrix& streams) const {
  return normed_rows(context, config_.rms_norm_eps, norm,
                     collapse_streams(context, streams, site.pre));
}

void V4Model::write_memory(ForwardContext& context, std::int64_t layer,
                           const tensor::FloatMatrix& u, std::span<SequenceState* const> states,
                           Step& step) const {
  const V4LayerWeights& weights = weights_.layers[to_size(layer)];
  if (!weights.rows) return;
  const LayerMemory& streams = memory_.layers[to_size(layer)];
  const int ring = memory_.block_rings[to_size(layer)];
  std::vector<PendingGroup*> pending(states.size());
  const auto pending_of = [&](std::size_t which) {
    for (std::size_t part = 0; part < states.size(); ++part) {
      pending[part] = &states[part]->pending[2 * to_size(layer) + which];
    }
    return BlockInput{
        .u = u, .pending = pending, .frequencies = compressed_frequencies_, .step = step};
  };
  const BlockCompressorConfig rows = v4_row_compressor(config_, layer);
  BlockPlace place = {.stream = static_cast<std::size_t>(streams.rows),
                      .format = step.formats.rows,
                      .ring = ring < 0 ? 0 : static_cast<std::size_t>(ring)};
  compress_blocks(context, rows, *weights.rows, place, pending_of(0));
  if (!weights.keys) return;
  place.stream = static_cast<std::size_t>(streams.index_keys);
  place.format = step.formats.index_keys;
  place.ring_offset = block_ring_bytes(rows);
  compress_blocks(context, v4_key_compressor(config_, layer, numerics_), *weights.keys, place,
                  pending_of(1));
}

void V4Model::attention_site(ForwardContext& context, std::int64_t layer,
                             std::span<SequenceState* const> states, Step& step,
                             tensor::FloatMatrix& streams) const {
  const V4LayerWeights& weights = weights_.layers[to_size(layer)];
  const HyperConnections site =
      hyper_connections(context, site_config(), weights.attention_site, streams);
  const tensor::FloatMatrix u = site_input(context, weights.attention_norm, site, streams);
  observe_rows(context, "attention_input", layer, step, u);
  write_memory(context, layer, u, states, step);
  const V4LayerKind kind = config_.kind(layer);
  if (kind != V4LayerKind::kWindow) wait_for_rows(step);
  if (kind == V4LayerKind::kAll) select_all_rows(v4_ratio(kind), step);
  const tensor::FloatMatrix y = csa2_attention(context, attention_config(layer), weights.attention,
                                               u, memory_.layers[to_size(layer)], step);
  observe_rows(context, "attention", layer, step, y);
  expand_streams(context, site, y, streams);
}

Result<tensor::FloatMatrix> V4Model::run_moe(ForwardContext& context, std::int64_t layer, Ids ids,
                                             const tensor::FloatMatrix& u,
                                             std::int64_t first_position) const {
  const V4LayerWeights& weights = weights_.layers[to_size(layer)];
  const MoeConfig moe = {.layer = layer,
                         .router = {.experts_per_token = to_size(config_.experts_per_token),
                                    .scaling_factor = config_.routed_scaling_factor},
                         .swiglu_limit = config_.swiglu_limit};
  const Routing routing = weights.router
                              ? route(context, moe.router, *weights.router, u)
                              : route_by_token(context, moe.router, *weights.token_router, u, ids);
  observe_routing(context, layer, routing, first_position);
  return run_experts(context, moe, weights.shared, *weights_.experts, u, routing);
}

void V4Model::ffn_site(ForwardContext& context, std::int64_t layer, Ids ids, Step& step,
                       tensor::FloatMatrix& streams) const {
  const V4LayerWeights& weights = weights_.layers[to_size(layer)];
  const std::int64_t first_position = step.first_position();
  const HyperConnections site =
      hyper_connections(context, site_config(), weights.ffn_site, streams);
  const tensor::FloatMatrix u = site_input(context, weights.ffn_norm, site, streams);
  observe_rows(context, "moe_input", layer, step, u);
  Result<tensor::FloatMatrix> y = run_moe(context, layer, ids, u, first_position);
  if (!y) {
    fail_parts(step, y.error());
    y = tensor::FloatMatrix(u.rows(), u.columns());
  }
  observe_rows(context, "moe", layer, step, *y);
  expand_streams(context, site, *y, streams);
  observe_rows(context, "streams", layer, step, streams);
}

ResidualRows V4Model::encode(ForwardContext& context, Step& step,
                             std::span<SequenceState* const> states) const {
  LOCKET_CHECK(step.rows() > 0 && states.size() == step.parts.size());
  const std::vector<std::int32_t> ids = step_tokens(step);
  tensor::FloatMatrix streams = embed(weights_.embedding, ids, to_size(config_.stream_count));
  observe_rows(context, "embedding", -1, step, streams);
  for (std::int64_t layer = 0; layer < config_.layer_count && goes_on(step); ++layer) {
    attention_site(context, layer, states, step, streams);
    ffn_site(context, layer, ids, step, streams);
  }
  const std::size_t count = streams.rows();
  return {.streams = std::move(streams), .pre = {count, 0}};
}

void V4Model::decode(ForwardContext& /*context*/, Step& /*step*/, ResidualRows& /*rows*/) const {}

tensor::FloatMatrix V4Model::logits(ForwardContext& context, const ResidualRows& rows) const {
  const tensor::FloatMatrix pre =
      collapse_weights(context, site_config(), weights_.head_site, rows.streams);
  return output_head(context, weights_.head, config_.rms_norm_eps,
                     collapse_streams(context, rows.streams, pre));
}

}  // namespace locket::model
