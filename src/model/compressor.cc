#include "model/compressor.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/elementary.h"
#include "kernels/rms_norm.h"
#include "kernels/rotary.h"
#include "model/linear.h"

namespace locket::model {
namespace {

// One channel of one group: softmax of the gates over the tokens, weighted sum of the values.
float weigh_channel(const PendingGroup& group, const CompressorConfig& config,
                    std::size_t first_token, std::size_t channel) {
  const auto at = [&](std::size_t token) {
    return (first_token + token) * config.head_dim + channel;
  };
  float maximum = group.gates[at(0)];
  for (std::size_t token = 1; token < config.ratio; ++token) {
    maximum = std::max(maximum, group.gates[at(token)]);
  }
  float denominator = 0.0f;
  for (std::size_t token = 0; token < config.ratio; ++token) {
    denominator += kernels::exp_value(group.gates[at(token)] - maximum);
  }
  float sum = 0.0f;
  for (std::size_t token = 0; token < config.ratio; ++token) {
    const float weight = kernels::exp_value(group.gates[at(token)] - maximum) / denominator;
    sum += weight * group.values[at(token)];
  }
  return sum;
}

// Groups that `tokens` completes, appended to `merged`; what is left over stays in it.
void merge_groups(const ForwardContext& context, const CompressorConfig& config,
                  PendingGroup& tokens, std::vector<float>& merged) {
  const std::size_t groups = tokens.tokens(config.head_dim) / config.ratio;
  for (std::size_t group = 0; group < groups; ++group) {
    for (std::size_t channel = 0; channel < config.head_dim; ++channel) {
      merged.push_back(
          kernels::round_value(weigh_channel(tokens, config, group * config.ratio, channel),
                               context.numerics.rounding()));
    }
  }
  // Fresh vectors: what waits is small, and a slice's capacity must not stay with the session.
  const auto used = static_cast<std::ptrdiff_t>(groups * config.ratio * config.head_dim);
  tokens.values = {tokens.values.begin() + used, tokens.values.end()};
  tokens.gates = {tokens.gates.begin() + used, tokens.gates.end()};
}

tensor::FloatMatrix merge_runs(ForwardContext& context, const CompressorConfig& config,
                               const CompressorWeights& weights, const tensor::FloatMatrix& u,
                               std::span<const CompressorRun> runs) {
  tensor::FloatMatrix values(u.rows(), config.head_dim);
  tensor::FloatMatrix gates(u.rows(), config.head_dim);
  linear(context, weights.wkv, u, values);
  linear(context, weights.wgate, u, gates);
  std::vector<float> merged;
  std::size_t first = 0;
  for (const CompressorRun& run : runs) {
    const auto append = [&](std::vector<float>& list, const tensor::FloatMatrix& more) {
      const auto rows = more.values().subspan(first * config.head_dim, run.count * config.head_dim);
      list.insert(list.end(), rows.begin(), rows.end());
    };
    append(run.pending->values, values);
    append(run.pending->gates, gates);
    merge_groups(context, config, *run.pending, merged);
    first += run.count;
  }
  tensor::FloatMatrix latents(merged.size() / config.head_dim, config.head_dim);
  std::ranges::copy(merged, latents.values().begin());
  return latents;
}

}  // namespace

tensor::FloatMatrix compress(ForwardContext& context, const CompressorConfig& config,
                             const CompressorWeights& weights, const tensor::FloatMatrix& u,
                             std::span<const CompressorRun> runs) {
  tensor::FloatMatrix latents = config.ratio == 1 ? rounded_linear(context, weights.wkv, u)
                                                  : merge_runs(context, config, weights, u, runs);
  for (std::size_t row = 0; row < latents.rows(); ++row) {
    kernels::rms_norm(latents.row(row), weights.norm, config.norm_eps, context.numerics.rounding(),
                      latents.row(row));
  }
  return latents;
}

void write_rows(ForwardContext& context, const CompressorConfig& config,
                const CompressorWeights& weights, const tensor::FloatMatrix& latents,
                const RowWriter& writer) {
  if (latents.rows() == 0) return;
  const auto ratio = static_cast<std::int64_t>(config.ratio);
  std::vector<std::int64_t> positions;
  for (const RowWriter::Target& target : writer.targets) {
    for (std::size_t i = 0; i < target.count; ++i) {
      positions.push_back((target.first_row + static_cast<std::int64_t>(i)) * ratio);
    }
  }
  LOCKET_CHECK(positions.size() == latents.rows());
  const RotaryTable table = rotary_table(writer.frequencies, positions);
  const kernels::Rounding rounding = context.numerics.rounding();
  tensor::FloatMatrix keys = rounded_linear(context, weights.index_wk, latents);
  tensor::FloatMatrix rows = latents;
  std::size_t i = 0;
  for (const RowWriter::Target& target : writer.targets) {
    for (std::size_t n = 0; n < target.count; ++n, ++i) {
      kernels::rms_norm(keys.row(i), weights.index_k_norm, config.norm_eps, rounding, keys.row(i));
      for (const auto values : {keys.row(i), rows.row(i)}) {
        kernels::rotate_pairs(values.last(config.rope_dim), table.cos.row(i), table.sin.row(i),
                              kernels::RotaryDirection::kForward, rounding);
      }
      const std::int64_t number = target.first_row + static_cast<std::int64_t>(n);
      encode_row(writer.formats.rows, rows.row(i),
                 target.memory->row(static_cast<std::size_t>(writer.streams.rows), number));
      encode_row(writer.formats.index_keys, keys.row(i),
                 target.memory->row(static_cast<std::size_t>(writer.streams.index_keys), number));
    }
  }
}

}  // namespace locket::model
