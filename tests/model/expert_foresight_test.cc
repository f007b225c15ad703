#include "model/expert_foresight.h"

#include <gtest/gtest.h>
#include <vector>

#include "tests/model/mechanism_inputs.h"

namespace locket::model {
namespace {

constexpr std::size_t kHidden = 48;
constexpr std::size_t kExperts = 9;

class ExpertForesightTest : public ::testing::Test {
 protected:
  std::vector<std::int32_t> likely(const tensor::FloatMatrix& u) {
    return likely_experts(test_.context, config_, weights_, u);
  }

  TestContext test_{NumericsMode::kReference, 2};
  RouterConfig config_ = {.experts_per_token = 3, .scaling_factor = 2.5f};
  RouterWeights weights_ = {.gate = random_weights(1, kExperts, kHidden),
                            .bias = std::vector<float>(kExperts, 0.0f)};
};

TEST_F(ExpertForesightTest, OfOneRowItNamesWhatTheRouterChooses) {
  for (std::uint32_t seed = 2; seed < 20; ++seed) {
    const tensor::FloatMatrix u = random_matrix(seed, 1, kHidden);
    EXPECT_EQ(likely(u), route(test_.context, config_, weights_, u).experts);
  }
}

TEST_F(ExpertForesightTest, OfManyRowsThoseThatMostWantComeFirstAndNoneTwice) {
  const tensor::FloatMatrix u = random_matrix(30, 40, kHidden);
  const Routing routing = route(test_.context, config_, weights_, u);
  std::vector<float> wishes(kExperts);
  for (std::size_t i = 0; i < routing.experts.size(); ++i) {
    wishes[static_cast<std::size_t>(routing.experts[i])] += routing.weights[i];
  }
  const std::vector<std::int32_t> named = likely(u);
  EXPECT_EQ(named.size(), kExperts - static_cast<std::size_t>(std::ranges::count(wishes, 0.0f)));
  for (std::size_t i = 1; i < named.size(); ++i) {
    EXPECT_GE(wishes[static_cast<std::size_t>(named[i - 1])],
              wishes[static_cast<std::size_t>(named[i])]);
  }
}

TEST_F(ExpertForesightTest, IsNoWorkOfTheModel) {
  static_cast<void>(likely(random_matrix(3, 5, kHidden)));
  EXPECT_EQ(test_.context.work, WorkCount{});
}

}  // namespace
}  // namespace locket::model
