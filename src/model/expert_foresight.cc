#include "model/expert_foresight.h"

#include <algorithm>
#include <cstddef>

namespace locket::model {

std::vector<std::int32_t> likely_experts(const ForwardContext& context, const RouterConfig& config,
                                         const RouterWeights& weights,
                                         const tensor::FloatMatrix& u) {
  ForwardContext aside = {.workers = context.workers, .numerics = context.numerics};
  const Routing routing = route(aside, config, weights, u);
  std::vector<float> wishes(weights.gate.rows);
  for (std::size_t i = 0; i < routing.experts.size(); ++i) {
    wishes[static_cast<std::size_t>(routing.experts[i])] += routing.weights[i];
  }
  std::vector<std::int32_t> likely;
  for (std::size_t expert = 0; expert < wishes.size(); ++expert) {
    if (wishes[expert] > 0) likely.push_back(static_cast<std::int32_t>(expert));
  }
  std::ranges::stable_sort(likely, [&](std::int32_t a, std::int32_t b) {
    return wishes[static_cast<std::size_t>(a)] > wishes[static_cast<std::size_t>(b)];
  });
  return likely;
}

}  // namespace locket::model
