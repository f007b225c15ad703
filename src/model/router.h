// The router of a mixture of experts: score = sqrt(softplus(gate . u)) per expert; the k experts
// with the largest score + bias are chosen (the lower id on equal sums); their weights are the
// plain scores, normalised and scaled. Official model.py, Gate ("noaux_tc", "sqrtsoftplus").
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/weight_matrix.h"
#include "model/forward_context.h"
#include "tensor/float_matrix.h"

namespace locket::model {

struct RouterConfig {
  std::size_t experts_per_token = 0;
  float scaling_factor = 1;
};

struct RouterWeights {
  kernels::WeightMatrix gate;  // [experts, hidden] BF16
  std::vector<float> bias;     // [experts], for the choice only
};

struct Routing {
  std::size_t experts_per_token = 0;
  std::vector<std::int32_t> experts;  // [tokens, k], best first
  std::vector<float> weights;         // [tokens, k]
};

Routing route(ForwardContext& context, const RouterConfig& config, const RouterWeights& weights,
              const tensor::FloatMatrix& u);

}  // namespace locket::model
