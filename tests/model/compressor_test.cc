#include "model/compressor.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <random>
#include <vector>

#include "kernels/rms_norm.h"
#include "model/linear.h"
#include "model/rotary_table.h"
#include "tests/model/mechanism_inputs.h"

namespace locket::model {
namespace {

constexpr std::size_t kHidden = 48;
constexpr std::size_t kDim = 32;
constexpr std::size_t kIndexDim = 32;
constexpr std::size_t kRope = 8;

CompressorConfig config_of(std::size_t ratio) {
  return {.ratio = ratio,
          .head_dim = kDim,
          .index_dim = kIndexDim,
          .rope_dim = kRope,
          .norm_eps = 1e-20f};
}

CompressorWeights random_compressor() {
  return {.wkv = random_weights(1, kDim, kHidden),
          .wgate = random_weights(2, kDim, kHidden),
          .norm = random_floats(3, kDim),
          .index_wk = random_weights(4, kIndexDim, kDim),
          .index_k_norm = random_floats(5, kIndexDim)};
}

// Latents of all rows of `u`, fed in steps of the given lengths.
std::vector<float> compressed(ForwardContext& context, std::size_t ratio,
                              const tensor::FloatMatrix& u, const std::vector<std::size_t>& steps) {
  const CompressorWeights weights = random_compressor();
  PendingGroup pending;
  std::vector<float> latents;
  std::size_t first = 0;
  for (const std::size_t count : steps) {
    const tensor::FloatMatrix part =
        compress(context, config_of(ratio), weights, rows_of(u, first, first + count),
                 {{{&pending, count}}});
    EXPECT_EQ(part.rows(), (first + count) / ratio - first / ratio);
    latents.insert(latents.end(), part.values().begin(), part.values().end());
    first += count;
    EXPECT_EQ(pending.tokens(kDim), ratio == 1 ? 0 : first % ratio);
    EXPECT_EQ(pending.gates.size(), pending.values.size());
  }
  EXPECT_EQ(first, u.rows());
  return latents;
}

class CompressorTest : public ::testing::TestWithParam<NumericsMode> {
 protected:
  TestContext test_{GetParam()};
};

TEST_P(CompressorTest, AnyCutGivesTheSameLatents) {
  std::mt19937 random(9);
  const auto draw_steps = [&](std::size_t count) {
    std::vector<std::size_t> steps;
    for (std::size_t left = count; left > 0; left -= steps.back()) {
      steps.push_back(1 + random() % left);
    }
    return steps;
  };
  for (const std::size_t ratio : {1, 2, 4}) {
    for (const std::size_t count : {1, 2, 3, 4, 5, 30, 31}) {
      const tensor::FloatMatrix u =
          random_matrix(static_cast<std::uint32_t>(count), count, kHidden);
      const std::vector<float> whole = compressed(test_.context, ratio, u, {count});
      EXPECT_EQ(whole.size(), count / ratio * kDim);
      EXPECT_EQ(compressed(test_.context, ratio, u, std::vector<std::size_t>(count, 1)), whole);
      for (int round = 0; round < 5; ++round) {
        EXPECT_EQ(compressed(test_.context, ratio, u, draw_steps(count)), whole);
      }
    }
  }
}

TEST_P(CompressorTest, RatioOneIsANormedProjection) {
  const CompressorWeights weights = random_compressor();
  const tensor::FloatMatrix u = random_matrix(20, 5, kHidden);
  tensor::FloatMatrix expected = rounded_linear(test_.context, weights.wkv, u);
  for (std::size_t i = 0; i < 5; ++i) {
    kernels::rms_norm(expected.row(i), weights.norm, 1e-20f, test_.context.numerics.rounding(),
                      expected.row(i));
  }
  EXPECT_TRUE(std::ranges::equal(compressed(test_.context, 1, u, {5}), expected.values()));
}

INSTANTIATE_TEST_SUITE_P(Modes, CompressorTest,
                         ::testing::Values(NumericsMode::kReference, NumericsMode::kWide),
                         [](const auto& test_case) {
                           return std::string(numerics_mode_name(test_case.param));
                         });

// Per channel a softmax over the gates of the group's tokens weighs their values; in double.
std::vector<double> merged_group(const tensor::FloatMatrix& values,
                                 const tensor::FloatMatrix& gates, std::size_t first,
                                 std::size_t ratio) {
  std::vector<double> merged(values.columns());
  for (std::size_t channel = 0; channel < merged.size(); ++channel) {
    double sum = 0.0;
    for (std::size_t token = first; token < first + ratio; ++token) {
      const double weight = std::exp(static_cast<double>(gates.row(token)[channel]));
      merged[channel] += weight * static_cast<double>(values.row(token)[channel]);
      sum += weight;
    }
    merged[channel] /= sum;
  }
  return merged;
}

TEST(CompressorFormulaTest, GatesWeighTheTokensOfAGroup) {
  TestContext test(NumericsMode::kWide);
  const CompressorWeights weights = random_compressor();
  const tensor::FloatMatrix u = random_matrix(21, 8, kHidden);
  tensor::FloatMatrix values(8, kDim);
  tensor::FloatMatrix gates(8, kDim);
  linear(test.context, weights.wkv, u, values);
  linear(test.context, weights.wgate, u, gates);
  for (const std::size_t ratio : {2, 4}) {
    const std::vector<float> latents = compressed(test.context, ratio, u, {8});
    for (std::size_t group = 0; group < 8 / ratio; ++group) {
      const std::vector<double> merged = merged_group(values, gates, group * ratio, ratio);
      double squares = 0.0;
      for (const double value : merged) squares += value * value;
      const double rms = std::sqrt(squares / static_cast<double>(kDim));
      for (std::size_t channel = 0; channel < kDim; ++channel) {
        EXPECT_NEAR(latents[group * kDim + channel],
                    merged[channel] / rms * static_cast<double>(weights.norm[channel]), 2e-6);
      }
    }
  }
}

// A gate that is far above the others lets one token through, without overflow.
TEST(CompressorFormulaTest, LargeGatesDoNotOverflow) {
  TestContext test(NumericsMode::kWide);
  const CompressorConfig config = {
      .ratio = 2, .head_dim = 32, .index_dim = 32, .rope_dim = 8, .norm_eps = 1e-20f};
  CompressorWeights weights = random_compressor();
  weights.wkv = diagonal_weights(32, 1.0f);
  weights.wgate = diagonal_weights(32, 1e30f);
  weights.norm.assign(32, 1.0f);
  tensor::FloatMatrix u(2, 32);
  std::ranges::fill(u.row(0), 1.0f);
  std::ranges::fill(u.row(1), 3.0f);
  u.row(0)[0] = 5.0f;
  PendingGroup pending;
  const tensor::FloatMatrix latents = compress(test.context, config, weights, u, {{{&pending, 2}}});
  const float rms = std::sqrt((25.0f + 31.0f * 9.0f) / 32.0f);
  EXPECT_FLOAT_EQ(latents.row(0)[0], 5.0f / rms);
  EXPECT_FLOAT_EQ(latents.row(0)[1], 3.0f / rms);
}

struct WrittenRows {
  std::vector<float> row;
  std::vector<float> key;
};

WrittenRows read_back(TestMemory& memory, std::int64_t number) {
  WrittenRows written = {std::vector<float>(kDim), std::vector<float>(kIndexDim)};
  const cache::KvView view = memory.view();
  decode_row(kernels::RowFormat::kF32, view.row(1, number), written.row);
  decode_row(kernels::RowFormat::kF32, view.row(2, number), written.key);
  return written;
}

TEST(CompressorRowsTest, RowsAreRotatedAtTheFirstTokenOfTheirGroup) {
  TestContext test(NumericsMode::kPlain);
  TestMemory memory({.streams = {{.name = "other", .row_bytes = 8},
                                 {.name = "rows", .tokens_per_row = 2, .row_bytes = kDim * 4},
                                 {.name = "keys", .tokens_per_row = 2, .row_bytes = kIndexDim * 4}},
                     .rings = {}},
                    300);
  const CompressorWeights weights = random_compressor();
  const tensor::FloatMatrix latents = random_matrix(30, 3, kDim);
  const std::vector<float> frequencies = rotary_frequencies({.dim = kRope, .base = 100.0});
  const cache::KvView view = memory.view();
  write_rows(
      test.context, config_of(2), weights, latents,
      {.targets = {{.memory = &view, .first_row = 63, .count = 1},
                   {.memory = &view, .first_row = 64, .count = 2}},
       .streams = {.rows = 1, .index_keys = 2},
       .formats = {kernels::RowFormat::kF32, kernels::RowFormat::kF32, kernels::RowFormat::kF32},
       .frequencies = frequencies});
  // Rows 63 to 65: the last of the first page and the first two of the second.
  const RotaryTable table = rotary_table(frequencies, positions_from(126, 2, 3));
  tensor::FloatMatrix keys = rounded_linear(test.context, weights.index_wk, latents);
  for (std::size_t i = 0; i < 3; ++i) {
    kernels::rms_norm(keys.row(i), weights.index_k_norm, 1e-20f, kernels::Rounding::kNone,
                      keys.row(i));
    const WrittenRows written = read_back(memory, 63 + static_cast<std::int64_t>(i));
    const auto expect_rotated = [&](std::span<const float> actual, std::span<const float> source) {
      for (std::size_t dim = 0; dim < kDim - kRope; ++dim) EXPECT_EQ(actual[dim], source[dim]);
      for (std::size_t pair = 0; pair < kRope / 2; ++pair) {
        const std::size_t at = kDim - kRope + 2 * pair;
        const float cos = table.cos.row(i)[pair];
        const float sin = table.sin.row(i)[pair];
        EXPECT_EQ(actual[at], source[at] * cos - source[at + 1] * sin);
        EXPECT_EQ(actual[at + 1], source[at] * sin + source[at + 1] * cos);
      }
    };
    expect_rotated(written.row, latents.row(i));
    expect_rotated(written.key, keys.row(i));
  }
  EXPECT_EQ(read_back(memory, 62).row, std::vector<float>(kDim, 0.0f));
  EXPECT_EQ(read_back(memory, 66).row, std::vector<float>(kDim, 0.0f));
}

TEST(CompressorRowsTest, NoLatentsWriteNothing) {
  TestContext test(NumericsMode::kReference);
  TestMemory memory(
      {.streams = {{.name = "rows", .row_bytes = 18}, {.name = "keys", .row_bytes = 17}},
       .rings = {}},
      1);
  const cache::KvView view = memory.view();
  const std::vector<float> frequencies = {1.0f};
  write_rows(test.context, config_of(1), random_compressor(), tensor::FloatMatrix(0, kDim),
             {.targets = {},
              .streams = {.rows = 0, .index_keys = 1},
              .formats = {},
              .frequencies = frequencies});
  for (const std::byte byte : view.row(0, 0)) EXPECT_EQ(byte, std::byte{0});
  EXPECT_EQ(test.context.work, WorkCount{});
}

}  // namespace
}  // namespace locket::model
