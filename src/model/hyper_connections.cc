#include "model/hyper_connections.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/double_dot.h"
#include "kernels/elementary.h"
#include "kernels/rms_norm.h"
#include "kernels/sum_order.h"
#include "model/row_work.h"

namespace locket::model {
namespace {

// rows of a [size, size] matrix become softmax + eps.
void softmax_rows(std::span<float> matrix, std::size_t size, float eps) {
  for (std::size_t row = 0; row < size; ++row) {
    const auto values = matrix.subspan(row * size, size);
    const float maximum = *std::max_element(values.begin(), values.end());
    float sum = 0.0f;
    for (float& value : values) {
      value = kernels::exp_value(value - maximum);
      sum += value;
    }
    const float reciprocal =
        1.0f / sum;  // as the reference's softmax has it: a product, not a division
    for (float& value : values) value = value * reciprocal + eps;
  }
}

void divide_rows(std::span<float> matrix, std::size_t size, float eps) {
  for (std::size_t row = 0; row < size; ++row) {
    float sum = 0.0f;
    for (std::size_t column = 0; column < size; ++column) sum += matrix[row * size + column];
    for (std::size_t column = 0; column < size; ++column) matrix[row * size + column] /= sum + eps;
  }
}

void divide_columns(std::span<float> matrix, std::size_t size, float eps) {
  for (std::size_t column = 0; column < size; ++column) {
    float sum = 0.0f;
    for (std::size_t row = 0; row < size; ++row) sum += matrix[row * size + column];
    for (std::size_t row = 0; row < size; ++row) matrix[row * size + column] /= sum + eps;
  }
}

// Sums over all streams: in double and rounded once in mode `reference`, whose values a float32 sum
// would push over rounding boundaries; as every other sum in the modes that are float32 everywhere.
float mix_dot(const ForwardContext& context, std::span<const float> row,
              std::span<const float> flat) {
  if (context.numerics.mode == NumericsMode::kReference) {
    return static_cast<float>(kernels::dot_in_double(row, flat));
  }
  return kernels::ordered_dot(
      row.size(), [&](std::size_t k) { return row[k]; }, [&](std::size_t k) { return flat[k]; });
}

float streams_rms(const ForwardContext& context, std::span<const float> flat, float eps) {
  if (context.numerics.mode != NumericsMode::kReference) {
    return kernels::reciprocal_rms(flat, eps);
  }
  const double mean = kernels::dot_in_double(flat, flat) / static_cast<double>(flat.size());
  return 1.0f / std::sqrt(static_cast<float>(mean) + eps);
}

// New stream `k` of one position, not rounded: post_k * y + sum over j of comb[j][k] * old_j.
void expand_into(const HyperConnections& site, std::size_t token, std::size_t k,
                 std::span<const float> old, std::span<const float> y, std::span<float> out) {
  const std::size_t count = site.post.columns();
  const std::size_t hidden = y.size();
  const auto comb = site.comb.row(token);
  for (std::size_t i = 0; i < hidden; ++i) out[i] = comb[k] * old[i];
  for (std::size_t j = 1; j < count; ++j) {
    const float weight = comb[j * count + k];
    for (std::size_t i = 0; i < hidden; ++i) out[i] += weight * old[j * hidden + i];
  }
  const float post = site.post.row(token)[k];
  for (std::size_t i = 0; i < hidden; ++i) out[i] = post * y[i] + out[i];
}

}  // namespace

void split_coefficients(const HyperConnectionsConfig& config,
                        const HyperConnectionsWeights& weights, std::span<const float> mixes,
                        const CoefficientSpans& out) {
  const std::size_t size = config.streams;
  const auto mixed = [&](std::size_t i, std::size_t part) {
    return mixes[i] * weights.scale[part] + weights.base[i];
  };
  for (std::size_t i = 0; i < size; ++i) {
    out.pre[i] = kernels::sigmoid(mixed(i, 0)) + config.hc_eps;
    out.post[i] = 2.0f * kernels::sigmoid(mixed(size + i, 1));
  }
  for (std::size_t i = 0; i < size * size; ++i) out.comb[i] = mixed(2 * size + i, 2);
  softmax_rows(out.comb, size, config.hc_eps);
  divide_columns(out.comb, size, config.hc_eps);
  for (std::size_t iteration = 1; iteration < config.sinkhorn_iterations; ++iteration) {
    divide_rows(out.comb, size, config.hc_eps);
    divide_columns(out.comb, size, config.hc_eps);
  }
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
  const std::size_t grain = WorkerPool::grain_for(mix_count * width);
  context.workers.parallel_for(tokens, grain, [&](std::size_t begin, std::size_t end) {
    std::vector<float> mixes(mix_count);
    for (std::size_t token = begin; token < end; ++token) {
      const auto flat = streams.row(token);
      const float factor = streams_rms(context, flat, config.norm_eps);
      for (std::size_t mix = 0; mix < mix_count; ++mix) {
        const auto row = std::span(weights.fn).subspan(mix * width, width);
        mixes[mix] = mix_dot(context, row, flat) * factor;
      }
      split_coefficients(
          config, weights, mixes,
          {.pre = site.pre.row(token), .post = site.post.row(token), .comb = site.comb.row(token)});
    }
  });
  context.work.matmul += tokens * mix_count * width;
  return site;
}

tensor::FloatMatrix collapse_streams(const ForwardContext& context,
                                     const tensor::FloatMatrix& streams,
                                     const tensor::FloatMatrix& pre) {
  const std::size_t count = pre.columns();
  const std::size_t hidden = streams.columns() / count;
  tensor::FloatMatrix collapsed(streams.rows(), hidden);
  for_each_row(context, streams.rows(), streams.columns() * 2, [&](std::size_t token) {
    const auto source = streams.row(token);
    const auto weights = pre.row(token);
    const auto out = collapsed.row(token);
    for (std::size_t i = 0; i < hidden; ++i) out[i] = weights[0] * source[i];
    for (std::size_t s = 1; s < count; ++s) {
      for (std::size_t i = 0; i < hidden; ++i) out[i] += weights[s] * source[s * hidden + i];
    }
    kernels::round_values(out, context.numerics.rounding());
  });
  return collapsed;
}

void expand_streams(const ForwardContext& context, const HyperConnections& site,
                    const tensor::FloatMatrix& y, tensor::FloatMatrix& streams) {
  const std::size_t hidden = y.columns();
  const std::size_t row_work = streams.columns() * (site.post.columns() + 2);
  for_each_row(context, streams.rows(), row_work, [&](std::size_t token) {
    const auto values = streams.row(token);
    const std::vector<float> old(values.begin(), values.end());
    for (std::size_t k = 0; k < site.post.columns(); ++k) {
      expand_into(site, token, k, old, y.row(token), values.subspan(k * hidden, hidden));
    }
    kernels::round_values(values, context.numerics.rounding());
  });
}

}  // namespace locket::model
