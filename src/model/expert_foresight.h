// Which experts a layer will probably choose, before its input is known: what its router says of
// the residual as it is before the layer's attention. A residual changes little from site to site,
// so the guess is often right; it decides what is read ahead and never what is computed.
// "Look-ahead routing", as several engines that stream experts have it.
#pragma once

#include <cstdint>
#include <vector>

#include "model/forward_context.h"
#include "model/router.h"
#include "tensor/float_matrix.h"

namespace locket::model {

// Likeliest first, no duplicates: those that most rows of `u` [tokens, hidden] choose. Neither
// counted as work nor observed.
std::vector<std::int32_t> likely_experts(const ForwardContext& context, const RouterConfig& config,
                                         const RouterWeights& weights,
                                         const tensor::FloatMatrix& u);

}  // namespace locket::model
