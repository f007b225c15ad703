// The mixture of experts of a layer: every token goes through the experts that the router chose and
// through one shared expert. Expert outputs are added in ascending expert id, the shared expert
// last, in float32 with one rounding. Official model.py, MoE and Expert.
//
// u [tokens, hidden] -> [tokens, hidden].
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.h"
#include "model/expert_source.h"
#include "model/forward_context.h"
#include "model/router.h"
#include "tensor/float_matrix.h"

namespace locket::model {

struct MoeConfig {
  std::int64_t layer = 0;  // for the expert source and for observers
  RouterConfig router;
  float swiglu_limit = 0;
  // Of a routed expert; 0: the shared one's. A shared expert of another size is computed by itself.
  std::size_t expert_size = 0;
};

// The routed experts come from an ExpertSource.
struct MoeWeights {
  RouterWeights router;
  ExpertWeights shared;
};

// Fails if the source cannot give an expert. REQUIRES: nobody else fetches from `experts` now.
[[nodiscard]] Result<tensor::FloatMatrix> moe_forward(
    ForwardContext& context, const MoeConfig& config, const MoeWeights& weights,
    ExpertSource& experts, const tensor::FloatMatrix& u, std::int64_t first_position);

// The same with experts that have been chosen already; `shared`: the expert of every token. Tells
// the observer nothing.
[[nodiscard]] Result<tensor::FloatMatrix> run_experts(
    ForwardContext& context, const MoeConfig& config, const ExpertWeights& shared,
    ExpertSource& experts, const tensor::FloatMatrix& u, const Routing& routing);

// Tells the observer which experts were chosen, and their weights.
void observe_routing(const ForwardContext& context, std::int64_t layer, const Routing& routing,
                     std::int64_t first_position);

}  // namespace locket::model
