// The mixture of experts of a layer: every token goes through the experts that the router chose and
// through one shared expert. Expert outputs are added in ascending expert id, the shared expert
// last, in float32 with one rounding. Official model.py, MoE and Expert.
//
// u [tokens, hidden] -> [tokens, hidden].
#pragma once

#include <vector>

#include "kernels/weight_matrix.h"
#include "model/forward_context.h"
#include "model/router.h"
#include "tensor/float_matrix.h"

namespace locket::model {

struct ExpertWeights {
  kernels::WeightMatrix gate;  // w1 [expert_size, hidden]; FP4 routed, FP8 shared
  kernels::WeightMatrix up;    // w3 [expert_size, hidden]
  kernels::WeightMatrix down;  // w2 [hidden, expert_size]
};

struct MoeConfig {
  std::int64_t layer = 0;  // for observers
  RouterConfig router;
  float swiglu_limit = 0;
};

struct MoeWeights {
  RouterWeights router;
  std::vector<ExpertWeights> experts;
  ExpertWeights shared;
};

tensor::FloatMatrix moe_forward(ForwardContext& context, const MoeConfig& config,
                                const MoeWeights& weights, const tensor::FloatMatrix& u,
                                std::int64_t first_position);

}  // namespace locket::model
