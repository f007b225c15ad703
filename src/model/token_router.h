// The router of a layer that chooses experts by token id: a table says which k experts a token goes
// to, the learned gate only weighs them: score = sqrt(softplus(gate . u)) of the chosen, normalised
// and scaled. DeepSeek-V4, first layers ("hash layers"). Thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/weight_matrix.h"
#include "model/forward_context.h"
#include "model/router.h"
#include "tensor/float_matrix.h"

namespace locket::model {

struct TokenRouterWeights {
  kernels::WeightMatrix gate;                 // [experts, hidden] BF16
  std::vector<std::int32_t> expert_of_token;  // [vocabulary, k]
};

// Of `config`, experts_per_token and scaling_factor count. `ids` [rows of u].
// REQUIRES: every id is in the table's vocabulary.
Routing route_by_token(ForwardContext& context, const RouterConfig& config,
                       const TokenRouterWeights& weights, const tensor::FloatMatrix& u,
                       std::span<const std::int32_t> ids);

}  // namespace locket::model
