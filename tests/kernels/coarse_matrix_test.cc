#include "kernels/coarse_matrix.h"

#include <bit>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <utility>
#include <vector>

#include "kernels/kernel_table.h"
#include "tests/support/kernel_data.h"

namespace locket::kernels {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

CoarseMatrix copy_of(const WeightMatrix& w) {
  WorkerPool workers(1);
  return coarse_copy(w, workers);
}

int code_at(const CoarseMatrix& copy, std::size_t row, std::size_t column) {
  const std::size_t quad = row / kCoarseLanes * copy.quads() + column / kCoarseQuad;
  const std::size_t at = (quad * kCoarseLanes + row % kCoarseLanes) * kCoarseQuad;
  return std::to_integer<int>(copy.codes.data()[at + column % kCoarseQuad]) - kCoarseOffset;
}

WeightMatrix random_weights(std::size_t rows, std::size_t columns, Spread spread,
                            RandomValues& random) {
  return random_matrix(WeightFormat::kBf16, rows, columns, spread, random).packed();
}

ActivationRows rows_of(const std::vector<float>& x, std::size_t columns) {
  return {.data = x.data(), .stride = columns, .tokens = x.size() / columns};
}

TEST(CoarseMatrixTest, IsWithinHalfAStepOfEveryWeight) {
  for (const Spread spread : {Spread::kUsual, Spread::kHuge}) {
    RandomValues random(1);
    const WeightMatrix w = random_weights(37, 75, spread, random);
    const CoarseMatrix copy = copy_of(w);
    for (std::size_t row = 0; row < w.rows; ++row) {
      for (std::size_t column = 0; column < w.columns; ++column) {
        const double weight = weight_at(w, row, column);
        const double scale = copy.scales[row];
        EXPECT_LE(std::fabs(weight - scale * code_at(copy, row, column)), scale * 0.50001);
      }
    }
  }
}

TEST(CoarseMatrixTest, RoundsNormsUp) {
  for (int s = 0; s < static_cast<int>(Spread::kCount); ++s) {
    RandomValues random(static_cast<std::uint32_t>(s));
    const WeightMatrix w = random_weights(50, 90, static_cast<Spread>(s), random);
    const CoarseMatrix copy = copy_of(w);
    for (std::size_t row = 0; row < w.rows; ++row) {
      long double norm = 0;
      long double rest = 0;
      for (std::size_t column = 0; column < w.columns; ++column) {
        const long double weight = weight_at(w, row, column);
        const long double error =
            weight - static_cast<long double>(copy.scales[row]) * code_at(copy, row, column);
        norm += weight * weight;
        rest += error * error;
      }
      EXPECT_GE(static_cast<long double>(copy.norms[row]), std::sqrt(norm));
      EXPECT_GE(static_cast<long double>(copy.rests[row]), std::sqrt(rest));
      if (copy.norms[row] == kInfinity) continue;
      EXPECT_LE(static_cast<long double>(copy.norms[row]), std::sqrt(norm) * 1.00001L + 0x1p-110L);
      EXPECT_LE(static_cast<long double>(copy.rests[row]), std::sqrt(rest) * 1.00001L + 0x1p-110L);
    }
  }
}

TEST(CoarseMatrixTest, TakesTheMemoryThatItStates) {
  RandomValues random(1);
  for (const auto& [rows, columns] : {std::pair{1, 1}, {16, 32}, {17, 33}, {1000, 127}}) {
    const auto row_count = static_cast<std::size_t>(rows);
    const auto column_count = static_cast<std::size_t>(columns);
    const CoarseMatrix copy =
        copy_of(random_weights(row_count, column_count, Spread::kUsual, random));
    const std::size_t floats = copy.scales.size() + copy.norms.size() + copy.rests.size();
    EXPECT_EQ(coarse_bytes(row_count, column_count),
              tensor::AlignedBuffer::taken_bytes(copy.codes.size()) + floats * sizeof(float));
  }
}

TEST(CoarseMatrixTest, HasNoBoundForRowsThatAreNotFinite) {
  for (const float odd : {kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN()}) {
    RandomValues random(3);
    RandomMatrix matrix = random_matrix(WeightFormat::kBf16, 20, 40, Spread::kUsual, random);
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(odd);
    matrix.values[(7 * 40 + 11) * 2] = static_cast<std::byte>(bits >> 16);
    matrix.values[(7 * 40 + 11) * 2 + 1] = static_cast<std::byte>(bits >> 24);
    const CoarseMatrix copy = copy_of(matrix.packed());
    std::vector<float> x(40, 0.0f);
    const CoarseRows zero = coarse_rows(rows_of(x, 40), 40);
    EXPECT_EQ(CoarseBound(copy, zero, 0).upper(7, 0), kInfinity);
    EXPECT_LT(CoarseBound(copy, zero, 0).upper(6, 0), 1.0);
    x[5] = odd;
    const CoarseRows not_finite = coarse_rows(rows_of(x, 40), 40);
    EXPECT_EQ(CoarseBound(copy, not_finite, 0).upper(6, 0), kInfinity);
  }
}

TEST(CoarseMatrixTest, SplitsCodesOfActivationsIntoTwoPlanes) {
  RandomValues random(5);
  for (int s = 0; s < static_cast<int>(Spread::kCount); ++s) {
    const std::vector<float> x = random.values(3 * 101, static_cast<Spread>(s));
    const CoarseRows rows = coarse_rows(rows_of(x, 101), 101);
    for (std::size_t token = 0; token < 3; ++token) {
      std::int64_t sum = 0;
      for (std::size_t k = 0; k < rows.quads * kCoarseQuad; ++k) {
        const int code = rows.token_codes(token)[k];
        const std::int8_t* plane =
            rows.token_planes(token) + k / kCoarseQuad * kCoarseQuad * 2 + k % kCoarseQuad;
        EXPECT_EQ(plane[0] * 128 + plane[kCoarseQuad], code);
        sum += code;
        const double value = k < 101 ? x[token * 101 + k] : 0.0;
        EXPECT_LE(std::fabs(value - rows.scales[token] * code),
                  rows.scales[token] * 0.50001 + 0x1p-100);
      }
      EXPECT_EQ(rows.sums[token], sum);
    }
  }
}

// Every output of the plain kernel is below its bound, and the bound of usual values is not idle.
void expect_bounded(Spread spread, std::size_t columns) {
  constexpr std::size_t kRows = 64;
  RandomValues random(static_cast<std::uint32_t>(spread) * 1000 + 7);
  const WeightMatrix w = random_weights(kRows, columns, spread, random);
  const std::vector<float> x = random.values(2 * columns, spread);
  const CoarseMatrix copy = copy_of(w);
  const CoarseRows rows = coarse_rows(rows_of(x, columns), columns);
  std::vector<std::int64_t> sums(2 * kRows);
  std::vector<float> out(2 * kRows);
  reference_kernels().coarse_sums(copy, rows, 0, w.row_groups(), sums.data());
  reference_kernels().matmul_groups(w, rows_of(x, columns), out.data(), kRows, 0, w.row_groups());
  for (std::size_t i = 0; i < out.size(); ++i) {
    const double upper = CoarseBound(copy, rows, i / kRows).upper(i % kRows, sums[i]);
    if (upper == HUGE_VAL) continue;
    ASSERT_GE(upper, static_cast<double>(out[i])) << "row " << i % kRows << " of " << columns;
    const double size = rows.norms[i / kRows] * static_cast<double>(copy.norms[i % kRows]);
    const double slack = spread == Spread::kUsual ? size * 0.03 + 0x1p-90 : HUGE_VAL;
    EXPECT_LE(upper - static_cast<double>(out[i]), slack);
  }
}

TEST(CoarseMatrixTest, BoundsEveryOutput) {
  for (int s = 0; s < static_cast<int>(Spread::kCount); ++s) {
    for (const std::size_t columns : {1, 31, 64, 200, 1000}) {
      expect_bounded(static_cast<Spread>(s), columns);
    }
  }
}

// Weights that are codes themselves, and activations whose codes are all zero but for one that
// meets no weight: the whole output is what the activations lose.
TEST(CoarseMatrixTest, BoundsWhatTheCodesOfActivationsLose) {
  constexpr std::size_t kColumns = 64;
  RandomMatrix matrix = {.format = WeightFormat::kBf16,
                         .rows = 1,
                         .columns = kColumns,
                         .values = std::vector<std::byte>(2 * kColumns),
                         .scales = {}};
  std::vector<float> x(kColumns, 0.4f);
  x[0] = 1e6f;
  for (std::size_t k = 1; k < kColumns; ++k) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(128.0f - static_cast<float>(k));
    matrix.values[2 * k] = static_cast<std::byte>(bits >> 16);
    matrix.values[2 * k + 1] = static_cast<std::byte>(bits >> 24);
  }
  const WeightMatrix w = matrix.packed();
  const CoarseMatrix copy = copy_of(w);
  const CoarseRows rows = coarse_rows(rows_of(x, kColumns), kColumns);
  EXPECT_EQ(copy.scales[0], 1.0f);
  EXPECT_LT(copy.rests[0], 1e-6f);
  std::vector<std::int64_t> sums(kCoarseLanes);
  std::vector<float> out(1);
  reference_kernels().coarse_sums(copy, rows, 0, 1, sums.data());
  reference_kernels().matmul_groups(w, rows_of(x, kColumns), out.data(), 1, 0, 1);
  EXPECT_EQ(sums[0], 0);
  EXPECT_GT(out[0], 0.4f * 63.0f * 63.0f);
  EXPECT_GE(CoarseBound(copy, rows, 0).upper(0, sums[0]), static_cast<double>(out[0]));
}

class CoarseSumsTest : public ::testing::TestWithParam<const KernelTable*> {
 protected:
  // For all row groups from each on.
  static void expect_same_from_every_group(const CoarseMatrix& copy, const CoarseRows& x) {
    for (std::size_t first = 0; first <= copy.row_groups(); ++first) expect_same(copy, x, first);
  }

  static void expect_same(const CoarseMatrix& copy, const CoarseRows& x, std::size_t first) {
    const std::size_t last = copy.row_groups();
    constexpr std::int64_t kUntouched = -12345;
    std::vector<std::int64_t> expected(x.tokens * (last - first) * kCoarseLanes + 1, kUntouched);
    std::vector<std::int64_t> actual = expected;
    reference_kernels().coarse_sums(copy, x, first, last, expected.data());
    GetParam()->coarse_sums(copy, x, first, last, actual.data());
    EXPECT_EQ(actual, expected) << copy.rows << " x " << copy.columns << ", " << x.tokens;
    EXPECT_EQ(actual.back(), kUntouched);
  }
};

TEST_P(CoarseSumsTest, AreThoseOfTheReferenceForEveryCountOfColumns) {
  RandomValues random(1);
  for (std::size_t columns = 1; columns <= 70; ++columns) {
    const CoarseMatrix copy = copy_of(random_weights(33, columns, Spread::kUsual, random));
    const std::vector<float> x = random.values(3 * columns, Spread::kUsual);
    expect_same(copy, coarse_rows(rows_of(x, columns), columns), 0);
  }
}

TEST_P(CoarseSumsTest, AreThoseOfTheReferenceForEveryCountOfTokensAndRows) {
  RandomValues random(2);
  for (std::size_t tokens = 1; tokens <= kMostCoarseRows; ++tokens) {
    for (const std::size_t rows : {1, 15, 16, 17, 80}) {
      for (const std::size_t columns : {512, 516, 1300}) {
        const CoarseMatrix copy = copy_of(random_weights(rows, columns, Spread::kUsual, random));
        const std::vector<float> x = random.values(tokens * columns, Spread::kUsual);
        expect_same_from_every_group(copy, coarse_rows(rows_of(x, columns), columns));
      }
    }
  }
}

TEST_P(CoarseSumsTest, HaveRoomForTheLargestSums) {
  for (const float sign : {1.0f, -1.0f}) {
    RandomMatrix matrix = {.format = WeightFormat::kBf16,
                           .rows = 2,
                           .columns = kMostCoarseColumns,
                           .values = {},
                           .scales = {}};
    // 1 and -1 in bfloat16.
    for (std::size_t i = 0; i < 2 * kMostCoarseColumns; ++i) {
      matrix.values.push_back(std::byte{0x80});
      matrix.values.push_back(i < kMostCoarseColumns ? std::byte{0x3F} : std::byte{0xBF});
    }
    const CoarseMatrix copy = copy_of(matrix.packed());
    const std::vector<float> x(3 * kMostCoarseColumns, sign);
    const CoarseRows coded = coarse_rows(rows_of(x, kMostCoarseColumns), kMostCoarseColumns);
    expect_same(copy, coded, 0);
    std::vector<std::int64_t> sums(3 * kCoarseLanes);
    GetParam()->coarse_sums(copy, coded, 0, 1, sums.data());
    EXPECT_EQ(sums[0], std::int64_t{127} * 16256 * 65536 * static_cast<int>(sign));
    EXPECT_EQ(sums[1], -sums[0]);
  }
}

INSTANTIATE_TEST_SUITE_P(Tables, CoarseSumsTest, ::testing::ValuesIn(fast_tables()), table_name);

}  // namespace
}  // namespace locket::kernels
