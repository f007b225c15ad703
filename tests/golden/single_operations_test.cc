// Single operations of the model against recorded results of the vendor's code: the coefficients of
// hyper-connections, rotation tables and rotations, and the root-mean-square norm. Quantizers,
// products and attention are compared beside their kernels.
#include <algorithm>
#include <bit>
#include <cmath>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "kernels/rms_norm.h"
#include "kernels/rotary.h"
#include "model/hyper_connections.h"
#include "model/rotary_table.h"
#include "tests/support/oracle_compare.h"
#include "tests/support/oracle_data.h"

namespace locket::test_support {
namespace {

using tensor::FloatMatrix;

constexpr float kNormEpsilon = 1e-20f;  // of the recorded norm

// float32 numbers between a and b.
std::int64_t float_units(float a, float b) {
  const auto number = [](float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const auto magnitude = static_cast<std::int64_t>(bits & 0x7FFFFFFFu);
    return (bits >> 31) != 0 ? -magnitude : magnitude;
  };
  return std::abs(number(a) - number(b));
}

struct UnitTally {
  std::size_t values = 0;
  std::size_t equal = 0;
  std::int64_t largest = 0;
  double largest_relative = 0;

  void add(std::span<const float> ours, std::span<const float> theirs) {
    ASSERT_EQ(ours.size(), theirs.size());
    for (std::size_t i = 0; i < ours.size(); ++i) {
      values += 1;
      equal += ours[i] == theirs[i] ? 1 : 0;
      largest = std::max(largest, float_units(ours[i], theirs[i]));
      if (ours[i] != theirs[i]) {
        largest_relative =
            std::max(largest_relative,
                     std::fabs(static_cast<double>(ours[i]) - static_cast<double>(theirs[i])) /
                         std::fabs(static_cast<double>(theirs[i])));
      }
    }
  }
};

std::string describe(const UnitTally& tally) {
  return fmt::format("{} of {} values equal, the others at most {} units, {:.1e} relative",
                     tally.equal, tally.values, tally.largest, tally.largest_relative);
}

OracleFile read_operations() { return OracleFile(oracle_path("official/quantizers.safetensors")); }

TEST(SingleOperationsTest, HyperConnectionCoefficientsAreTheRecordedOnes) {
  const OracleFile file = read_operations();
  for (std::size_t size = 1; size <= 4; ++size) {
    const std::string prefix = fmt::format("sinkhorn.{}.", size);
    const model::HyperConnectionsConfig config = {
        .streams = size,
        .sinkhorn_iterations = static_cast<std::size_t>(file.at(prefix + "iters").integers.front()),
        .hc_eps = file.at(prefix + "eps").floats.front(),
        .norm_eps = 0};
    const model::HyperConnectionsWeights weights = {.fn = {},
                                                    .base = file.at(prefix + "base").floats,
                                                    .scale = file.at(prefix + "scale").floats};
    const FloatMatrix mixes = file.matrix(prefix + "mixes");
    const FloatMatrix pre = file.matrix(prefix + "pre");
    const FloatMatrix post = file.matrix(prefix + "post");
    const FloatMatrix comb = file.matrix(prefix + "comb");
    UnitTally gates;
    UnitTally mixing;
    ASSERT_GT(mixes.rows(), 0u);
    for (std::size_t row = 0; row < mixes.rows(); ++row) {
      std::vector<float> our_pre(size);
      std::vector<float> our_post(size);
      std::vector<float> our_comb(size * size);
      split_coefficients(config, weights, mixes.row(row),
                         {.pre = our_pre, .post = our_post, .comb = our_comb});
      gates.add(our_pre, pre.row(row));
      gates.add(our_post, post.row(row));
      mixing.add(our_comb, comb.row(row));
    }
    print_figures(fmt::format("official hyper-connections, {} streams, pre and post: {}", size,
                              describe(gates)));
    print_figures(
        fmt::format("official hyper-connections, {} streams, comb: {}", size, describe(mixing)));
    EXPECT_LE(gates.largest_relative, 1e-6) << size;
    EXPECT_LE(mixing.largest_relative, 1e-6) << size;
  }
}

TEST(SingleOperationsTest, RotationTablesAndRotationsAreTheRecordedOnes) {
  const OracleFile file = read_operations();
  for (const std::string name :
       {"window", "compressed", "micro_compressed", "odd_window", "odd_compressed"}) {
    const std::string prefix = fmt::format("rope.{}.", name);
    const std::vector<float>& params = file.at(prefix + "params").floats;
    const std::vector<float> frequencies =
        model::rotary_frequencies({.dim = static_cast<std::int64_t>(params[0]),
                                   .base = static_cast<double>(params[2]),
                                   .factor = static_cast<double>(params[3]),
                                   .beta_fast = static_cast<double>(params[4]),
                                   .beta_slow = static_cast<double>(params[5]),
                                   .original_context = static_cast<std::int64_t>(params[1])});
    const std::vector<std::int32_t>& positions = file.at(prefix + "positions").integers;
    const FloatMatrix cos = file.matrix(prefix + "cos");
    const FloatMatrix sin = file.matrix(prefix + "sin");
    const FloatMatrix x = file.matrix(prefix + "x");
    UnitTally tables;
    RowTally rotations;
    ASSERT_FALSE(positions.empty());
    for (std::size_t i = 0; i < positions.size(); ++i) {
      const model::RotaryTable table = model::rotary_table(frequencies, {{positions[i]}});
      tables.add(table.cos.row(0), cos.row(i));
      tables.add(table.sin.row(0), sin.row(i));
      const auto rotated = [&](kernels::RotaryDirection direction) {
        std::vector<float> values(x.row(i).begin(), x.row(i).end());
        kernels::rotate_pairs(values, table.cos.row(0), table.sin.row(0), direction,
                              kernels::Rounding::kBf16);
        return values;
      };
      rotations.add(rotated(kernels::RotaryDirection::kForward), file.matrix(prefix + "y").row(i));
      rotations.add(rotated(kernels::RotaryDirection::kInverse),
                    file.matrix(prefix + "inverse_y").row(i));
    }
    print_figures(fmt::format("official rotation {}, cos and sin: {}", name, describe(tables)));
    print_figures(fmt::format("official rotation {}, rotated: {}", name, describe(rotations)));
    EXPECT_LE(tables.largest, 1) << name;
    EXPECT_GE(tables.equal * 100, tables.values * 95) << name;
    EXPECT_EQ(rotations.equal_rows, rotations.rows) << name;
  }
}

TEST(SingleOperationsTest, RootMeanSquareNormHasTheRecordedBits) {
  const OracleFile file = read_operations();
  const FloatMatrix x = file.matrix("rmsnorm.x");
  const FloatMatrix y = file.matrix("rmsnorm.y");
  const std::vector<float>& weight = file.at("rmsnorm.weight").floats;
  RowTally tally;
  for (std::size_t row = 0; row < x.rows(); ++row) {
    std::vector<float> ours(x.columns());
    kernels::rms_norm(x.row(row), weight, kNormEpsilon, kernels::Rounding::kBf16, ours);
    tally.add(ours, y.row(row));
  }
  print_figures("official norm: " + describe(tally));
  EXPECT_EQ(tally.equal_rows, tally.rows);
}

}  // namespace
}  // namespace locket::test_support
