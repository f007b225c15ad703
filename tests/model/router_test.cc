#include "model/router.h"

#include <cmath>
#include <gtest/gtest.h>
#include <numeric>
#include <vector>

#include "tests/model/mechanism_inputs.h"

namespace locket::model {
namespace {

constexpr std::size_t kExperts = 8;

// The router's logits are its inputs.
class RouterTest : public ::testing::Test {
 protected:
  RouterWeights weights(std::vector<float> bias = std::vector<float>(kExperts, 0.0f)) {
    return {.gate = diagonal_weights(kExperts, 1.0f), .bias = std::move(bias)};
  }
  Routing routed(const RouterWeights& router, const std::vector<float>& logits) {
    return route(test_.context, config_, router,
                 float_matrix(logits.size() / kExperts, kExperts, logits));
  }

  TestContext test_{NumericsMode::kReference};
  RouterConfig config_ = {.experts_per_token = 3, .scaling_factor = 1.5f};
};

float score(float logit) { return std::sqrt(std::log1p(std::exp(logit))); }

TEST_F(RouterTest, ChoosesTheBestFirst) {
  const Routing routing = routed(weights(), {0, 3, -1, 2, 0.5f, -2, 1, -3});
  EXPECT_EQ(routing.experts, (std::vector<std::int32_t>{1, 3, 6}));
  const float sum = score(3) + score(2) + score(1);
  EXPECT_NEAR(routing.weights[0], score(3) / sum * 1.5f, 1e-6f);
  EXPECT_NEAR(routing.weights[1], score(2) / sum * 1.5f, 1e-6f);
  EXPECT_NEAR(routing.weights[2], score(1) / sum * 1.5f, 1e-6f);
}

TEST_F(RouterTest, TheBiasChoosesButDoesNotWeigh) {
  std::vector<float> bias(kExperts, 0.0f);
  bias[5] = 10.0f;
  const Routing routing = routed(weights(bias), {0, 3, -1, 2, 0.5f, -2, 1, -3});
  EXPECT_EQ(routing.experts, (std::vector<std::int32_t>{5, 1, 3}));
  const float sum = score(-2) + score(3) + score(2);
  EXPECT_NEAR(routing.weights[0], score(-2) / sum * 1.5f, 1e-6f);
  EXPECT_NEAR(routing.weights[1], score(3) / sum * 1.5f, 1e-6f);
}

TEST_F(RouterTest, ANegativeBiasKeepsAnExpertOut) {
  std::vector<float> bias(kExperts, 0.0f);
  bias[1] = -10.0f;
  const Routing routing = routed(weights(bias), {0, 3, -1, 2, 0.5f, -2, 1, -3});
  EXPECT_EQ(routing.experts, (std::vector<std::int32_t>{3, 6, 4}));
}

TEST_F(RouterTest, TiesGoToTheLowerId) {
  EXPECT_EQ(routed(weights(), std::vector<float>(kExperts, 0.25f)).experts,
            (std::vector<std::int32_t>{0, 1, 2}));
  EXPECT_EQ(routed(weights(), {0, 1, 0, 1, 0, 1, 0, 1}).experts,
            (std::vector<std::int32_t>{1, 3, 5}));
  EXPECT_EQ(
      routed(weights({0, 0.5f, 0, 0.5f, 0, 0, 0.5f, 0.5f}), std::vector<float>(8, 0.25f)).experts,
      (std::vector<std::int32_t>{1, 3, 6}));
}

TEST_F(RouterTest, WeightsSumToTheFactor) {
  for (const float factor : {1.0f, 1.5f, 16.0f}) {
    config_.scaling_factor = factor;
    const Routing routing = routed(weights(), random_floats(11, 40 * kExperts));
    ASSERT_EQ(routing.weights.size(), 120U);
    for (std::size_t token = 0; token < 40; ++token) {
      const auto first = routing.weights.begin() + static_cast<std::ptrdiff_t>(3 * token);
      EXPECT_NEAR(std::accumulate(first, first + 3, 0.0f), factor, factor * 1e-6f);
    }
  }
}

// Scores far below any of a trained model: the floor of the sum keeps the division finite.
TEST_F(RouterTest, TinyScoresGiveFiniteWeights) {
  const Routing routing = routed(weights(), std::vector<float>(kExperts, -1'000.0f));
  for (const float weight : routing.weights) EXPECT_EQ(weight, 0.0f);
}

TEST_F(RouterTest, LargeLogitsAreTheirOwnSoftplus) {
  config_.experts_per_token = 2;
  const Routing routing = routed(weights(), {0, 0, 400, 0, 0, 100, 0, 0});
  EXPECT_EQ(routing.experts, (std::vector<std::int32_t>{2, 5}));
  EXPECT_FLOAT_EQ(routing.weights[0], 20.0f / 30.0f * 1.5f);
  EXPECT_FLOAT_EQ(routing.weights[1], 10.0f / 30.0f * 1.5f);
}

TEST_F(RouterTest, TokensDoNotTouchEachOther) {
  const std::vector<float> logits = random_floats(12, 7 * kExperts);
  const RouterWeights router = weights(random_floats(13, kExperts));
  const Routing together = routed(router, logits);
  for (std::size_t token = 0; token < 7; ++token) {
    const auto first = logits.begin() + static_cast<std::ptrdiff_t>(token * kExperts);
    const Routing alone = routed(router, std::vector<float>(first, first + kExperts));
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(alone.experts[i], together.experts[token * 3 + i]);
      EXPECT_EQ(alone.weights[i], together.weights[token * 3 + i]);
    }
  }
}

}  // namespace
}  // namespace locket::model
