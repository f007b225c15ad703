#include "kernels/index_scores.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <vector>

#include "kernels/kernel_table.h"
#include "tests/support/kernel_data.h"

namespace locket::kernels {
namespace {

struct Shape {
  std::size_t heads;
  std::size_t dim;
  std::size_t count;
  Spread spread = Spread::kUsual;
};

class IndexScoresTest : public ::testing::TestWithParam<const KernelTable*> {
 protected:
  // With bfloat16 values, with float32 values, and with one float32 key in the middle.
  void expect_same(const Shape& shape) {
    RandomValues random(static_cast<std::uint32_t>(shape.count * 131 + shape.heads));
    std::vector<float> query = random.bf16_values(shape.heads * shape.dim, shape.spread);
    std::vector<float> keys = random.bf16_values(1 + shape.count * shape.dim, shape.spread);
    const std::vector<float> weights = random.bf16_values(shape.heads, Spread::kUsual);
    compare(shape, query, keys, weights);
    if (shape.count > 0) keys[1 + shape.count / 2 * shape.dim] = 1.0f + 0x1p-20f;
    compare(shape, query, keys, weights);
    query = random.values(query.size(), shape.spread);
    compare(shape, query, keys, weights);
  }

  void compare(const Shape& shape, std::span<const float> query, std::span<const float> keys,
               std::span<const float> weights) {
    for (const auto rounding : {IndexScoreRounding::kF32, IndexScoreRounding::kBf16}) {
      const IndexScoreInput input{.heads = shape.heads,
                                  .dim = shape.dim,
                                  .query = query,
                                  .weights = weights,
                                  .keys = keys.subspan(1),
                                  .rounding = rounding};
      std::vector<float> expected(shape.count, -1.0f);
      std::vector<float> actual(shape.count + 2, -2.0f);
      reference_kernels().index_scores(input, expected);
      GetParam()->index_scores(input, std::span<float>(actual).subspan(1, shape.count));
      ASSERT_TRUE(computes_denormals());
      EXPECT_TRUE(same_bits(std::span<const float>(actual).subspan(1, shape.count), expected))
          << shape.heads << " heads of " << shape.dim << ", " << shape.count << " keys, rounding "
          << static_cast<int>(rounding);
      EXPECT_EQ(actual.front(), -2.0f);
      EXPECT_EQ(actual.back(), -2.0f);
    }
  }
};

TEST_P(IndexScoresTest, HasTheReferenceBitsForEveryCountOfKeys) {
  for (std::size_t count = 0; count <= 100; ++count) expect_same({3, 32, count});
}

TEST_P(IndexScoresTest, HasTheReferenceBitsForEveryCountOfHeads) {
  for (std::size_t heads = 1; heads <= 33; ++heads) expect_same({heads, 64, 37});
}

TEST_P(IndexScoresTest, HasTheReferenceBitsForEveryDimension) {
  for (const std::size_t dim : {1, 5, 8, 31, 32, 40, 64, 96, 128, 160, 300}) {
    expect_same({4, dim, 40});
  }
}

TEST_P(IndexScoresTest, HasTheReferenceBitsForTinyAndHugeValues) {
  for (const Spread spread : {Spread::kTiny, Spread::kHuge, Spread::kDenormal}) {
    for (const std::size_t dim : {1, 2, 8, 128}) expect_same({5, dim, 70, spread});
  }
}

TEST_P(IndexScoresTest, SeesTheLastBitOfAKeyAndOfAQuery) {
  const float more_than_one = 1.0f + 0x1p-23f;
  const std::vector<float> one = {1.0f};
  const std::vector<float> more = {more_than_one};
  for (const bool odd_key : {true, false}) {
    const IndexScoreInput input{.heads = 1,
                                .dim = 1,
                                .query = odd_key ? one : more,
                                .weights = one,
                                .keys = odd_key ? more : one,
                                .rounding = IndexScoreRounding::kF32};
    float score = 0.0f;
    GetParam()->index_scores(input, {&score, 1});
    EXPECT_EQ(score, more_than_one);
  }
}

INSTANTIATE_TEST_SUITE_P(Tables, IndexScoresTest, ::testing::ValuesIn(fast_tables()), table_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(IndexScoresTest);

TEST(IndexScoresReferenceTest, AgreesWithDouble) {
  RandomValues random(23);
  const std::vector<float> query = random.bf16_values(8 * 64, Spread::kUsual);
  const std::vector<float> keys = random.bf16_values(20 * 64, Spread::kUsual);
  const std::vector<float> weights = random.bf16_values(8, Spread::kUsual);
  std::vector<float> scores(20);
  reference_kernels().index_scores(
      {.heads = 8, .dim = 64, .query = query, .weights = weights, .keys = keys}, scores);
  for (std::size_t j = 0; j < 20; ++j) {
    double expected = 0.0;
    double size = 0.0;
    for (std::size_t h = 0; h < 8; ++h) {
      double dot = 0.0;
      for (std::size_t k = 0; k < 64; ++k) {
        dot += static_cast<double>(query[h * 64 + k]) * static_cast<double>(keys[j * 64 + k]);
      }
      expected += static_cast<double>(weights[h]) * std::max(dot, 0.0);
      size += std::fabs(static_cast<double>(weights[h]) * dot);
    }
    EXPECT_NEAR(static_cast<double>(scores[j]), expected, 1e-6 * size);
  }
}

}  // namespace
}  // namespace locket::kernels
