// The attention of one layer against the formulas in double, in mode `plain`: no rounding and no
// quantizer hides a wrong term.
#include "model/csa2_attention.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <gtest/gtest.h>
#include <vector>

#include "tests/model/mechanism_inputs.h"

namespace locket::model {
namespace {

constexpr std::size_t kHidden = 40;
constexpr std::size_t kLora = 32;
constexpr std::size_t kHeads = 4;
constexpr std::size_t kDim = 32;
constexpr std::size_t kRope = 8;
constexpr std::size_t kGroups = 2;
constexpr std::size_t kOutputLora = 32;
constexpr std::int64_t kWindow = 5;

using Vector = std::vector<double>;

Csa2Config config_of(std::int64_t ratio, std::size_t heads) {
  return {.heads = heads,
          .head_dim = kDim,
          .rope_dim = kRope,
          .output_groups = kGroups,
          .window = kWindow,
          .ratio = ratio,
          .norm_eps = 1e-20f};
}

Csa2Weights random_attention(std::size_t heads) {
  Csa2Weights weights = {.wq_a = random_weights(1, kLora, kHidden),
                         .q_norm = random_floats(2, kLora),
                         .wq_b = random_weights(3, heads * kDim, kLora),
                         .wkv = random_weights(4, kDim, kHidden),
                         .kv_norm = random_floats(5, kDim),
                         .sink = random_floats(6, heads),
                         .wo_a = {},
                         .wo_b = random_weights(7, kHidden, kGroups * kOutputLora),
                         .indexer = {}};
  for (std::uint32_t group = 0; group < kGroups; ++group) {
    weights.wo_a.push_back(random_weights(8 + group, kOutputLora, heads / kGroups * kDim));
  }
  return weights;
}

Vector times(const kernels::WeightMatrix& matrix, const Vector& x) {
  Vector y(matrix.rows);
  for (std::size_t row = 0; row < matrix.rows; ++row) {
    for (std::size_t column = 0; column < matrix.columns; ++column) {
      y[row] += static_cast<double>(kernels::weight_at(matrix, row, column)) * x[column];
    }
  }
  return y;
}

Vector normed(Vector x, const std::vector<float>& weight) {
  double squares = 0.0;
  for (const double value : x) squares += value * value;
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] *= static_cast<double>(weight[i]) / std::sqrt(squares / static_cast<double>(x.size()));
  }
  return x;
}

// The last kRope dims of x[first, first + kDim), turned forward (1) or back (-1).
void turn(Vector& x, std::size_t first, const RotaryTable& table, std::size_t i, double direction) {
  for (std::size_t pair = 0; pair < kRope / 2; ++pair) {
    const std::size_t at = first + kDim - kRope + 2 * pair;
    const std::complex<double> turned =
        std::complex(x[at], x[at + 1]) *
        std::complex(static_cast<double>(table.cos.row(i)[pair]),
                     direction * static_cast<double>(table.sin.row(i)[pair]));
    x[at] = turned.real();
    x[at + 1] = turned.imag();
  }
}

Vector to_doubles(std::span<const float> values) { return {values.begin(), values.end()}; }

// What one position reads: window rows and chosen rows, all [kDim].
Vector plain_attention(const Csa2Weights& weights, const Vector& u, const std::vector<Vector>& rows,
                       const RotaryTable& table, std::size_t i) {
  Vector query = times(weights.wq_b, normed(times(weights.wq_a, u), weights.q_norm));
  Vector joined;
  for (std::size_t head = 0; head < kHeads; ++head) {
    turn(query, head * kDim, table, i, 1.0);
    double denominator = std::exp(static_cast<double>(weights.sink[head]));
    Vector out(kDim);
    for (const Vector& row : rows) {
      double logit = 0.0;
      for (std::size_t d = 0; d < kDim; ++d) logit += query[head * kDim + d] * row[d];
      const double weight = std::exp(logit / std::sqrt(static_cast<double>(kDim)));
      denominator += weight;
      for (std::size_t d = 0; d < kDim; ++d) out[d] += weight * row[d];
    }
    for (double& value : out) value /= denominator;
    turn(out, 0, table, i, -1.0);
    joined.insert(joined.end(), out.begin(), out.end());
  }
  Vector low;
  const std::size_t width = joined.size() / kGroups;
  for (std::size_t group = 0; group < kGroups; ++group) {
    const auto begin = joined.begin() + static_cast<std::ptrdiff_t>(group * width);
    const Vector part =
        times(weights.wo_a[group], Vector(begin, begin + static_cast<std::ptrdiff_t>(width)));
    low.insert(low.end(), part.begin(), part.end());
  }
  return times(weights.wo_b, low);
}

// One layer over all positions, in steps; chosen rows of position p: every row that p sees whose
// number is a multiple of three.
class AttentionCase {
 public:
  AttentionCase(std::int64_t ratio, std::int64_t segment_start, std::size_t count,
                std::size_t heads = kHeads)
      : config_(config_of(ratio, heads)),
        weights_(random_attention(heads)),
        segment_start_(segment_start),
        u_(random_matrix(20, count, kHidden)),
        memory_({.streams = {{.name = "rows",
                              .tokens_per_row = std::max<std::int64_t>(ratio, 1),
                              .row_bytes = kDim * sizeof(float)}},
                 .rings = {{.slots = kWindow, .row_bytes = kDim * sizeof(float)}}},
                segment_start + static_cast<std::int64_t>(count)),
        rows_(random_matrix(21, 64, kDim)) {
    for (std::size_t row = 0; row < rows_.rows(); ++row) {
      std::ranges::copy(std::as_bytes(rows_.row(row)),
                        memory_.view().row(0, static_cast<std::int64_t>(row)).begin());
    }
  }

  std::vector<std::int32_t> chosen(std::int64_t position) const {
    std::vector<std::int32_t> rows;
    for (std::int32_t row = 0; config_.ratio > 0 && row < (position + 1) / config_.ratio;
         row += 3) {
      rows.push_back(row);
    }
    return rows;
  }

  tensor::FloatMatrix run(const std::vector<std::size_t>& steps, std::size_t threads) {
    TestContext test(NumericsMode::kPlain, threads);
    tensor::FloatMatrix out(u_.rows(), kHidden);
    const cache::KvView view = memory_.view();
    std::size_t first = 0;
    for (const std::size_t count : steps) {
      Step step({{.memory = &view,
                  .first_position = segment_start_ + static_cast<std::int64_t>(first),
                  .count = count,
                  .segment_start = segment_start_}},
                {kernels::RowFormat::kF32, kernels::RowFormat::kF32, kernels::RowFormat::kF32});
      step.plain_rotary = table(10.0, step.first_position(), count);
      step.compressed_rotary = table(7.0, step.first_position(), count);
      for (std::size_t i = 0; i < count; ++i)
        step.selection.rows.push_back(chosen(step.position(i)));
      const tensor::FloatMatrix part =
          csa2_attention(test.context, config_, weights_, rows_of(u_, first, first + count),
                         {.rows = 0, .ring = 0}, step);
      for (std::size_t i = 0; i < count; ++i) {
        std::ranges::copy(part.row(i), out.row(first + i).begin());
      }
      first += count;
    }
    return out;
  }

  void expect_plain(const tensor::FloatMatrix& actual) {
    const RotaryTable angles = table(config_.ratio > 0 ? 7.0 : 10.0, segment_start_, u_.rows());
    std::vector<Vector> window;
    for (std::size_t i = 0; i < u_.rows(); ++i) {
      window.push_back(normed(times(weights_.wkv, to_doubles(u_.row(i))), weights_.kv_norm));
      turn(window.back(), 0, angles, i, 1.0);
      const std::size_t oldest = i < kWindow ? 0 : i + 1 - kWindow;
      std::vector<Vector> rows(window.begin() + static_cast<std::ptrdiff_t>(oldest), window.end());
      for (const std::int32_t row : chosen(segment_start_ + static_cast<std::int64_t>(i))) {
        rows.push_back(to_doubles(rows_.row(static_cast<std::size_t>(row))));
      }
      const Vector expected = plain_attention(weights_, to_doubles(u_.row(i)), rows, angles, i);
      for (std::size_t d = 0; d < kHidden; ++d) {
        EXPECT_NEAR(actual.row(i)[d], expected[d], 2e-4) << "position " << i << ", value " << d;
      }
    }
  }

 private:
  static RotaryTable table(double base, std::int64_t first, std::size_t count) {
    return rotary_table(rotary_frequencies({.dim = kRope, .base = base}),
                        positions_from(first, 1, count));
  }

  Csa2Config config_;
  Csa2Weights weights_;
  std::int64_t segment_start_;
  tensor::FloatMatrix u_;
  TestMemory memory_;
  tensor::FloatMatrix rows_;
};

TEST(Csa2AttentionTest, FollowsTheFormulas) {
  for (const std::int64_t ratio : {0, 1, 2}) {
    for (const std::int64_t segment_start : {0, 11}) {
      SCOPED_TRACE(::testing::Message() << "ratio " << ratio << ", from " << segment_start);
      AttentionCase test_case(ratio, segment_start, 17);
      test_case.expect_plain(test_case.run({17}, 1));
    }
  }
}

TEST(Csa2AttentionTest, StepsAndThreadsChangeNoBit) {
  for (const std::int64_t ratio : {0, 2}) {
    const tensor::FloatMatrix whole = AttentionCase(ratio, 3, 17).run({17}, 1);
    for (const std::size_t threads : {1, 2, 3, 7}) {
      for (const std::vector<std::size_t>& steps :
           {std::vector<std::size_t>(17, 1), std::vector<std::size_t>{4, 6, 7},
            std::vector<std::size_t>{1, 15, 1}}) {
        const tensor::FloatMatrix parts = AttentionCase(ratio, 3, 17).run(steps, threads);
        EXPECT_TRUE(std::ranges::equal(parts.values(), whole.values()));
      }
    }
  }
}

// Enough heads that threads get whole groups of 16, and a rest.
TEST(Csa2AttentionTest, ManyHeadsMayBeCutAmongThreads) {
  constexpr std::size_t kManyHeads = 56;
  const tensor::FloatMatrix whole = AttentionCase(1, 0, 9, kManyHeads).run({9}, 1);
  for (const std::size_t threads : {2, 3}) {
    const tensor::FloatMatrix parts = AttentionCase(1, 0, 9, kManyHeads).run({1, 3, 1, 4}, threads);
    EXPECT_TRUE(std::ranges::equal(parts.values(), whole.values())) << threads;
  }
}

}  // namespace
}  // namespace locket::model
