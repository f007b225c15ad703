#include "model/router.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/elementary.h"
#include "model/linear.h"
#include "model/row_work.h"

namespace locket::model {
namespace {

// About how many multiply-adds the score of one expert is worth.
constexpr std::size_t kWorkPerScore = 512;
constexpr float kWeightSumFloor = 1e-20f;  // a constant of the model, not the norm's epsilon

// The k best of score + bias, best first.
void choose_experts(std::span<const float> scores, const std::vector<float>& bias,
                    std::span<std::int32_t> chosen) {
  std::vector<std::int32_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  const auto biased = [&](std::int32_t expert) {
    const auto at = static_cast<std::size_t>(expert);
    return scores[at] + bias[at];
  };
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(chosen.size()),
                    order.end(), [&](std::int32_t a, std::int32_t b) {
                      return biased(a) > biased(b) || (biased(a) == biased(b) && a < b);
                    });
  std::copy_n(order.begin(), chosen.size(), chosen.begin());
}

// Their plain scores, normalised and scaled.
void weigh_experts(std::span<const float> scores, std::span<const std::int32_t> chosen,
                   float scaling_factor, std::span<float> weights) {
  float sum = 0.0f;
  for (const std::int32_t expert : chosen) sum += scores[static_cast<std::size_t>(expert)];
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    const float score = scores[static_cast<std::size_t>(chosen[i])];
    weights[i] = score / (sum + kWeightSumFloor) * scaling_factor;
  }
}

}  // namespace

Routing route(ForwardContext& context, const RouterConfig& config, const RouterWeights& weights,
              const tensor::FloatMatrix& u) {
  tensor::FloatMatrix scores(u.rows(), weights.gate.rows);
  linear(context, weights.gate, u, scores);
  const std::size_t k = config.experts_per_token;
  Routing routing = {.experts_per_token = k,
                     .experts = std::vector<std::int32_t>(u.rows() * k),
                     .weights = std::vector<float>(u.rows() * k)};
  for_each_row(context, u.rows(), scores.columns() * kWorkPerScore, [&](std::size_t token) {
    const auto row = scores.row(token);
    for (float& score : row) score = std::sqrt(kernels::softplus(score));
    const auto chosen = std::span(routing.experts).subspan(token * k, k);
    choose_experts(row, weights.bias, chosen);
    weigh_experts(row, chosen, config.scaling_factor,
                  std::span(routing.weights).subspan(token * k, k));
  });
  return routing;
}

}  // namespace locket::model
