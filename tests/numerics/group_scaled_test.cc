#include "numerics/group_scaled.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <vector>

#include "numerics/e8m0.h"
#include "numerics/fp4_e2m1.h"
#include "numerics/fp8_e4m3.h"

namespace locket::numerics {
namespace {

enum class Quantizer { kFp8, kFp4Index, kFp4Main };

constexpr Quantizer kQuantizers[] = {Quantizer::kFp8, Quantizer::kFp4Index, Quantizer::kFp4Main};

std::size_t group_size(Quantizer quantizer) {
  return quantizer == Quantizer::kFp4Main ? kFp4MainGroupSize : kFp8GroupSize;
}

struct Quantized {
  std::vector<std::uint8_t> codes;
  std::vector<std::uint8_t> scales;
  std::vector<float> values;  // dequantized
};

Quantized quantize(Quantizer quantizer, const std::vector<float>& x) {
  Quantized result;
  result.codes.resize(quantizer == Quantizer::kFp8 ? x.size() : x.size() / 2);
  result.scales.resize(x.size() / group_size(quantizer));
  result.values.resize(x.size());
  if (quantizer == Quantizer::kFp8) {
    quantize_fp8(x, result.codes, result.scales);
    dequantize_fp8(result.codes, result.scales, result.values);
  } else if (quantizer == Quantizer::kFp4Index) {
    quantize_fp4_index(x, result.codes, result.scales);
    dequantize_fp4_index(result.codes, result.scales, result.values);
  } else {
    quantize_fp4_main(x, result.codes, result.scales);
    dequantize_fp4_main(result.codes, result.scales, result.values);
  }
  return result;
}

// 2^ceil(log2(ratio)) by search.
float power_of_two_above(float ratio) {
  for (std::uint32_t code = 0; code < 255; ++code) {
    const float power = to_float(E8m0{static_cast<std::uint8_t>(code)});
    if (power >= ratio) return power;
  }
  return std::numeric_limits<float>::quiet_NaN();
}

float defined_scale(Quantizer quantizer, std::span<const float> group) {
  float largest = 0.0f;
  for (const float value : group) largest = std::max(largest, std::fabs(value));
  switch (quantizer) {
    case Quantizer::kFp8:
      return power_of_two_above(std::max(largest, 1e-4f) * (1.0f / 448.0f));
    case Quantizer::kFp4Index:
      return power_of_two_above(std::max(largest, 6.0f * 0x1p-126f) * (1.0f / 6.0f));
    case Quantizer::kFp4Main:
      return to_float(to_fp8_e4m3(std::max(largest, 6.0f * 0x1p-9f) / 6.0f));
  }
  return 0.0f;
}

float defined_value(Quantizer quantizer, float value, float scale) {
  const float limit = quantizer == Quantizer::kFp8 ? kFp8E4m3Max : kFp4E2m1Max;
  const float ratio = std::clamp(value / scale, -limit, limit);
  if (quantizer == Quantizer::kFp8) return to_float(to_fp8_e4m3(ratio)) * scale;
  return to_float(to_fp4_e2m1(ratio)) * scale;
}

void expect_defined(Quantizer quantizer, const std::vector<float>& x) {
  const Quantized result = quantize(quantizer, x);
  const std::size_t size = group_size(quantizer);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const float scale =
        defined_scale(quantizer, std::span<const float>(x).subspan(i / size * size, size));
    const float expected = defined_value(quantizer, x[i], scale);
    ASSERT_EQ(std::bit_cast<std::uint32_t>(result.values[i]),
              std::bit_cast<std::uint32_t>(expected))
        << "quantizer " << static_cast<int>(quantizer) << ", " << x[i] << " with scale " << scale;
  }
}

// One group with the given largest element, the rest smaller.
std::vector<float> group_of(float largest, std::mt19937& engine) {
  std::uniform_real_distribution<float> part(-1.0f, 1.0f);
  std::vector<float> x(32);
  for (float& value : x) value = largest * part(engine);
  x[5] = -largest;
  x[21] = largest;
  return x;
}

TEST(GroupScaledTest, FollowsTheDefinitionForMaximaAroundEveryPowerOfTwo) {
  std::mt19937 engine(1);
  for (const Quantizer quantizer : kQuantizers) {
    const int highest = quantizer == Quantizer::kFp4Main ? 11 : 100;
    for (int exponent = -148; exponent <= highest; ++exponent) {
      for (const float factor : {1.0f, 1.25f, 1.5f, 1.75f}) {
        const float largest = std::ldexp(factor, exponent);
        expect_defined(quantizer, group_of(largest, engine));
        expect_defined(quantizer, group_of(std::nextafter(largest, HUGE_VALF), engine));
        expect_defined(quantizer, group_of(std::nextafter(largest, 0.0f), engine));
      }
    }
  }
}

TEST(GroupScaledTest, HasTheFloorsOfTheModel) {
  const std::vector<float> zeros(32, 0.0f);
  EXPECT_EQ(to_float(E8m0{quantize(Quantizer::kFp8, zeros).scales[0]}), 0x1p-22f);
  EXPECT_EQ(to_float(E8m0{quantize(Quantizer::kFp4Index, zeros).scales[0]}), 0x1p-126f);
  EXPECT_EQ(to_float(Fp8E4m3{quantize(Quantizer::kFp4Main, zeros).scales[0]}), 0x1p-9f);
}

// Around the maxima where the scale steps up: 448 and 6 fit the scale 1, the next value does not.
TEST(GroupScaledTest, StepsTheScaleJustAboveTheLargestCode) {
  const auto scale_of = [](Quantizer quantizer, float largest) {
    std::vector<float> x(32, 0.0f);
    x[3] = -largest;
    return to_float(E8m0{quantize(quantizer, x).scales[0]});
  };
  EXPECT_EQ(scale_of(Quantizer::kFp8, 448.0f), 1.0f);
  EXPECT_EQ(scale_of(Quantizer::kFp8, 450.0f), 2.0f);
  EXPECT_EQ(scale_of(Quantizer::kFp8, 224.0f), 0.5f);
  EXPECT_EQ(scale_of(Quantizer::kFp4Index, 6.0f), 1.0f);
  EXPECT_EQ(scale_of(Quantizer::kFp4Index, 6.03125f), 2.0f);
  EXPECT_EQ(scale_of(Quantizer::kFp4Index, 3.0f), 0.5f);
}

TEST(GroupScaledTest, RoundsTheTiesOfE2m1ToEven) {
  const std::vector<float> ties = {0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5.0f, 6.0f};
  const std::vector<float> expected = {0.0f, 1.0f, 1.0f, 2.0f, 2.0f, 4.0f, 4.0f, 6.0f};
  std::vector<float> x(32, 0.0f);
  std::copy(ties.begin(), ties.end(), x.begin());
  const Quantized result = quantize(Quantizer::kFp4Index, x);
  for (std::size_t i = 0; i < ties.size(); ++i) EXPECT_EQ(result.values[i], expected[i]) << i;
}

TEST(GroupScaledTest, KeepsTheSignOfWhatRoundsToZero) {
  for (const Quantizer quantizer : kQuantizers) {
    std::vector<float> x(32, -0.0f);
    x[0] = 6.0f;
    x[1] = -1e-30f;
    x[16] = 6.0f;
    const Quantized result = quantize(quantizer, x);
    for (const std::size_t i : {1, 2, 31}) {
      EXPECT_EQ(std::bit_cast<std::uint32_t>(result.values[i]), 0x80000000u);
    }
  }
}

TEST(GroupScaledTest, ScalesEveryGroupOnItsOwn) {
  std::mt19937 engine(2);
  for (const Quantizer quantizer : kQuantizers) {
    std::vector<float> x;
    std::vector<float> alone;
    for (const float largest : {1.0f, 300.0f, 0.001f}) {
      const std::vector<float> group = group_of(largest, engine);
      const Quantized result = quantize(quantizer, group);
      x.insert(x.end(), group.begin(), group.end());
      alone.insert(alone.end(), result.values.begin(), result.values.end());
    }
    EXPECT_EQ(quantize(quantizer, x).values, alone);
  }
}

TEST(GroupScaledTest, FakeQuantizersGiveWhatQuantizeAndDequantizeGive) {
  std::mt19937 engine(3);
  for (int exponent = -140; exponent <= 100; exponent += 3) {
    const std::vector<float> x = group_of(std::ldexp(1.3f, exponent), engine);
    std::vector<float> fp8 = x;
    fake_quantize_fp8(fp8);
    EXPECT_EQ(fp8, quantize(Quantizer::kFp8, x).values);
    std::vector<float> fp4 = x;
    fake_quantize_fp4_index(fp4);
    EXPECT_EQ(fp4, quantize(Quantizer::kFp4Index, x).values);
  }
}

TEST(GroupScaledTest, QuantizingTwiceChangesNothing) {
  std::mt19937 engine(4);
  for (const Quantizer quantizer : {Quantizer::kFp8, Quantizer::kFp4Index}) {
    for (int exponent = -60; exponent <= 60; ++exponent) {
      const Quantized once = quantize(quantizer, group_of(std::ldexp(1.1f, exponent), engine));
      EXPECT_EQ(quantize(quantizer, once.values).values, once.values) << exponent;
    }
  }
}

}  // namespace
}  // namespace locket::numerics
