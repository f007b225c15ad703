#include "model/moe.h"

#include <algorithm>

#include "kernels/swiglu.h"
#include "model/linear.h"

namespace locket::model {
namespace {

// The tokens that one expert sees, and the router's weight of each.
struct ExpertTokens {
  std::vector<std::size_t> tokens;
  std::vector<float> weights;
};

std::vector<ExpertTokens> group_by_expert(const Routing& routing, std::size_t expert_count) {
  std::vector<ExpertTokens> groups(expert_count);
  for (std::size_t i = 0; i < routing.experts.size(); ++i) {
    ExpertTokens& group = groups[static_cast<std::size_t>(routing.experts[i])];
    group.tokens.push_back(i / routing.experts_per_token);
    group.weights.push_back(routing.weights[i]);
  }
  return groups;
}

// x is quantized already; one router weight per row.
tensor::FloatMatrix expert_forward(ForwardContext& context, const ExpertWeights& weights,
                                   float limit, const tensor::FloatMatrix& x,
                                   std::span<const float> router_weights) {
  tensor::FloatMatrix gate = rounded_linear(context, weights.gate, x);
  const tensor::FloatMatrix up = rounded_linear(context, weights.up, x);
  for (std::size_t row = 0; row < x.rows(); ++row) {
    kernels::swiglu(gate.row(row), up.row(row), limit, router_weights[row],
                    context.numerics.rounding(), gate.row(row));
  }
  return rounded_linear(context, weights.down, quantize_activations(context, gate));
}

void observe(const ForwardContext& context, const MoeConfig& config, const Routing& routing,
             std::int64_t first_position) {
  if (context.observer == nullptr) return;
  const ForwardObserver::Place place = {.name = "experts",
                                        .layer = config.layer,
                                        .first_position = first_position,
                                        .width = routing.experts_per_token};
  context.observer->on_integers(place, routing.experts);
  ForwardObserver::Place weights = place;
  weights.name = "expert_weights";
  context.observer->on_floats(weights, routing.weights);
}

}  // namespace

tensor::FloatMatrix moe_forward(ForwardContext& context, const MoeConfig& config,
                                const MoeWeights& weights, const tensor::FloatMatrix& u,
                                std::int64_t first_position) {
  const Routing routing = route(context, config.router, weights.router, u);
  observe(context, config, routing, first_position);
  const tensor::FloatMatrix input = quantize_activations(context, u);
  tensor::FloatMatrix sum(u.rows(), u.columns());
  const std::vector<ExpertTokens> groups = group_by_expert(routing, weights.experts.size());
  for (std::size_t expert = 0; expert < groups.size(); ++expert) {
    const ExpertTokens& group = groups[expert];
    if (group.tokens.empty()) continue;
    tensor::FloatMatrix x(group.tokens.size(), u.columns());
    for (std::size_t row = 0; row < x.rows(); ++row) {
      std::ranges::copy(input.row(group.tokens[row]), x.row(row).begin());
    }
    const tensor::FloatMatrix y =
        expert_forward(context, weights.experts[expert], config.swiglu_limit, x, group.weights);
    for (std::size_t row = 0; row < x.rows(); ++row) {
      const auto target = sum.row(group.tokens[row]);
      for (std::size_t i = 0; i < target.size(); ++i) target[i] += y.row(row)[i];
    }
  }
  const std::vector<float> ones(u.rows(), 1.0f);
  const tensor::FloatMatrix shared =
      expert_forward(context, weights.shared, config.swiglu_limit, input, ones);
  for (std::size_t i = 0; i < sum.values().size(); ++i) {
    sum.values()[i] =
        kernels::round_value(sum.values()[i] + shared.values()[i], context.numerics.rounding());
  }
  return sum;
}

}  // namespace locket::model
