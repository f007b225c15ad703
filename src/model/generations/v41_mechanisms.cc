#include "model/generations/v41_mechanisms.h"

#include <algorithm>
#include <cstddef>

#include "model/rotary_table.h"

namespace locket::model {
namespace {

std::size_t to_size(std::int64_t value) { return static_cast<std::size_t>(value); }

}  // namespace

Csa2Config attention_config(const V41Config& config, std::int64_t layer) {
  const LayerRole& role = config.layers[to_size(layer)];
  Csa2Config attention = {.layer = layer,
                          .heads = to_size(config.head_count),
                          .head_dim = to_size(config.head_dim),
                          .rope_dim = to_size(config.rope_dim),
                          .output_groups = to_size(config.o_groups),
                          .window = config.sliding_window,
                          .ratio = role.ratio,
                          .norm_eps = config.rms_norm_eps,
                          .selects_rows = role.selects_rows};
  attention.indexer = {.heads = to_size(config.index_head_count),
                       .dim = to_size(config.index_head_dim),
                       .rope_dim = to_size(config.rope_dim),
                       .topk = to_size(config.index_topk),
                       .ratio = std::max<std::int64_t>(role.ratio, 1),
                       .pool_blocks = to_size(config.pool_blocks),
                       .pool_block_size = to_size(config.pool_block_size)};
  if (role.builds_pool) attention.indexer.pool = IndexerConfig::Pool::kBuild;
  if (role.uses_pool) attention.indexer.pool = IndexerConfig::Pool::kUse;
  return attention;
}

CompressorConfig compressor_config(const V41Config& config, std::int64_t layer) {
  return {.ratio = to_size(config.layers[to_size(layer)].ratio),
          .head_dim = to_size(config.head_dim),
          .index_dim = to_size(config.index_head_dim),
          .rope_dim = to_size(config.rope_dim),
          .norm_eps = config.rms_norm_eps};
}

HyperConnectionsConfig site_config(const V41Config& config) {
  return {.streams = to_size(config.stream_count),
          .sinkhorn_iterations = to_size(config.sinkhorn_iterations),
          .hc_eps = config.hc_eps,
          .norm_eps = config.rms_norm_eps};
}

MoeConfig moe_config(const V41Config& config, std::int64_t layer) {
  return {.layer = layer,
          .router = {.experts_per_token = to_size(config.experts_per_token),
                     .scaling_factor = config.routed_scaling_factor},
          .swiglu_limit = config.swiglu_limit};
}

std::vector<float> compressed_frequencies(const V41Config& config) {
  return rotary_frequencies({.dim = config.rope_dim,
                             .base = config.compress_rope_theta,
                             .factor = config.yarn.factor,
                             .beta_fast = config.yarn.beta_fast,
                             .beta_slow = config.yarn.beta_slow,
                             .original_context = config.yarn.original_context});
}

}  // namespace locket::model
