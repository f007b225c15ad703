#include "model/token_router.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "kernels/elementary.h"
#include "model/linear.h"

namespace locket::model {
namespace {

constexpr float kWeightSumFloor = 1e-20f;  // as where the gate chooses

void weigh(std::span<const float> logits, std::span<const std::int32_t> chosen,
           float scaling_factor, std::span<float> weights) {
  float sum = 0.0f;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    weights[i] = std::sqrt(kernels::softplus(logits[static_cast<std::size_t>(chosen[i])]));
    sum += weights[i];
  }
  for (float& weight : weights) weight = weight / (sum + kWeightSumFloor) * scaling_factor;
}

}  // namespace

Routing route_by_token(ForwardContext& context, const RouterConfig& config,
                       const TokenRouterWeights& weights, const tensor::FloatMatrix& u,
                       std::span<const std::int32_t> ids) {
  LOCKET_CHECK(ids.size() == u.rows());
  tensor::FloatMatrix logits(u.rows(), weights.gate.rows);
  linear(context, weights.gate, u, logits);
  const std::size_t k = config.experts_per_token;
  Routing routing = {.experts_per_token = k,
                     .experts = std::vector<std::int32_t>(u.rows() * k),
                     .weights = std::vector<float>(u.rows() * k)};
  for (std::size_t row = 0; row < u.rows(); ++row) {
    const std::size_t at = static_cast<std::size_t>(ids[row]) * k;
    LOCKET_CHECK(ids[row] >= 0 && at + k <= weights.expert_of_token.size());
    const auto chosen = std::span(routing.experts).subspan(row * k, k);
    std::ranges::copy(std::span(weights.expert_of_token).subspan(at, k), chosen.begin());
    weigh(logits.row(row), chosen, config.scaling_factor,
          std::span(routing.weights).subspan(row * k, k));
  }
  return routing;
}

}  // namespace locket::model
