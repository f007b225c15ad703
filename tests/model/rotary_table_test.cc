#include "model/rotary_table.h"

#include <cmath>
#include <gtest/gtest.h>

#include "tests/model/mechanism_inputs.h"

namespace locket::model {
namespace {

RotaryConfig released_yarn() {
  return {.dim = 64,
          .base = 160'000,
          .factor = 16,
          .beta_fast = 32,
          .beta_slow = 1,
          .original_context = 65'536};
}

TEST(RotaryTableTest, PlainFrequenciesArePowersOfTheBase) {
  const std::vector<float> frequencies = rotary_frequencies({.dim = 64, .base = 10'000});
  ASSERT_EQ(frequencies.size(), 32U);
  EXPECT_EQ(frequencies[0], 1.0f);
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    const double exact = std::pow(10'000.0, -2.0 * static_cast<double>(i) / 64.0);
    EXPECT_NEAR(frequencies[i], exact, exact * 3e-7) << i;
  }
}

// Values of the released sizes, in double, from the model's description.
TEST(RotaryTableTest, YarnHasTheReleasedFrequencies) {
  const std::vector<float> frequencies = rotary_frequencies(released_yarn());
  const std::pair<std::size_t, double> expected[] = {{15, 3.63553858e-3},
                                                     {16, 0.002265625},
                                                     {20, 2.96977778e-4},
                                                     {25, 5.37231267e-6},
                                                     {31, 5.68052904e-7}};
  for (const auto& [pair, frequency] : expected) {
    EXPECT_NEAR(frequencies[pair], frequency, frequency * 5e-7) << pair;
  }
}

TEST(RotaryTableTest, YarnLeavesFastPairsAndDividesSlowOnes) {
  RotaryConfig config = released_yarn();
  const std::vector<float> scaled = rotary_frequencies(config);
  config.original_context = 0;
  const std::vector<float> plain = rotary_frequencies(config);
  for (std::size_t i = 0; i < 32; ++i) {
    if (i <= 15) {
      EXPECT_EQ(scaled[i], plain[i]) << i;
    } else if (i >= 25) {
      EXPECT_EQ(scaled[i], plain[i] / 16.0f) << i;
    } else {
      EXPECT_LT(scaled[i], plain[i]) << i;
      EXPECT_GT(scaled[i], plain[i] / 16.0f) << i;
    }
  }
}

// low is below 0, high beyond the last dim: both are cut off (at dim - 1, not at the last pair).
TEST(RotaryTableTest, YarnBoundsStayInsideTheDims) {
  const RotaryConfig config = {.dim = 8,
                               .base = 10,
                               .factor = 2,
                               .beta_fast = 1'000,
                               .beta_slow = 1e-6,
                               .original_context = 100};
  const std::vector<float> frequencies = rotary_frequencies(config);
  for (std::size_t i = 0; i < 4; ++i) {
    const double ramp = static_cast<double>(i) / 7.0;
    const double plain = std::pow(10.0, -static_cast<double>(i) / 4.0);
    EXPECT_NEAR(frequencies[i], plain * (1.0 - ramp) + plain / 2.0 * ramp, 1e-6) << i;
  }
}

TEST(RotaryTableTest, PositionsMayHaveASpacing) {
  const std::vector<float> frequencies = rotary_frequencies(released_yarn());
  const RotaryTable every = rotary_table(frequencies, positions_from(100, 1, 50));
  const RotaryTable second = rotary_table(frequencies, positions_from(100, 2, 25));
  ASSERT_EQ(second.cos.rows(), 25U);
  ASSERT_EQ(second.cos.columns(), 32U);
  for (std::size_t row = 0; row < 25; ++row) {
    for (std::size_t i = 0; i < 32; ++i) {
      EXPECT_EQ(second.cos.row(row)[i], every.cos.row(2 * row)[i]);
      EXPECT_EQ(second.sin.row(row)[i], every.sin.row(2 * row)[i]);
    }
  }
  EXPECT_EQ(rotary_table(frequencies, positions_from(0, 1, 1)).cos.row(0)[0], 1.0f);
  EXPECT_EQ(rotary_table(frequencies, positions_from(0, 1, 1)).sin.row(0)[0], 0.0f);
  EXPECT_EQ(rotary_table(frequencies, positions_from(5, 1, 0)).cos.rows(), 0U);
}

// The angle is a float32 product, whose steps are 0.0625 near 2^20: forming it in double would give
// other values.
TEST(RotaryTableTest, AnglesAreFloat32Products) {
  const std::vector<float> frequencies = {0.7f};
  constexpr std::int64_t kPosition = 1'048'573;
  const RotaryTable table = rotary_table(frequencies, positions_from(kPosition, 1, 1));
  const float angle = 1'048'573.0f * 0.7f;
  EXPECT_EQ(table.cos.row(0)[0], static_cast<float>(std::cos(static_cast<double>(angle))));
  EXPECT_EQ(table.sin.row(0)[0], static_cast<float>(std::sin(static_cast<double>(angle))));
  const double exact = static_cast<double>(kPosition) * static_cast<double>(0.7f);
  EXPECT_NE(table.cos.row(0)[0], static_cast<float>(std::cos(exact)));
}

}  // namespace
}  // namespace locket::model
