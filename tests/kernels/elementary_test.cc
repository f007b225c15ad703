#include "kernels/elementary.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <gtest/gtest.h>
#include <limits>

namespace locket::kernels {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Distance of `value` from the exact result, in units of the last place of float32 at that result.
double error_in_units(float value, long double exact) {
  const float nearest = static_cast<float>(exact);
  const long double step = std::fabs(static_cast<long double>(std::nextafter(nearest, kInfinity)) -
                                     static_cast<long double>(nearest));
  return static_cast<double>(std::fabs(static_cast<long double>(value) - exact) / step);
}

// Calls check(x) for about `count` floats of either sign spread over all exponents up to `limit`.
template <class Check>
void for_floats_up_to(float limit, std::uint32_t step, const Check& check) {
  const std::uint32_t last = std::bit_cast<std::uint32_t>(limit);
  for (std::uint32_t bits = 0; bits <= last; bits += step) {
    check(std::bit_cast<float>(bits));
    check(-std::bit_cast<float>(bits));
  }
}

TEST(ElementaryTest, ExpIsTheNearestFloatOrItsNeighbour) {
  double worst = 0.0;
  for_floats_up_to(104.0f, 997, [&](float x) {
    if (x > 88.7f) return;
    const double error = error_in_units(exp_value(x), std::exp(static_cast<long double>(x)));
    worst = std::max(worst, error);
  });
  EXPECT_LE(worst, 0.5001);
}

TEST(ElementaryTest, ExpInDoubleHasARelativeErrorBelow1e15) {
  long double worst = 0.0L;
  for (double x = -700.0; x <= 700.0; x += 0.01237) {
    const long double exact = std::exp(static_cast<long double>(x));
    worst = std::max(worst, std::fabs((static_cast<long double>(exp_double(x)) - exact) / exact));
  }
  EXPECT_LE(worst, 1e-15L);
}

TEST(ElementaryTest, ExpKeepsItsLimits) {
  EXPECT_EQ(exp_value(0.0f), 1.0f);
  EXPECT_EQ(exp_value(-0.0f), 1.0f);
  EXPECT_EQ(exp_value(-kInfinity), 0.0f);
  EXPECT_EQ(exp_value(-104.0f), 0.0f);
  EXPECT_EQ(exp_value(-1e30f), 0.0f);
  EXPECT_EQ(exp_value(89.5f), kInfinity);
  EXPECT_EQ(exp_value(kInfinity), kInfinity);
  EXPECT_TRUE(std::isnan(exp_value(std::numeric_limits<float>::quiet_NaN())));
  EXPECT_GT(exp_value(-103.0f), 0.0f);  // a denormal
}

// Three roundings: of exp and of the sum, up to one unit of the result each, and of the quotient.
TEST(ElementaryTest, SigmoidIsWithinTwoAndAHalfUnits) {
  double worst = 0.0;
  for_floats_up_to(80.0f, 1999, [&](float x) {
    const long double exact = 1.0L / (1.0L + std::exp(-static_cast<long double>(x)));
    worst = std::max(worst, error_in_units(sigmoid(x), exact));
  });
  EXPECT_LE(worst, 2.5);
}

TEST(ElementaryTest, SiluIsWithinTwoAndAHalfUnits) {
  double worst = 0.0;
  for_floats_up_to(80.0f, 1999, [&](float x) {
    if (std::fabs(x) < 0x1p-120f) return;
    const long double wide = static_cast<long double>(x);
    worst = std::max(worst, error_in_units(silu(x), wide / (1.0L + std::exp(-wide))));
  });
  EXPECT_LE(worst, 2.5);
  EXPECT_EQ(silu(0.0f), 0.0f);
}

TEST(ElementaryTest, SoftplusIsTheNearestFloatOrItsNeighbour) {
  double worst = 0.0;
  for_floats_up_to(103.0f, 1999, [&](float x) {
    if (x > 20.0f) return;
    const long double exact = std::log1p(std::exp(static_cast<long double>(x)));
    worst = std::max(worst, error_in_units(softplus(x), exact));
  });
  EXPECT_LE(worst, 0.5001);
}

TEST(ElementaryTest, SoftplusIsTheIdentityAbove20) {
  EXPECT_EQ(softplus(20.5f), 20.5f);
  EXPECT_EQ(softplus(1e30f), 1e30f);
  EXPECT_EQ(softplus(-200.0f), 0.0f);
  EXPECT_TRUE(std::isnan(softplus(std::numeric_limits<float>::quiet_NaN())));
}

}  // namespace
}  // namespace locket::kernels
