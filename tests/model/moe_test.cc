#include "model/moe.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <utility>
#include <vector>

#include "kernels/elementary.h"
#include "tests/model/expert_inputs.h"

namespace locket::model {
namespace {

constexpr std::size_t kHidden = 32;
constexpr std::size_t kExperts = 6;

struct TestMoe {
  MoeWeights weights;
  std::unique_ptr<ExpertSource> experts;

  tensor::FloatMatrix forward(ForwardContext& context, const MoeConfig& config,
                              const tensor::FloatMatrix& u, std::int64_t first_position = 0) {
    return moe_forward(context, config, weights, *experts, u, first_position).value();
  }
};

TestMoe random_moe(std::uint32_t layers = 1) {
  std::vector<std::vector<ExpertWeights>> experts(layers);
  for (std::uint32_t expert = 0; expert < layers * kExperts; ++expert) {
    experts[expert / kExperts].push_back(random_expert(100 + 10 * expert, kHidden, 64));
  }
  return {.weights = {.router = {.gate = random_weights(1, kExperts, kHidden),
                                 .bias = random_floats(2, kExperts)},
                      .shared = random_expert(3, kHidden, 64)},
          .experts = resident_experts(std::move(experts))};
}

// An expert that hands its input to gate and up and its gated value to the output.
ExpertWeights open_expert(float down) {
  return {.gate = diagonal_weights(kHidden, 1.0f),
          .up = diagonal_weights(kHidden, 1.0f),
          .down = diagonal_weights(kHidden, down)};
}

// One routed expert and the shared one.
TestMoe open_moe(float routed_down, float shared_down) {
  std::vector<ExpertWeights> experts;
  experts.push_back(open_expert(routed_down));
  return {.weights = {.router = {.gate = random_weights(1, 1, kHidden), .bias = {0.0f}},
                      .shared = open_expert(shared_down)},
          .experts = one_layer(std::move(experts))};
}

class MoeTest : public ::testing::TestWithParam<NumericsMode> {
 protected:
  MoeConfig config_ = {.router = {.experts_per_token = 4, .scaling_factor = 1.5f},
                       .swiglu_limit = 10.0f};
  TestContext test_{GetParam()};
};

TEST_P(MoeTest, AddsExpertsInAscendingOrderAndTheSharedOneLast) {
  TestMoe moe = random_moe();
  const tensor::FloatMatrix u = random_matrix(5, 30, kHidden);
  const tensor::FloatMatrix sums = moe.forward(test_.context, config_, u);
  const Routing routing = route(test_.context, config_.router, moe.weights.router, u);
  const kernels::Rounding rounding = test_.context.numerics.rounding();
  int other_orders = 0;
  for (std::size_t token = 0; token < u.rows(); ++token) {
    std::map<std::int32_t, tensor::FloatMatrix> outputs;
    std::vector<float> best_first(kHidden);
    for (std::size_t i = 0; i < 4; ++i) {
      const std::int32_t expert = routing.experts[token * 4 + i];
      outputs[expert] = expert_output(test_.context, expert_of(*moe.experts, expert), 10.0f,
                                      u.row(token), routing.weights[token * 4 + i]);
      for (std::size_t d = 0; d < kHidden; ++d) best_first[d] += outputs[expert].row(0)[d];
    }
    const tensor::FloatMatrix shared =
        expert_output(test_.context, moe.weights.shared, 10.0f, u.row(token), 1.0f);
    for (std::size_t d = 0; d < kHidden; ++d) {
      float sum = 0.0f;
      for (const auto& [expert, output] : outputs) sum += output.row(0)[d];
      EXPECT_EQ(sums.row(token)[d], kernels::round_value(sum + shared.row(0)[d], rounding));
      other_orders += sum != best_first[d];
    }
  }
  if (GetParam() == NumericsMode::kWide) {
    EXPECT_GT(other_orders, 0) << "the order must show for this to test it";
  }
}

TEST_P(MoeTest, EveryLayerHasExpertsOfItsOwn) {
  TestMoe moe = random_moe(3);
  const tensor::FloatMatrix u = random_matrix(7, 4, kHidden);
  for (std::int64_t layer = 0; layer < 3; ++layer) {
    TestMoe one = random_moe();
    std::vector<ExpertWeights> experts;
    const std::uint32_t first = static_cast<std::uint32_t>(layer) * std::uint32_t{kExperts};
    for (std::uint32_t expert = first; expert < first + kExperts; ++expert) {
      experts.push_back(random_expert(100 + 10 * expert, kHidden, 64));
    }
    one.experts = one_layer(std::move(experts));
    MoeConfig of_layer = config_;
    of_layer.layer = layer;
    EXPECT_TRUE(std::ranges::equal(moe.forward(test_.context, of_layer, u).values(),
                                   one.forward(test_.context, config_, u).values()));
  }
}

TEST_P(MoeTest, TokensDoNotTouchEachOther) {
  TestMoe moe = random_moe();
  const tensor::FloatMatrix u = random_matrix(6, 17, kHidden);
  const tensor::FloatMatrix together = moe.forward(test_.context, config_, u);
  for (std::size_t token = 0; token < u.rows(); ++token) {
    const tensor::FloatMatrix alone =
        moe.forward(test_.context, config_, rows_of(u, token, token + 1));
    EXPECT_TRUE(std::ranges::equal(alone.row(0), together.row(token))) << token;
  }
}

// V2: two shared experts, stored as one of twice the size.
TEST_P(MoeTest, ASharedExpertOfAnotherSizeIsAddedLast) {
  TestMoe moe = random_moe();
  moe.weights.shared = random_expert(4, kHidden, 96);
  config_.expert_size = 64;
  const tensor::FloatMatrix u = random_matrix(5, 30, kHidden);
  const tensor::FloatMatrix sums = moe.forward(test_.context, config_, u);
  const Routing routing = route(test_.context, config_.router, moe.weights.router, u);
  for (std::size_t token = 0; token < u.rows(); ++token) {
    std::map<std::int32_t, tensor::FloatMatrix> outputs;
    for (std::size_t i = 0; i < 4; ++i) {
      const std::int32_t expert = routing.experts[token * 4 + i];
      outputs[expert] = expert_output(test_.context, expert_of(*moe.experts, expert), 10.0f,
                                      u.row(token), routing.weights[token * 4 + i]);
    }
    outputs[kExperts] = expert_output(test_.context, moe.weights.shared, 10.0f, u.row(token), 1.0f);
    for (std::size_t d = 0; d < kHidden; ++d) {
      float sum = 0.0f;
      for (const auto& [expert, output] : outputs) sum += output.row(0)[d];
      EXPECT_EQ(sums.row(token)[d], kernels::round_value(sum, test_.context.numerics.rounding()));
    }
  }
}

TEST_P(MoeTest, TheFirstLayersMayHaveNoExperts) {
  std::vector<std::vector<ExpertWeights>> layers(3);
  for (std::uint32_t expert = 0; expert < kExperts; ++expert) {
    layers[2].push_back(random_expert(100 + 10 * expert, kHidden, 64));
  }
  TestMoe moe = random_moe();
  const tensor::FloatMatrix u = random_matrix(5, 7, kHidden);
  const tensor::FloatMatrix expected = moe.forward(test_.context, config_, u);
  moe.experts = resident_experts(std::move(layers));
  config_.layer = 2;
  const tensor::FloatMatrix actual = moe.forward(test_.context, config_, u);
  EXPECT_EQ(moe.experts->expert_count(), kExperts);
  EXPECT_TRUE(std::ranges::equal(actual.values(), expected.values()));
}

INSTANTIATE_TEST_SUITE_P(Modes, MoeTest,
                         ::testing::Values(NumericsMode::kReference, NumericsMode::kWide),
                         [](const auto& test_case) {
                           return std::string(numerics_mode_name(test_case.param));
                         });

// Gate from above only, up on both sides; the same for routed and shared experts.
TEST(MoeClampTest, LimitsGateAndUp) {
  constexpr float kLimit = 2.0f;
  tensor::FloatMatrix u(1, kHidden);
  for (std::size_t d = 0; d < kHidden; ++d) u.row(0)[d] = static_cast<float>(d) * 0.5f - 8.0f;
  const auto gated = [&](float x) {
    return kernels::silu(std::min(x, kLimit)) * std::clamp(x, -kLimit, kLimit);
  };
  for (const bool routed : {true, false}) {
    SCOPED_TRACE(routed ? "routed" : "shared");
    TestContext test(NumericsMode::kWide);
    TestMoe moe = open_moe(routed ? 1.0f : 0.0f, routed ? 0.0f : 1.0f);
    const tensor::FloatMatrix out = moe.forward(
        test.context,
        {.router = {.experts_per_token = 1, .scaling_factor = 1.0f}, .swiglu_limit = kLimit}, u);
    for (std::size_t d = 0; d < kHidden; ++d) {
      EXPECT_FLOAT_EQ(out.row(0)[d], gated(u.row(0)[d])) << u.row(0)[d];
    }
    EXPECT_NE(out.row(0)[0], kernels::silu(-8.0f) * -8.0f) << "an unlimited up must differ";
    EXPECT_NE(out.row(0)[31], kernels::silu(7.5f) * 2.0f) << "an unlimited gate must differ";
  }
}

// The router's weight comes before the down projection, where the rounding sees it.
TEST(MoeClampTest, RoutedWeightsScaleTheGatedValue) {
  TestContext test(NumericsMode::kWide);
  TestMoe moe = open_moe(1.0f, 0.0f);
  const tensor::FloatMatrix u = random_matrix(2, 1, kHidden);
  const auto run = [&](float factor) {
    return moe.forward(
        test.context,
        {.router = {.experts_per_token = 1, .scaling_factor = factor}, .swiglu_limit = 10.0f}, u);
  };
  const tensor::FloatMatrix once = run(1.0f);
  const tensor::FloatMatrix fourfold = run(4.0f);
  for (std::size_t d = 0; d < kHidden; ++d) {
    EXPECT_EQ(fourfold.row(0)[d], 4.0f * once.row(0)[d]);
  }
}

struct Recorder : ForwardObserver {
  void on_floats(const Place& place, std::span<const float> values) override {
    EXPECT_EQ(place.name, "expert_weights");
    weights.assign(values.begin(), values.end());
  }
  void on_integers(const Place& place, std::span<const std::int32_t> values) override {
    EXPECT_EQ(place.name, "experts");
    EXPECT_EQ(place.layer, 5);
    EXPECT_EQ(place.first_position, 70);
    EXPECT_EQ(place.width, 4U);
    experts.assign(values.begin(), values.end());
  }

  std::vector<float> weights;
  std::vector<std::int32_t> experts;
};

TEST(MoeObserverTest, ReportsTheRouting) {
  TestContext test(NumericsMode::kWide);
  Recorder recorder;
  test.context.observer = &recorder;
  TestMoe moe = random_moe(6);
  const tensor::FloatMatrix u = random_matrix(5, 3, kHidden);
  const MoeConfig config = {.layer = 5,
                            .router = {.experts_per_token = 4, .scaling_factor = 1.5f},
                            .swiglu_limit = 10.0f};
  moe.forward(test.context, config, u, 70);
  const Routing routing = route(test.context, config.router, moe.weights.router, u);
  EXPECT_EQ(recorder.experts, routing.experts);
  EXPECT_EQ(recorder.weights, routing.weights);
}

}  // namespace
}  // namespace locket::model
