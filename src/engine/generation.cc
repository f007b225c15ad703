#include "engine/generation.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace locket::engine {

GeneratedToken with_logprobs(std::span<const float> logits, TokenId token, std::size_t top_count) {
  const auto is_usable = [](float logit) { return logit < HUGE_VALF; };  // false for NaN
  double best = -HUGE_VAL;
  for (const float logit : logits) {
    if (is_usable(logit)) best = std::max(best, static_cast<double>(logit));
  }
  double sum = 0;
  for (const float logit : logits) {
    if (is_usable(logit)) sum += std::exp(static_cast<double>(logit) - best);
  }
  const double log_sum = best + std::log(sum);
  const auto logprob = [&](TokenId id) {
    const float logit = logits[static_cast<std::size_t>(id)];
    return is_usable(logit) ? static_cast<double>(logit) - log_sum : -HUGE_VAL;
  };
  GeneratedToken result = {.token = token, .logprob = logprob(token)};
  std::vector<TokenId> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const std::size_t count = std::min(top_count, order.size());
  const auto middle = order.begin() + static_cast<std::ptrdiff_t>(count);
  std::partial_sort(order.begin(), middle, order.end(), [&](TokenId left, TokenId right) {
    const double a = logprob(left);
    const double b = logprob(right);
    return a != b ? a > b : left < right;
  });
  for (std::size_t i = 0; i < count; ++i) {
    result.top.push_back({.token = order[i], .logprob = logprob(order[i])});
  }
  return result;
}

}  // namespace locket::engine
