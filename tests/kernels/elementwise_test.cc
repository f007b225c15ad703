#include <array>
#include <bit>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <vector>

#include "kernels/kernel_table.h"
#include "kernels/quantize.h"
#include "kernels/rms_norm.h"
#include "kernels/swiglu.h"
#include "numerics/fp8_e4m3.h"
#include "numerics/group_scaled.h"
#include "tests/support/kernel_data.h"

namespace locket::kernels {
namespace {

constexpr std::array kSpreads = {Spread::kUsual, Spread::kTiny, Spread::kHuge, Spread::kDenormal};
constexpr std::array kRoundings = {Rounding::kNone, Rounding::kBf16};

class ElementwiseTest : public ::testing::TestWithParam<const KernelTable*> {
 protected:
  const ElementwiseKernels& fast() const { return GetParam()->elementwise; }
  static const ElementwiseKernels& reference() { return reference_kernels().elementwise; }
};

TEST_P(ElementwiseTest, NormHasTheReferenceBits) {
  for (const Spread spread : kSpreads) {
    for (const Rounding rounding : kRoundings) {
      for (std::size_t count = 1; count <= 100; ++count) {
        RandomValues random(static_cast<std::uint32_t>(count));
        const std::vector<float> x = random.values(count + 1, spread);
        const std::vector<float> weight = random.values(count + 1, Spread::kUsual);
        const auto in = std::span<const float>(x).subspan(1);
        const auto w = std::span<const float>(weight).subspan(1);
        std::vector<float> expected(count);
        std::vector<float> actual(count);
        reference().rms_norm(in, w, 1e-20f, rounding, expected);
        fast().rms_norm(in, w, 1e-20f, rounding, actual);
        ASSERT_TRUE(same_bits(actual, expected)) << count;
        std::vector<float> in_place(in.begin(), in.end());
        fast().rms_norm(in_place, w, 1e-20f, rounding, in_place);
        ASSERT_TRUE(same_bits(in_place, expected)) << count;
      }
    }
  }
}

TEST_P(ElementwiseTest, GateHasTheReferenceBits) {
  for (const Spread spread : kSpreads) {
    for (const Rounding rounding : kRoundings) {
      for (std::size_t count = 0; count <= 70; ++count) {
        RandomValues random(static_cast<std::uint32_t>(count));
        std::vector<float> gate = random.values(count, spread);
        const std::vector<float> up = random.values(count, spread);
        const GateShape shape{.limit = 1.75f, .weight = 0.37f, .rounding = rounding};
        std::vector<float> expected(count);
        reference().swiglu(gate, up, shape, expected);
        fast().swiglu(gate, up, shape, gate);
        ASSERT_TRUE(same_bits(gate, expected)) << count;
      }
    }
  }
}

TEST_P(ElementwiseTest, GateHasTheReferenceBitsForEverySizeOfExponent) {
  std::vector<float> gate;
  for (float x = -200.0f; x <= 200.0f; x += 0.0371f) gate.push_back(x);
  for (const float x : {-104.0f, -103.99999f, 89.0f, 89.00001f, -0.0f, HUGE_VALF, -HUGE_VALF,
                        std::numeric_limits<float>::quiet_NaN()}) {
    gate.push_back(x);
  }
  const std::vector<float> up(gate.size(), 1.5f);
  const GateShape shape{.limit = 1000.0f, .weight = 1.0f, .rounding = Rounding::kNone};
  std::vector<float> expected(gate.size());
  std::vector<float> actual(gate.size());
  reference().swiglu(gate, up, shape, expected);
  fast().swiglu(gate, up, shape, actual);
  EXPECT_TRUE(same_bits(actual, expected));
  reference().swiglu(up, gate, shape, expected);
  fast().swiglu(up, gate, shape, actual);
  EXPECT_TRUE(same_bits(actual, expected));
}

void expect_same_rotation(const ElementwiseKernels& kernels, Spread spread,
                          RotaryDirection direction, Rounding rounding) {
  for (std::size_t count = 0; count <= 40; ++count) {
    RandomValues random(static_cast<std::uint32_t>(count));
    std::vector<float> expected = random.values(2 * count, spread);
    std::vector<float> actual = expected;
    const std::vector<float> cos = random.values(count, Spread::kUsual);
    const std::vector<float> sin = random.values(count, Spread::kUsual);
    reference_kernels().elementwise.rotate_pairs(expected, cos, sin, direction, rounding);
    kernels.rotate_pairs(actual, cos, sin, direction, rounding);
    ASSERT_TRUE(same_bits(actual, expected)) << count;
  }
}

TEST_P(ElementwiseTest, RotationHasTheReferenceBits) {
  for (const Spread spread : kSpreads) {
    for (const Rounding rounding : kRoundings) {
      expect_same_rotation(fast(), spread, RotaryDirection::kForward, rounding);
      expect_same_rotation(fast(), spread, RotaryDirection::kInverse, rounding);
    }
  }
}

void expect_same_quantizer(const ElementwiseKernels& kernels, std::vector<float> values) {
  std::vector<float> expected = values;
  numerics::fake_quantize_fp8(expected);
  kernels.fake_quantize_fp8(values);
  ASSERT_TRUE(same_bits(values, expected));
}

TEST_P(ElementwiseTest, FakeQuantizerHasTheBitsOfNumerics) {
  for (const Spread spread : kSpreads) {
    for (std::uint32_t seed = 0; seed < 200; ++seed) {
      RandomValues random(seed);
      expect_same_quantizer(fast(), random.values(96, spread));
      expect_same_quantizer(fast(), random.bf16_values(32, spread));
    }
  }
}

// Every upper half of a float32, next to each of several maxima.
TEST_P(ElementwiseTest, FakeQuantizerHasTheBitsOfNumericsForEveryBfloat16) {
  for (const float largest : {0.0f, 448.0f, 1.0f, 3.0f, 1e-4f, 60000.0f}) {
    std::vector<float> values;
    for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
      if (values.size() % 32 == 0) values.push_back(largest);
      const float value = std::bit_cast<float>(bits << 16);
      values.push_back(
          std::isfinite(value) && std::fabs(value) <= std::max(largest, 1e-5f) ? value : largest);
    }
    values.resize(values.size() / 32 * 32);
    expect_same_quantizer(fast(), values);
  }
}

TEST_P(ElementwiseTest, FakeQuantizerRoundsTiesLikeNumerics) {
  std::vector<float> values;
  for (std::uint32_t code = 0; code < 0x7E; ++code) {
    if (values.size() % 32 == 0) values.push_back(448.0f);
    const float a = numerics::to_float(numerics::Fp8E4m3{static_cast<std::uint8_t>(code)});
    const float b = numerics::to_float(numerics::Fp8E4m3{static_cast<std::uint8_t>(code + 1)});
    const float middle = (a + b) / 2;
    for (const float value : {std::nextafter(middle, a), middle, std::nextafter(middle, b)}) {
      values.push_back(code % 2 == 0 ? value : -value);
    }
  }
  values.resize(values.size() / 32 * 32);
  expect_same_quantizer(fast(), values);
}

TEST_P(ElementwiseTest, FakeQuantizerFollowsNumericsForInfinitiesAndNan) {
  for (const float odd : {HUGE_VALF, -HUGE_VALF, std::numeric_limits<float>::quiet_NaN(),
                          std::numeric_limits<float>::max()}) {
    RandomValues random(1);
    std::vector<float> values = random.values(64, Spread::kUsual);
    values[37] = odd;
    expect_same_quantizer(fast(), values);
  }
}

INSTANTIATE_TEST_SUITE_P(Tables, ElementwiseTest, ::testing::ValuesIn(fast_tables()), table_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ElementwiseTest);

TEST(RmsNormTest, DividesByTheRootOfTheMeanSquare) {
  const std::vector<float> x = {3.0f, -4.0f, 0.0f, 0.0f};
  const std::vector<float> weight = {1.0f, 2.0f, 1.0f, 1.0f};
  std::vector<float> out(4);
  rms_norm(x, weight, 0.0f, Rounding::kNone, out);
  EXPECT_FLOAT_EQ(out[0], 1.2f);
  EXPECT_FLOAT_EQ(out[1], -3.2f);
  EXPECT_EQ(out[2], 0.0f);
  EXPECT_FLOAT_EQ(reciprocal_rms(x, 0.0f), 0.4f);
}

TEST(SwigluTest, LimitsTheGateFromAboveAndTheOtherFromBothSides) {
  const std::vector<float> gate = {20.0f, -20.0f, 1.0f};
  const std::vector<float> up = {30.0f, -30.0f, 2.0f};
  std::vector<float> out(3);
  swiglu(gate, up, 10.0f, 0.5f, Rounding::kNone, out);
  EXPECT_FLOAT_EQ(out[0], 10.0f / (1.0f + std::exp(-10.0f)) * 10.0f * 0.5f);
  EXPECT_FLOAT_EQ(out[1], -20.0f / (1.0f + std::exp(20.0f)) * -10.0f * 0.5f);
  EXPECT_FLOAT_EQ(out[2], 1.0f / (1.0f + std::exp(-1.0f)) * 2.0f * 0.5f);
}

TEST(RotatePairsTest, TurnsAndTurnsBack) {
  std::vector<float> pairs = {1.0f, 0.0f, 0.0f, 2.0f};
  const std::vector<float> cos = {0.0f, 0.0f};
  const std::vector<float> sin = {1.0f, 1.0f};
  rotate_pairs(pairs, cos, sin, RotaryDirection::kForward, Rounding::kNone);
  EXPECT_EQ(pairs, (std::vector<float>{0.0f, 1.0f, -2.0f, 0.0f}));
  rotate_pairs(pairs, cos, sin, RotaryDirection::kInverse, Rounding::kNone);
  EXPECT_EQ(pairs, (std::vector<float>{1.0f, 0.0f, 0.0f, 2.0f}));
}

TEST(QuantizeTest, UsesTheActiveTable) {
  RandomValues random(5);
  std::vector<float> values = random.values(64, Spread::kUsual);
  std::vector<float> expected = values;
  numerics::fake_quantize_fp8(expected);
  fake_quantize_fp8(values);
  EXPECT_TRUE(same_bits(values, expected));
}

}  // namespace
}  // namespace locket::kernels
