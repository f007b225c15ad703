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

float probability(const std::vector<float>& logits, std::size_t expert) {
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit));
  return static_cast<float>(std::exp(static_cast<double>(logits[expert])) / sum);
}

// V2-Lite: the best of all by softmax, weights as they are.
TEST_F(RouterTest, PlainSoftmaxWeightsAreProbabilitiesOfAllExperts) {
  config_.score = RouterScore::kSoftmax;
  config_.weighting = RouterWeighting::kPlain;
  const std::vector<float> logits = {0, 3, -1, 2, 0.5f, -2, 1, -3};
  const Routing routing = routed(weights({}), logits);
  EXPECT_EQ(routing.experts, (std::vector<std::int32_t>{1, 3, 6}));
  EXPECT_NEAR(routing.weights[0], probability(logits, 1) * 1.5f, 1e-6f);
  EXPECT_NEAR(routing.weights[2], probability(logits, 6) * 1.5f, 1e-6f);
}

// V2: groups of two by their best expert, of which two groups are kept.
TEST_F(RouterTest, ExpertsOutsideTheBestGroupsAreNotChosen) {
  config_ = {.experts_per_token = 3,
             .scaling_factor = 16.0f,
             .score = RouterScore::kSoftmax,
             .weighting = RouterWeighting::kPlain,
             .groups = 4,
             .kept_groups = 2,
             .group_score = GroupScore::kBest};
  // Group 1 has the best expert, group 3 the second best; 2 and 2.5 in group 2 are left out.
  const std::vector<float> logits = {0, 1, 4, -1, 2, 2.5f, 3, -2};
  const Routing routing = routed(weights({}), logits);
  EXPECT_EQ(routing.experts, (std::vector<std::int32_t>{2, 6, 3}));
  EXPECT_NEAR(routing.weights[2], probability(logits, 3) * 16.0f, 1e-6f);
}

TEST_F(RouterTest, EqualGroupsGoToTheLowerNumber) {
  config_.groups = 4;
  config_.kept_groups = 2;
  EXPECT_EQ(routed(weights({}), std::vector<float>(kExperts, 0.5f)).experts,
            (std::vector<std::int32_t>{0, 1, 2}));
}

// V3: groups by the sum of their two best biased scores, all of which may be negative; a group that
// is left out must not come back as zeros.
TEST_F(RouterTest, NegativeBiasedScoresStayInTheirGroups) {
  config_ = {.experts_per_token = 3,
             .scaling_factor = 2.5f,
             .score = RouterScore::kSigmoid,
             .groups = 2,
             .kept_groups = 1,
             .group_score = GroupScore::kSumOfTwo};
  const std::vector<float> logits = {2, 1, 0, -1, 3, -4, -4, -4};
  const Routing routing = routed(weights(std::vector<float>(kExperts, -1.0f)), logits);
  // sigmoid(2) + sigmoid(1) is more than sigmoid(3) + sigmoid(-4).
  EXPECT_EQ(routing.experts, (std::vector<std::int32_t>{0, 1, 2}));
  const auto sigmoid = [](float x) { return 1.0f / (1.0f + std::exp(-x)); };
  const float sum = sigmoid(2) + sigmoid(1) + sigmoid(0);
  EXPECT_NEAR(routing.weights[1], sigmoid(1) / sum * 2.5f, 1e-6f);
}

TEST_F(RouterTest, TheBestExpertAloneDecidesOverGroupsThatCountOne) {
  config_ = {.experts_per_token = 3,
             .score = RouterScore::kSigmoid,
             .groups = 2,
             .kept_groups = 1,
             .group_score = GroupScore::kBest};
  EXPECT_EQ(routed(weights({}), {2, 1, 0, -1, 3, -4, -4, -4}).experts,
            (std::vector<std::int32_t>{4, 5, 6}));
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
