#include "model/embedding.h"

#include <algorithm>
#include <cstring>
#include <gtest/gtest.h>
#include <vector>

#include "numerics/bf16.h"
#include "tests/model/mechanism_inputs.h"

namespace locket::model {
namespace {

EmbeddingWeights table_of(std::size_t rows, std::size_t hidden) {
  EmbeddingWeights weights = {.table = tensor::AlignedBuffer(rows * hidden * 2), .hidden = hidden};
  for (std::size_t i = 0; i < rows * hidden; ++i) {
    const numerics::Bf16 value = numerics::to_bf16(static_cast<float>(i));
    std::memcpy(weights.table.data() + 2 * i, &value.bits, 2);
  }
  return weights;
}

TEST(EmbeddingTest, EveryStreamBeginsAsTheEmbedding) {
  const EmbeddingWeights weights = table_of(5, 3);
  const std::vector<std::int32_t> ids = {4, 0, 4};
  const tensor::FloatMatrix streams = embed(weights, ids, 4);
  ASSERT_EQ(streams.rows(), 3U);
  ASSERT_EQ(streams.columns(), 12U);
  for (std::size_t stream = 0; stream < 4; ++stream) {
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(streams.row(0)[stream * 3 + i], static_cast<float>(12 + i));
      EXPECT_EQ(streams.row(1)[stream * 3 + i], static_cast<float>(i));
    }
  }
  EXPECT_TRUE(std::ranges::equal(streams.row(0), streams.row(2)));
}

TEST(EmbeddingTest, OneStreamIsPossible) {
  const std::vector<std::int32_t> ids = {1};
  const tensor::FloatMatrix streams = embed(table_of(2, 3), ids, 1);
  EXPECT_EQ(streams.columns(), 3U);
  EXPECT_EQ(streams.row(0)[2], 5.0f);
}

TEST(EmbeddingDeathTest, IdsOutsideTheTableAreRefused) {
  const EmbeddingWeights weights = table_of(5, 3);
  const std::vector<std::int32_t> high = {5};
  const std::vector<std::int32_t> negative = {-1};
  EXPECT_DEATH(embed(weights, high, 4), "check failed");
  EXPECT_DEATH(embed(weights, negative, 4), "check failed");
}

TEST(OutputHeadTest, NormsAndProjects) {
  TestContext test(NumericsMode::kWide);
  OutputHeadWeights weights = {.norm = std::vector<float>(32, 2.0f),
                               .head = random_weights(1, 7, 32)};
  const tensor::FloatMatrix hidden = random_matrix(2, 3, 32);
  const tensor::FloatMatrix logits = output_head(test.context, weights, 1e-20f, hidden);
  ASSERT_EQ(logits.rows(), 3U);
  ASSERT_EQ(logits.columns(), 7U);
  for (std::size_t token = 0; token < 3; ++token) {
    double squares = 0.0;
    for (const float x : hidden.row(token)) squares += static_cast<double>(x * x);
    const double factor = 2.0 / std::sqrt(squares / 32.0);
    for (std::size_t id = 0; id < 7; ++id) {
      double sum = 0.0;
      for (std::size_t d = 0; d < 32; ++d) {
        sum += static_cast<double>(kernels::weight_at(weights.head, id, d)) *
               static_cast<double>(hidden.row(token)[d]) * factor;
      }
      EXPECT_NEAR(logits.row(token)[id], sum, 1e-5);
    }
  }
}

// Logits are float32 in every mode; only the normed input is rounded.
TEST(OutputHeadTest, LogitsAreNotRounded) {
  TestContext test(NumericsMode::kReference);
  const OutputHeadWeights weights = {.norm = std::vector<float>(32, 1.0f),
                                     .head = random_weights(1, 40, 32)};
  const tensor::FloatMatrix logits =
      output_head(test.context, weights, 1e-20f, random_matrix(2, 1, 32));
  EXPECT_TRUE(std::ranges::any_of(
      logits.values(), [](float value) { return numerics::round_to_bf16(value) != value; }));
}

}  // namespace
}  // namespace locket::model
