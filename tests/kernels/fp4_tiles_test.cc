// Products of FP4 weights with the activations that the model has, E4M3 with a scale per 32: nearly
// all their sums are exact, which the kernels use.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <gtest/gtest.h>
#include <random>
#include <vector>

#include "kernels/kernel_table.h"
#include "kernels/matmul.h"
#include "kernels/quantize.h"
#include "kernels/sum_order.h"
#include "tests/support/kernel_data.h"

namespace locket::kernels {
namespace {

constexpr float kUntouched = -12345.0f;

// What the values of a group of 32 are like.
enum class Kind {
  kUsual,  // normally distributed
  kWide,   // the largest and the smallest code beside each other
  kZero,   // all zero, or one value
  kHugeScale,
  kTinyScale,
  kCount
};

std::vector<float> group_of(Kind kind, RandomValues& random) {
  std::vector<float> x(32);
  for (float& value : x) {
    const float sum = static_cast<float>(random.below(2000) + random.below(2000)) - 2000.0f;
    value = sum / 700.0f;
  }
  if (kind == Kind::kWide) {
    for (float& value : x) {
      const bool is_small = random.below(4) == 0;
      value = is_small ? static_cast<float>(1 + random.below(15)) * 0x1p-9f : 448.0f;
    }
  }
  if (kind == Kind::kZero) {
    std::fill(x.begin(), x.end(), random.below(2) == 0 ? 0.0f : -0.0f);
    if (random.below(2) == 0) x[random.below(32)] = -3.0f;
  }
  for (float& value : x) {
    if (kind == Kind::kHugeScale) value *= 0x1p100f;
    if (kind == Kind::kTinyScale) value *= 0x1p-100f;
  }
  return x;
}

// [tokens, columns]; one group in `rarity` is not of the usual kind.
std::vector<float> e4m3_rows(std::size_t tokens, std::size_t columns, std::uint32_t rarity,
                             RandomValues& random) {
  std::vector<float> rows;
  for (std::size_t i = 0; i < tokens * columns / 32; ++i) {
    const Kind kind =
        random.below(rarity) != 0
            ? Kind::kUsual
            : static_cast<Kind>(random.below(static_cast<std::uint32_t>(Kind::kCount)));
    const std::vector<float> group = group_of(kind, random);
    rows.insert(rows.end(), group.begin(), group.end());
  }
  fake_quantize_fp8(rows);
  return rows;
}

// Every second row has large weights of one sign, so that its sums grow long; 1/2 now and then.
std::byte codes_of_large_weights(RandomValues& random) {
  const auto code = [&] { return random.below(6) == 0 ? 1u : 5u + random.below(3); };
  return static_cast<std::byte>(code() | code() << 4);
}

WeightMatrix weights_of(std::size_t rows, std::size_t columns, Spread spread,
                        RandomValues& random) {
  RandomMatrix matrix = random_matrix(WeightFormat::kFp4, rows, columns, spread, random);
  for (std::size_t i = 0; i < matrix.values.size(); ++i) {
    if (i / (columns / 2) % 2 == 1) matrix.values[i] = codes_of_large_weights(random);
  }
  return matrix.packed();
}

struct Shape {
  std::size_t rows;
  std::size_t columns;
  std::size_t tokens;
};

class Fp4TilesTest : public ::testing::TestWithParam<const KernelTable*> {
 protected:
  void expect_same(const Shape& shape, std::uint32_t rarity, Spread weights) {
    RandomValues random(static_cast<std::uint32_t>(shape.rows * 1000 + shape.tokens + rarity));
    const WeightMatrix w = weights_of(shape.rows, shape.columns, weights, random);
    const std::vector<float> x = e4m3_rows(shape.tokens, shape.columns, rarity, random);
    const ActivationRows rows{.data = x.data(),
                              .stride = shape.columns,
                              .tokens = shape.tokens,
                              .values = ActivationValues::kBf16};
    std::vector<float> expected(shape.tokens * shape.rows, kUntouched);
    std::vector<float> actual(expected);
    reference_kernels().matmul_groups(w, rows, expected.data(), shape.rows, 0, w.row_groups());
    GetParam()->matmul_groups(w, rows, actual.data(), shape.rows, 0, w.row_groups());
    EXPECT_TRUE(same_bits(actual, expected)) << shape.rows << " x " << shape.columns << ", "
                                             << shape.tokens << " tokens, one group in " << rarity;
    EXPECT_TRUE(computes_denormals());
  }
};

constexpr std::uint32_t kNever = 1u << 31;

TEST_P(Fp4TilesTest, HasTheReferenceBitsForEveryCountOfTokens) {
  for (std::size_t tokens = 1; tokens <= 40; ++tokens) {
    expect_same({80, 288, tokens}, kNever, Spread::kUsual);
  }
  for (const std::size_t tokens : {63, 64, 65, 255, 257}) {
    expect_same({33, 64, tokens}, kNever, Spread::kUsual);
  }
}

TEST_P(Fp4TilesTest, HasTheReferenceBitsForEveryCountOfRows) {
  for (std::size_t rows = 1; rows <= 130; rows += rows % 16 == 1 ? 14 : 1) {
    expect_same({rows, 96, 5}, kNever, Spread::kUsual);
    expect_same({rows, 96, 18}, kNever, Spread::kUsual);
  }
}

TEST_P(Fp4TilesTest, HasTheReferenceBitsForEveryCountOfColumns) {
  for (const std::size_t columns : {32, 64, 224, 256, 288, 512, 544, 2304}) {
    for (const std::size_t tokens : {1, 7, 33}) {
      expect_same({70, columns, tokens}, kNever, Spread::kUsual);
    }
  }
}

TEST_P(Fp4TilesTest, HasTheReferenceBitsWhereSomeSumsAreRounded) {
  for (const std::uint32_t rarity : {1, 2, 10, 30, 100}) {
    for (const std::size_t tokens : {1, 2, 6, 16, 17, 50}) {
      expect_same({70, 544, tokens}, rarity, Spread::kUsual);
    }
  }
}

TEST_P(Fp4TilesTest, HasTheReferenceBitsForExtremeScales) {
  for (const Spread weights : {Spread::kTiny, Spread::kHuge, Spread::kDenormal}) {
    for (const std::uint32_t rarity : {1u, 40u, kNever}) {
      for (const std::size_t tokens : {1, 3, 20}) {
        expect_same({37, 320, tokens}, rarity, weights);
      }
    }
  }
}

// The tests above prove nothing if no sum depended on its order.
TEST(Fp4SumsTest, OfWideGroupsAndLargeWeightsDependOnTheOrder) {
  RandomValues random(1);
  std::size_t different = 0;
  for (int i = 0; i < 200; ++i) {
    std::vector<float> x = group_of(Kind::kWide, random);
    fake_quantize_fp8(x);
    const WeightMatrix w = weights_of(2, 32, Spread::kUsual, random);
    const float in_order = ordered_dot(
        32, [&](std::size_t k) { return x[k]; }, [&](std::size_t k) { return weight_at(w, 1, k); });
    float even = 0.0f;
    float odd = 0.0f;
    for (std::size_t k = 0; k < 32; ++k) (k % 8 < 4 ? even : odd) += x[k] * weight_at(w, 1, k);
    different += in_order != even + odd ? 1 : 0;
  }
  EXPECT_GT(different, 20u);
}

INSTANTIATE_TEST_SUITE_P(Tables, Fp4TilesTest, ::testing::ValuesIn(fast_tables()), table_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Fp4TilesTest);

}  // namespace
}  // namespace locket::kernels
