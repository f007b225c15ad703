// Experts for tests, and their mixture computed one token and one expert at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/swiglu.h"
#include "model/expert_source.h"
#include "model/linear.h"
#include "model/moe.h"
#include "tests/model/mechanism_inputs.h"
#include "tests/support/kernel_data.h"

namespace locket::model {

inline ExpertWeights random_expert(std::uint32_t seed, std::size_t hidden, std::size_t size) {
  return {.gate = random_weights(seed, size, hidden),
          .up = random_weights(seed + 1, size, hidden),
          .down = random_weights(seed + 2, hidden, size)};
}

// With codes and scales of a format.
inline ExpertWeights random_expert(kernels::WeightFormat format, std::size_t hidden,
                                   std::size_t size, kernels::RandomValues& random) {
  const auto matrix = [&](std::size_t rows, std::size_t columns) {
    return kernels::random_matrix(format, rows, columns, kernels::Spread::kUsual, random).packed();
  };
  return {.gate = matrix(size, hidden), .up = matrix(size, hidden), .down = matrix(hidden, size)};
}

// A source of one layer.
inline std::unique_ptr<ExpertSource> one_layer(std::vector<ExpertWeights> experts) {
  std::vector<std::vector<ExpertWeights>> layers;
  layers.push_back(std::move(experts));
  return resident_experts(std::move(layers));
}

inline const ExpertWeights& expert_of(ExpertSource& source, std::int32_t id) {
  const std::int32_t ids[] = {id};
  return **source.fetch(0, ids)->wait(0);
}

inline tensor::FloatMatrix expert_output(ForwardContext& context, const ExpertWeights& weights,
                                         float limit, std::span<const float> x, float weight) {
  const tensor::FloatMatrix input = quantize_activations(context, float_matrix(1, x.size(), x));
  tensor::FloatMatrix gate = rounded_linear(context, weights.gate, input);
  const tensor::FloatMatrix up = rounded_linear(context, weights.up, input);
  kernels::swiglu(gate.row(0), up.row(0), limit, weight, context.numerics.rounding(), gate.row(0));
  return rounded_linear(context, weights.down, quantize_activations(context, gate));
}

// The choices of one token as (expert, weight), ascending.
inline std::vector<std::pair<std::int32_t, float>> chosen_by(const Routing& routing,
                                                             std::size_t token) {
  std::vector<std::pair<std::int32_t, float>> chosen;
  for (std::size_t i = 0; i < routing.experts_per_token; ++i) {
    const std::size_t at = token * routing.experts_per_token + i;
    chosen.emplace_back(routing.experts[at], routing.weights[at]);
  }
  std::ranges::sort(chosen);
  return chosen;
}

// What moe_forward() is to give.
inline tensor::FloatMatrix one_by_one(ForwardContext& context, const MoeConfig& config,
                                      const MoeWeights& weights, ExpertSource& experts,
                                      const tensor::FloatMatrix& u) {
  const Routing routing = route(context, config.router, weights.router, u);
  tensor::FloatMatrix sums(u.rows(), u.columns());
  const auto add = [&](std::size_t token, const ExpertWeights& expert, float weight) {
    const tensor::FloatMatrix output =
        expert_output(context, expert, config.swiglu_limit, u.row(token), weight);
    for (std::size_t d = 0; d < u.columns(); ++d) sums.row(token)[d] += output.row(0)[d];
  };
  for (std::size_t token = 0; token < u.rows(); ++token) {
    for (const auto& [id, weight] : chosen_by(routing, token)) {
      add(token, expert_of(experts, id), weight);
    }
    add(token, weights.shared, 1.0f);
  }
  kernels::round_values(sums.values(), context.numerics.rounding());
  return sums;
}

}  // namespace locket::model
