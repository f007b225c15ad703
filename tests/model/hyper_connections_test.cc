#include "model/hyper_connections.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <vector>

#include "tests/model/mechanism_inputs.h"

namespace locket::model {
namespace {

struct Coefficients {
  std::vector<double> pre;
  std::vector<double> post;
  std::vector<double> comb;  // [j * S + k]
};

double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

// The formulas of the model's description, in double.
Coefficients plain_coefficients(const HyperConnectionsConfig& config,
                                const HyperConnectionsWeights& weights,
                                std::span<const float> streams) {
  const std::size_t size = config.streams;
  const double eps = static_cast<double>(config.hc_eps);
  double squares = 0.0;
  for (const float x : streams) squares += static_cast<double>(x) * static_cast<double>(x);
  const double factor = 1.0 / std::sqrt(squares / static_cast<double>(streams.size()) +
                                        static_cast<double>(config.norm_eps));
  const auto mix = [&](std::size_t i, std::size_t part) {
    double sum = 0.0;
    for (std::size_t d = 0; d < streams.size(); ++d) {
      sum +=
          static_cast<double>(weights.fn[i * streams.size() + d]) * static_cast<double>(streams[d]);
    }
    return sum * factor * static_cast<double>(weights.scale[part]) +
           static_cast<double>(weights.base[i]);
  };
  Coefficients result;
  for (std::size_t i = 0; i < size; ++i) {
    result.pre.push_back(sigmoid(mix(i, 0)) + eps);
    result.post.push_back(2.0 * sigmoid(mix(size + i, 1)));
  }
  std::vector<double>& comb = result.comb;
  for (std::size_t i = 0; i < size * size; ++i) comb.push_back(std::exp(mix(2 * size + i, 2)));
  const auto divide = [&](std::size_t step, std::size_t along, double floor, double added) {
    for (std::size_t i = 0; i < size; ++i) {
      double sum = floor;
      for (std::size_t n = 0; n < size; ++n) sum += comb[i * step + n * along];
      for (std::size_t n = 0; n < size; ++n) {
        comb[i * step + n * along] = comb[i * step + n * along] / sum + added;
      }
    }
  };
  divide(size, 1, 0.0, eps);  // softmax over k
  divide(1, size, eps, 0.0);  // columns
  for (std::size_t n = 1; n < config.sinkhorn_iterations; ++n) {
    divide(size, 1, eps, 0.0);
    divide(1, size, eps, 0.0);
  }
  return result;
}

HyperConnectionsWeights random_site(std::size_t streams, std::size_t hidden) {
  const std::size_t mixes = 2 * streams + streams * streams;
  return {.fn = random_floats(1, mixes * streams * hidden),
          .base = random_floats(2, mixes),
          .scale = random_floats(3, 3)};
}

void expect_near(std::span<const float> actual, const std::vector<double>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 4e-6);
}

void expect_formulas(NumericsMode mode, const HyperConnectionsConfig& config) {
  TestContext test(mode, 2);
  const HyperConnectionsWeights weights = random_site(config.streams, 24);
  const tensor::FloatMatrix rows = random_matrix(4, 5, config.streams * 24);
  const HyperConnections site = hyper_connections(test.context, config, weights, rows);
  for (std::size_t token = 0; token < 5; ++token) {
    const Coefficients expected = plain_coefficients(config, weights, rows.row(token));
    expect_near(site.pre.row(token), expected.pre);
    expect_near(site.post.row(token), expected.post);
    expect_near(site.comb.row(token), expected.comb);
  }
}

TEST(HyperConnectionsTest, CoefficientsFollowTheFormulas) {
  for (const NumericsMode mode : {NumericsMode::kReference, NumericsMode::kWide}) {
    for (const std::size_t streams : {2, 3, 4}) {
      for (const std::size_t iterations : {1, 2, 7, 20}) {
        expect_formulas(mode, {.streams = streams,
                               .sinkhorn_iterations = iterations,
                               .hc_eps = 1e-4f,
                               .norm_eps = 1e-5f});
      }
    }
  }
}

// The last step divides columns: their sums are s / (s + eps).
// The output head of V4 has weights for its collapse and nothing else.
TEST(HyperConnectionsTest, CollapseWeightsAloneAreTheFirstOfASite) {
  const HyperConnectionsConfig config = {
      .streams = 4, .sinkhorn_iterations = 20, .hc_eps = 1e-6f, .norm_eps = 1e-6f};
  const std::size_t width = 4 * 24;
  HyperConnectionsWeights site = {.fn = random_floats(31, 24 * width),
                                  .base = random_floats(32, 24),
                                  .scale = {0.7f, 1.0f, 1.0f}};
  HyperConnectionsWeights head = {
      .fn = {site.fn.begin(), site.fn.begin() + static_cast<std::ptrdiff_t>(4 * width)},
      .base = {site.base.begin(), site.base.begin() + 4},
      .scale = {0.7f}};
  TestContext test(NumericsMode::kWide);
  const tensor::FloatMatrix streams = random_matrix(33, 5, width);
  const HyperConnections whole = hyper_connections(test.context, config, site, streams);
  const tensor::FloatMatrix alone = collapse_weights(test.context, config, head, streams);
  ASSERT_EQ(alone.rows(), 5U);
  ASSERT_EQ(alone.columns(), 4U);
  EXPECT_TRUE(std::ranges::equal(alone.values(), whole.pre.values()));
}

TEST(HyperConnectionsTest, ColumnsSumToSlightlyLessThanOne) {
  const HyperConnectionsConfig config = {
      .streams = 4, .sinkhorn_iterations = 20, .hc_eps = 1e-3f, .norm_eps = 1e-20f};
  TestContext test(NumericsMode::kReference);
  const HyperConnections site =
      hyper_connections(test.context, config, random_site(4, 16), random_matrix(5, 3, 64));
  for (std::size_t token = 0; token < 3; ++token) {
    for (std::size_t k = 0; k < 4; ++k) {
      float column = 0.0f;
      for (std::size_t j = 0; j < 4; ++j) column += site.comb.row(token)[j * 4 + k];
      EXPECT_NEAR(column, 1.0f - 1e-3f, 5e-5f);
    }
  }
}

// The eps of the norm stands under the root; streams of zeros give the bases alone.
TEST(HyperConnectionsTest, ZeroStreamsGiveTheBases) {
  const HyperConnectionsConfig config = {
      .streams = 4, .sinkhorn_iterations = 20, .hc_eps = 1e-6f, .norm_eps = 1e-20f};
  TestContext test(NumericsMode::kReference);
  const HyperConnectionsWeights weights = random_site(4, 16);
  const HyperConnections site =
      hyper_connections(test.context, config, weights, tensor::FloatMatrix(1, 64));
  for (std::size_t i = 0; i < 4; ++i) {
    const auto base = static_cast<double>(weights.base[i]);
    EXPECT_FLOAT_EQ(site.pre.row(0)[i], static_cast<float>(sigmoid(base) + 1e-6));
    EXPECT_FLOAT_EQ(site.post.row(0)[i],
                    static_cast<float>(2.0 * sigmoid(static_cast<double>(weights.base[4 + i]))));
  }
}

TEST(HyperConnectionsTest, CollapseWithTheFirstUnitVectorIsTheFirstStream) {
  TestContext test(NumericsMode::kReference);
  tensor::FloatMatrix streams = random_matrix(6, 2, 4 * 16);
  kernels::round_values(streams.values(), kernels::Rounding::kBf16);
  const tensor::FloatMatrix pre = float_matrix(2, 4, {{1, 0, 0, 0, 1, 0, 0, 0}});
  const tensor::FloatMatrix collapsed = collapse_streams(test.context, streams, pre);
  for (std::size_t token = 0; token < 2; ++token) {
    EXPECT_TRUE(std::ranges::equal(collapsed.row(token), streams.row(token).first(16)));
  }
}

TEST(HyperConnectionsTest, CollapseWeighsTheStreams) {
  TestContext test(NumericsMode::kWide);
  const tensor::FloatMatrix streams = float_matrix(1, 6, {{1, 2, 10, 20, 100, 200}});
  const tensor::FloatMatrix pre = float_matrix(1, 3, {{2, 3, 0.5f}});
  const tensor::FloatMatrix collapsed = collapse_streams(test.context, streams, pre);
  EXPECT_EQ(collapsed.row(0)[0], 82.0f);
  EXPECT_EQ(collapsed.row(0)[1], 164.0f);
}

// comb[j][k]: from the old stream j to the new stream k. A matrix that is not symmetric tells.
TEST(HyperConnectionsTest, ExpandMovesOldStreamsToNewOnes) {
  TestContext test(NumericsMode::kWide);
  tensor::FloatMatrix streams = float_matrix(1, 6, {{1, 2, 10, 20, 100, 200}});
  HyperConnections site = {.pre = {1, 3},
                           .post = float_matrix(1, 3, {{1, 2, 0}}),
                           .comb = float_matrix(1, 9,
                                                {{0, 1, 0,  //
                                                  0, 0, 1,  //
                                                  1, 0, 2}})};
  expand_streams(test.context, site, float_matrix(1, 2, {{0.5f, 0.25f}}), streams);
  EXPECT_EQ(std::vector<float>(streams.values().begin(), streams.values().end()),
            (std::vector<float>{100.5f, 200.25f, 2.0f, 2.5f, 210.0f, 420.0f}));
}

TEST(HyperConnectionsTest, ReferenceRoundsOnceToBf16) {
  TestContext test(NumericsMode::kReference);
  tensor::FloatMatrix streams = float_matrix(1, 2, {{1.0f, 0x1.02p0f}});
  const HyperConnections site = {.pre = {1, 2},
                                 .post = float_matrix(1, 2, {{0x1p-9f, 0x1p-9f}}),
                                 .comb = float_matrix(1, 4, {{1, 0x1p-9f, 0x1p-9f, 1}})};
  expand_streams(test.context, site, float_matrix(1, 1, {{1.0f}}), streams);
  // 1 + 2^-9 (1 + 1.0078) is just above the middle of 1 and the next bfloat16; rounding the two
  // parts apart would leave 1.
  EXPECT_EQ(streams.row(0)[0], 0x1.02p0f);
  const tensor::FloatMatrix collapsed = collapse_streams(
      test.context, float_matrix(1, 2, {{1.0f, 0x1.02p0f}}), float_matrix(1, 2, {{1.0f, 0x1p-8f}}));
  EXPECT_EQ(collapsed.row(0)[0], 0x1.02p0f);
}

}  // namespace
}  // namespace locket::model
