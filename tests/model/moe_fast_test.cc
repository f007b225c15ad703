// Mode `fast`: routed experts take int8, the shared expert takes what it takes in `reference`.
#include <gtest/gtest.h>
#include <vector>

#include "kernels/int8_matmul.h"
#include "tests/model/expert_inputs.h"

namespace locket::model {
namespace {

constexpr std::size_t kHidden = 160;
constexpr std::size_t kExpertSize = 96;
constexpr std::size_t kExperts = 5;
constexpr float kLimit = 10.0f;

struct FastMoe {
  MoeWeights weights;
  std::unique_ptr<ExpertSource> experts;
};

FastMoe random_moe(kernels::WeightFormat routed) {
  kernels::RandomValues random(3);
  std::vector<ExpertWeights> experts;
  for (std::size_t i = 0; i < kExperts; ++i) {
    experts.push_back(random_expert(routed, kHidden, kExpertSize, random));
  }
  return {.weights = {.router = {.gate = random_weights(1, kExperts, kHidden),
                                 .bias = random_floats(2, kExperts)},
                      .shared =
                          random_expert(kernels::WeightFormat::kFp8, kHidden, kExpertSize, random)},
          .experts = one_layer(std::move(experts))};
}

MoeConfig config() {
  return {.router = {.experts_per_token = 3, .scaling_factor = 1.5f}, .swiglu_limit = kLimit};
}

std::vector<float> int8_product(ForwardContext& context, const kernels::WeightMatrix& w,
                                std::span<const float> x) {
  kernels::Int8Matrix codes(1, x.size());
  kernels::quantize_int8(x, codes.row(0));
  std::vector<float> out(w.rows);
  kernels::int8_matmul(w, codes.rows(), out.data(), w.rows, context.workers);
  kernels::round_values(out, context.numerics.rounding());
  return out;
}

// What a routed expert gives for one token.
std::vector<float> int8_expert(ForwardContext& context, const ExpertWeights& weights,
                               std::span<const float> x, float weight) {
  std::vector<float> gate = int8_product(context, weights.gate, x);
  const std::vector<float> up = int8_product(context, weights.up, x);
  kernels::swiglu(gate, up, kLimit, weight, context.numerics.rounding(), gate);
  return int8_product(context, weights.down, gate);
}

std::vector<float> expected_sum(ForwardContext& context, const FastMoe& moe,
                                const tensor::FloatMatrix& u, std::size_t token) {
  const Routing routing = route(context, config().router, moe.weights.router, u);
  std::vector<float> sum(kHidden);
  const auto add = [&](std::span<const float> values) {
    for (std::size_t d = 0; d < kHidden; ++d) sum[d] += values[d];
  };
  for (std::int32_t id = 0; id < static_cast<std::int32_t>(kExperts); ++id) {
    for (std::size_t i = token * 3; i < token * 3 + 3; ++i) {
      if (routing.experts[i] != id) continue;
      add(int8_expert(context, expert_of(*moe.experts, id), u.row(token), routing.weights[i]));
    }
  }
  add(expert_output(context, moe.weights.shared, kLimit, u.row(token), 1.0f).row(0));
  kernels::round_values(sum, context.numerics.rounding());
  return sum;
}

TEST(MoeFastTest, RoutedExpertsTakeInt8AndTheSharedOneTakesE4m3) {
  const FastMoe moe = random_moe(kernels::WeightFormat::kFp4);
  for (const std::size_t threads : {1, 2, 3}) {
    TestContext test(NumericsMode::kFast, threads);
    for (const std::size_t tokens : {1, 2, 40}) {
      tensor::FloatMatrix u = random_matrix(5, tokens, kHidden);
      kernels::round_values(u.values(), kernels::Rounding::kBf16);
      const auto sums = moe_forward(test.context, config(), moe.weights, *moe.experts, u, 0);
      ASSERT_TRUE(sums) << sums.error().message;
      for (std::size_t token = 0; token < tokens; ++token) {
        EXPECT_TRUE(
            kernels::same_bits(sums->row(token), expected_sum(test.context, moe, u, token)));
      }
    }
  }
}

TEST(MoeFastTest, RefusesRoutedExpertsThatAreNotFp4) {
  const FastMoe moe = random_moe(kernels::WeightFormat::kFp8);
  TestContext test(NumericsMode::kFast);
  const auto sums = moe_forward(test.context, config(), moe.weights, *moe.experts,
                                random_matrix(5, 2, kHidden), 0);
  ASSERT_FALSE(sums);
  EXPECT_EQ(sums.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(sums.error().message.find("mode fast"), std::string::npos);
}

}  // namespace
}  // namespace locket::model
