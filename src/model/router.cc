#include "model/router.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "base/check.h"
#include "kernels/elementary.h"
#include "model/linear.h"
#include "model/row_work.h"

namespace locket::model {
namespace {

// About how many multiply-adds the score of one expert is worth.
constexpr std::size_t kWorkPerScore = 512;
constexpr float kWeightSumFloor = 1e-20f;  // a constant of the model, not the norm's epsilon

// softmax in float32: exponentials of the distance to the largest, over their sum.
void softmax(std::span<float> values) {
  const float largest = *std::ranges::max_element(values);
  float sum = 0.0f;
  for (float& value : values) {
    value = kernels::exp_value(value - largest);
    sum += value;
  }
  for (float& value : values) value /= sum;
}

// Logits to scores, in place.
void score_experts(RouterScore score, std::span<float> values) {
  switch (score) {
    case RouterScore::kSqrtSoftplus:
      for (float& value : values) value = std::sqrt(kernels::softplus(value));
      return;
    case RouterScore::kSigmoid:
      for (float& value : values) value = kernels::sigmoid(value);
      return;
    case RouterScore::kSoftmax:
      return softmax(values);
    case RouterScore::kCount:
      break;
  }
  LOCKET_CHECK(false);
}

// The numbers of the `count` best of `values`, best first, the lower number on equal values.
void take_best(std::span<const float> values, std::vector<std::int32_t>& numbers,
               std::size_t count) {
  const auto value = [&](std::int32_t number) { return values[static_cast<std::size_t>(number)]; };
  std::partial_sort(numbers.begin(), numbers.begin() + static_cast<std::ptrdiff_t>(count),
                    numbers.end(), [&](std::int32_t a, std::int32_t b) {
                      return value(a) > value(b) || (value(a) == value(b) && a < b);
                    });
  numbers.resize(count);
}

std::vector<std::int32_t> first_numbers(std::size_t count) {
  std::vector<std::int32_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

float group_value(GroupScore score, std::span<const float> group) {
  std::array<float, 2> best = {-HUGE_VALF, -HUGE_VALF};
  for (const float value : group) {
    if (value > best[0]) {
      best = {value, best[0]};
    } else {
      best[1] = std::max(best[1], value);
    }
  }
  return score == GroupScore::kBest ? best[0] : best[0] + best[1];
}

// The experts that may be chosen: those of the best groups.
std::vector<std::int32_t> candidates(const RouterConfig& config, std::span<const float> biased) {
  if (config.groups <= 1) return first_numbers(biased.size());
  const std::size_t size = biased.size() / config.groups;
  std::vector<float> scores;
  for (std::size_t group = 0; group < config.groups; ++group) {
    scores.push_back(group_value(config.group_score, biased.subspan(group * size, size)));
  }
  std::vector<std::int32_t> kept = first_numbers(config.groups);
  take_best(scores, kept, config.kept_groups);
  std::vector<std::int32_t> experts;
  for (const std::int32_t group : kept) {
    const auto first = group * static_cast<std::int32_t>(size);
    for (std::size_t i = 0; i < size; ++i) experts.push_back(first + static_cast<std::int32_t>(i));
  }
  return experts;
}

// The k best of score + bias, best first.
void choose_experts(const RouterConfig& config, std::span<const float> scores,
                    const std::vector<float>& bias, std::span<std::int32_t> chosen) {
  std::vector<float> biased(scores.begin(), scores.end());
  for (std::size_t expert = 0; expert < bias.size(); ++expert) biased[expert] += bias[expert];
  std::vector<std::int32_t> experts = candidates(config, biased);
  take_best(biased, experts, chosen.size());
  std::ranges::copy(experts, chosen.begin());
}

// Their plain scores, normalised or not, and scaled.
void weigh_experts(const RouterConfig& config, std::span<const float> scores,
                   std::span<const std::int32_t> chosen, std::span<float> weights) {
  float sum = 0.0f;
  for (const std::int32_t expert : chosen) sum += scores[static_cast<std::size_t>(expert)];
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    float weight = scores[static_cast<std::size_t>(chosen[i])];
    if (config.weighting == RouterWeighting::kNormalised) weight /= sum + kWeightSumFloor;
    weights[i] = weight * config.scaling_factor;
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
    score_experts(config.score, row);
    const auto chosen = std::span(routing.experts).subspan(token * k, k);
    choose_experts(config, row, weights.bias, chosen);
    weigh_experts(config, row, chosen, std::span(routing.weights).subspan(token * k, k));
  });
  return routing;
}

}  // namespace locket::model
