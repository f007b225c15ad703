#include "model/hyper_connections.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "kernels/elementary.h"
#include "kernels/rms_norm.h"
#include "kernels/streams.h"
#include "kernels/sum_order.h"
#include "model/row_work.h"

namespace locket::model {
namespace {

// Mixes that one thread makes at a time: few, so that a single position is work for all threads.
constexpr std::size_t kMixesAtOnce = 4;
// What a product in double is worth, in multiply-adds.
constexpr std::size_t kWorkPerMixedValue = 4;
// What the coefficients of a position are worth.
constexpr std::size_t kCoefficientWork = 16384;

// Sums over all streams: in double and rounded once in mode `reference`, whose values a float32 sum
// would push over rounding boundaries; as every other sum in the modes that are float32 everywhere.
void mix_streams(const ForwardContext& context, std::span<const float> rows,
                 std::span<const float> flat, std::span<float> mixes) {
  if (context.numerics.rounding() == kernels::Rounding::kBf16) {
    std::array<double, kMixesAtOnce> sums;
    kernels::dots_in_double(rows, flat, std::span(sums).first(mixes.size()));
    for (std::size_t i = 0; i < mixes.size(); ++i) mixes[i] = static_cast<float>(sums[i]);
    return;
  }
  for (std::size_t i = 0; i < mixes.size(); ++i) {
    const auto row = rows.subspan(i * flat.size(), flat.size());
    mixes[i] = kernels::ordered_dot(
        row.size(), [&](std::size_t k) { return row[k]; }, [&](std::size_t k) { return flat[k]; });
  }
}

float streams_rms(const ForwardContext& context, std::span<const float> flat, float eps) {
  if (context.numerics.rounding() != kernels::Rounding::kBf16) {
    return kernels::reciprocal_rms(flat, eps);
  }
  double squares = 0.0;
  kernels::dots_in_double(flat, flat, {&squares, 1});
  const double mean = squares / static_cast<double>(flat.size());
  return 1.0f / std::sqrt(static_cast<float>(mean) + eps);
}

// [tokens, mixes], before the norm.
tensor::FloatMatrix make_mixes(const ForwardContext& context, const std::vector<float>& fn,
                               const tensor::FloatMatrix& streams) {
  const std::size_t tokens = streams.rows();
  const std::size_t width = streams.columns();
  const std::size_t count = fn.size() / width;
  const std::size_t blocks = (count + kMixesAtOnce - 1) / kMixesAtOnce;
  tensor::FloatMatrix mixes(tokens, count);
  const std::size_t grain = WorkerPool::grain_for(kMixesAtOnce * width * kWorkPerMixedValue);
  context.workers.parallel_for(tokens * blocks, grain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t item = begin; item < end; ++item) {
      const std::size_t first = item % blocks * kMixesAtOnce;
      const auto out =
          mixes.row(item / blocks).subspan(first, std::min(kMixesAtOnce, count - first));
      const auto rows = std::span(fn).subspan(first * width, out.size() * width);
      mix_streams(context, rows, streams.row(item / blocks), out);
    }
  });
  return mixes;
}

}  // namespace

void split_coefficients(const HyperConnectionsConfig& config,
                        const HyperConnectionsWeights& weights, std::span<const float> mixes,
                        const CoefficientSpans& out) {
  kernels::mix_coefficients({.streams = config.streams,
                             .iterations = config.sinkhorn_iterations,
                             .eps = config.hc_eps,
                             .scale = weights.scale,
                             .base = weights.base},
                            mixes, {.pre = out.pre, .post = out.post, .comb = out.comb});
}

HyperConnections hyper_connections(ForwardContext& context, const HyperConnectionsConfig& config,
                                   const HyperConnectionsWeights& weights,
                                   const tensor::FloatMatrix& streams) {
  const std::size_t tokens = streams.rows();
  const std::size_t width = streams.columns();
  const std::size_t mix_count = weights.base.size();
  HyperConnections site = {.pre = {tokens, config.streams},
                           .post = {tokens, config.streams},
                           .comb = {tokens, config.streams * config.streams}};
  tensor::FloatMatrix mixes = make_mixes(context, weights.fn, streams);
  const std::size_t row_work = kCoefficientWork + width * kWorkPerMixedValue;
  for_each_row(context, tokens, row_work, [&](std::size_t token) {
    const float factor = streams_rms(context, streams.row(token), config.norm_eps);
    for (float& mix : mixes.row(token)) mix *= factor;
    split_coefficients(
        config, weights, mixes.row(token),
        {.pre = site.pre.row(token), .post = site.post.row(token), .comb = site.comb.row(token)});
  });
  context.work.matmul += tokens * mix_count * width;
  return site;
}

tensor::FloatMatrix collapse_weights(ForwardContext& context, const HyperConnectionsConfig& config,
                                     const HyperConnectionsWeights& weights,
                                     const tensor::FloatMatrix& streams) {
  tensor::FloatMatrix pre = make_mixes(context, weights.fn, streams);
  const std::size_t row_work = streams.columns() * kWorkPerMixedValue;
  for_each_row(context, streams.rows(), row_work, [&](std::size_t token) {
    const float factor = streams_rms(context, streams.row(token), config.norm_eps);
    const auto row = pre.row(token);
    for (std::size_t i = 0; i < row.size(); ++i) {
      row[i] =
          kernels::sigmoid(row[i] * factor * weights.scale[0] + weights.base[i]) + config.hc_eps;
    }
  });
  context.work.matmul += streams.rows() * weights.base.size() * streams.columns();
  return pre;
}

tensor::FloatMatrix collapse_streams(const ForwardContext& context,
                                     const tensor::FloatMatrix& streams,
                                     const tensor::FloatMatrix& pre) {
  const std::size_t count = pre.columns();
  const std::size_t hidden = streams.columns() / count;
  tensor::FloatMatrix collapsed(streams.rows(), hidden);
  for_each_row(context, streams.rows(), streams.columns() * 2, [&](std::size_t token) {
    kernels::collapse_streams(streams.row(token), pre.row(token), context.numerics.rounding(),
                              collapsed.row(token));
  });
  return collapsed;
}

void expand_streams(const ForwardContext& context, const HyperConnections& site,
                    const tensor::FloatMatrix& y, tensor::FloatMatrix& streams) {
  const std::size_t row_work = streams.columns() * (site.post.columns() + 2);
  for_each_row(context, streams.rows(), row_work, [&](std::size_t token) {
    kernels::expand_streams({.comb = site.comb.row(token),
                             .post = site.post.row(token),
                             .y = y.row(token),
                             .rounding = context.numerics.rounding()},
                            streams.row(token));
  });
}

}  // namespace locket::model
