#include "model/token_router.h"

#include <cmath>
#include <gtest/gtest.h>
#include <vector>

#include "tests/model/mechanism_inputs.h"

namespace locket::model {
namespace {

constexpr std::size_t kExperts = 5;
constexpr std::size_t kHidden = 12;
constexpr RouterConfig kConfig = {.experts_per_token = 2, .scaling_factor = 1.5f};

TokenRouterWeights weights_of() {
  return {.gate = random_weights(3, kExperts, kHidden),
          .expert_of_token = {4, 0, 1, 3, 2, 2}};  // three ids
}

TEST(TokenRouterTest, TheTableChoosesAndTheGateWeighs) {
  TestContext test(NumericsMode::kWide);
  const TokenRouterWeights weights = weights_of();
  const tensor::FloatMatrix u = random_matrix(4, 3, kHidden);
  const std::vector<std::int32_t> ids = {1, 0, 1};
  const Routing routing = route_by_token(test.context, kConfig, weights, u, ids);
  EXPECT_EQ(routing.experts_per_token, 2U);
  EXPECT_EQ(routing.experts, (std::vector<std::int32_t>{1, 3, 4, 0, 1, 3}));
  for (std::size_t row = 0; row < 3; ++row) {
    double scores[2];
    for (std::size_t i = 0; i < 2; ++i) {
      double logit = 0;
      const auto expert = static_cast<std::size_t>(routing.experts[2 * row + i]);
      for (std::size_t k = 0; k < kHidden; ++k) {
        logit += static_cast<double>(weight_at(weights.gate, expert, k)) *
                 static_cast<double>(u.row(row)[k]);
      }
      scores[i] = std::sqrt(std::log1p(std::exp(logit)));
    }
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_NEAR(routing.weights[2 * row + i], 1.5 * scores[i] / (scores[0] + scores[1]), 1e-6);
    }
  }
}

TEST(TokenRouterTest, AnExpertThatStandsTwiceIsWeighedTwice) {
  TestContext test(NumericsMode::kWide);
  const std::vector<std::int32_t> ids = {2};
  const Routing routing =
      route_by_token(test.context, kConfig, weights_of(), random_matrix(5, 1, kHidden), ids);
  EXPECT_EQ(routing.experts, (std::vector<std::int32_t>{2, 2}));
  EXPECT_FLOAT_EQ(routing.weights[0], 0.75f);
  EXPECT_FLOAT_EQ(routing.weights[1], 0.75f);
}

}  // namespace
}  // namespace locket::model
