#include "engine/portable_exp.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>

namespace locket::engine {
namespace {

TEST(PortableExpTest, KeepsTheEnds) {
  EXPECT_EQ(portable_exp(0.0), 1.0);
  EXPECT_EQ(portable_exp(-0.0), 1.0);
  EXPECT_EQ(portable_exp(-std::numeric_limits<double>::denorm_min()), 1.0);
  EXPECT_EQ(portable_exp(-746.0), 0.0);
  EXPECT_EQ(portable_exp(-std::numeric_limits<double>::max()), 0.0);
  EXPECT_EQ(portable_exp(-std::numeric_limits<double>::infinity()), 0.0);
  EXPECT_EQ(portable_exp(-745.0), std::numeric_limits<double>::denorm_min());
}

TEST(PortableExpTest, IsWithinTwoUnitsOfTheTrueValue) {
  double largest = 0.0;
  for (int step = 0; step <= 700000; ++step) {
    const double x = -0.001 * step - 0.0001234;
    const long double truth = std::exp(static_cast<long double>(x));
    const auto error =
        static_cast<double>(std::fabs((static_cast<long double>(portable_exp(x)) - truth) / truth));
    largest = std::max(largest, error);
  }
  EXPECT_LT(largest, 2 * std::numeric_limits<double>::epsilon());
}

TEST(PortableExpTest, NeverRisesAsTheArgumentFalls) {
  double before = 1.0;
  for (int step = 1; step <= 760000; ++step) {
    const double value = portable_exp(-0.001 * step);
    ASSERT_LE(value, before) << "step " << step;
    before = value;
  }
}

// Pinned bits: another machine or compiler must not move them.
TEST(PortableExpTest, GivesTheSameBitsEverywhere) {
  EXPECT_EQ(portable_exp(-0.1), 0x1.cf46d99d52b3ap-1);
  EXPECT_EQ(portable_exp(-1.0), 0x1.78b56362cef38p-2);
  EXPECT_EQ(portable_exp(-3.7), 0x1.9511fc6871044p-6);
  EXPECT_EQ(portable_exp(-50.25), 0x1.6b30390494d8ep-73);
  EXPECT_EQ(portable_exp(-720.5), 0x0.00005cf08fffp-1022);
}

}  // namespace
}  // namespace locket::engine
