#include "model/linear.h"

#include <algorithm>
#include <gtest/gtest.h>

#include "numerics/group_scaled.h"
#include "tests/model/mechanism_inputs.h"

namespace locket::model {
namespace {

TEST(LinearTest, OnlyReferenceQuantizesActivations) {
  const tensor::FloatMatrix x = random_matrix(1, 3, 64);
  for (const NumericsMode mode : {NumericsMode::kWide, NumericsMode::kPlain}) {
    TestContext test(mode);
    EXPECT_TRUE(std::ranges::equal(quantize_activations(test.context, x).values(), x.values()));
  }
  TestContext test(NumericsMode::kReference);
  tensor::FloatMatrix expected = x;
  numerics::fake_quantize_fp8(expected.values());
  const tensor::FloatMatrix actual = quantize_activations(test.context, x);
  EXPECT_TRUE(std::ranges::equal(actual.values(), expected.values()));
  EXPECT_FALSE(std::ranges::equal(actual.values(), x.values()));
}

TEST(LinearTest, RoundsOnlyWhereAsked) {
  TestContext test(NumericsMode::kReference);
  const kernels::WeightMatrix w = random_weights(1, 20, 32);
  tensor::FloatMatrix x = random_matrix(2, 4, 32);
  kernels::round_values(x.values(), kernels::Rounding::kBf16);
  tensor::FloatMatrix exact(4, 20);
  linear(test.context, w, x, exact);
  const tensor::FloatMatrix rounded = rounded_linear(test.context, w, x);
  bool differs = false;
  for (std::size_t i = 0; i < exact.values().size(); ++i) {
    EXPECT_EQ(rounded.values()[i], numerics::round_to_bf16(exact.values()[i]));
    differs = differs || rounded.values()[i] != exact.values()[i];
  }
  EXPECT_TRUE(differs);
}

TEST(LinearTest, CountsItsWork) {
  TestContext test(NumericsMode::kWide);
  rounded_linear(test.context, random_weights(1, 20, 33), random_matrix(2, 4, 33));
  EXPECT_EQ(test.context.work.matmul, 4U * 20 * 33);
  EXPECT_EQ(test.context.work.total(), 4U * 20 * 33);
}

TEST(LinearDeathTest, ShapesMustMatch) {
  TestContext test(NumericsMode::kWide);
  const kernels::WeightMatrix w = random_weights(1, 20, 32);
  tensor::FloatMatrix out(4, 19);
  EXPECT_DEATH(rounded_linear(test.context, w, random_matrix(2, 4, 31)), "check failed");
  EXPECT_DEATH(linear(test.context, w, random_matrix(2, 4, 32), out), "check failed");
}

}  // namespace
}  // namespace locket::model
