#include "model/indexer.h"

#include <cmath>

#include "kernels/hadamard.h"
#include "kernels/rotary.h"
#include "model/index_search.h"
#include "model/linear.h"
#include "model/row_work.h"
#include "numerics/group_scaled.h"

namespace locket::model {
namespace {

IndexQueries make_queries(ForwardContext& context, const IndexerConfig& config,
                          const IndexerWeights& weights, const IndexerInput& input,
                          const Step& step) {
  const kernels::Rounding rounding = context.numerics.rounding();
  IndexQueries queries = {.heads = rounded_linear(context, weights.wq_b, input.query_latent),
                          .weights = rounded_linear(context, weights.weights_proj, input.u)};
  const auto factor = static_cast<float>(1.0 / std::sqrt(static_cast<double>(config.dim)) *
                                         (1.0 / std::sqrt(static_cast<double>(config.heads))));
  for (float& weight : queries.weights.values()) {
    weight = kernels::round_value(weight * factor, rounding);
  }
  for_each_row(context, step.rows(), config.heads * config.dim * 8, [&](std::size_t i) {
    for (std::size_t head = 0; head < config.heads; ++head) {
      const auto query = queries.heads.row(i).subspan(head * config.dim, config.dim);
      kernels::rotate_pairs(query.last(config.rope_dim), step.compressed_rotary.cos.row(i),
                            step.compressed_rotary.sin.row(i), kernels::RotaryDirection::kForward,
                            rounding);
      if (config.spread == IndexerConfig::Spread::kHadamard) kernels::hadamard_transform(query);
    }
    if (context.numerics.quantizes_memory()) {
      numerics::fake_quantize_fp4_index(queries.heads.row(i));
    }
  });
  return queries;
}

}  // namespace

void select_rows(ForwardContext& context, const IndexerConfig& config,
                 const IndexerWeights& weights, const IndexerInput& input, Step& step) {
  const IndexQueries queries = make_queries(context, config, weights, input, step);
  if (config.pool == IndexerConfig::Pool::kBuild) step.pool.positions.assign(step.rows(), {});
  step.selection.rows.assign(step.rows(), {});
  IndexSearch search(context, config, queries, input.key_stream, step);
  search.run();
  context.work.index_scores += search.scored_keys() * config.heads * config.dim;
}

}  // namespace locket::model
