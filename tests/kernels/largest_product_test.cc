// The search agrees with the whole product on everything that could lead it astray.
#include "kernels/largest_product.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <vector>

#include "kernels/kernel_table.h"
#include "numerics/bf16.h"
#include "tests/support/kernel_data.h"

namespace locket::kernels {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Weights [rows][columns] as bfloat16.
WeightMatrix packed(const std::vector<std::vector<float>>& rows) {
  RandomMatrix matrix = {.format = WeightFormat::kBf16,
                         .rows = rows.size(),
                         .columns = rows.front().size(),
                         .values = {},
                         .scales = {}};
  for (const auto& row : rows) {
    for (const float value : row) {
      const std::uint16_t bits = numerics::to_bf16(value).bits;
      matrix.values.push_back(static_cast<std::byte>(bits));
      matrix.values.push_back(static_cast<std::byte>(bits >> 8));
    }
  }
  return matrix.packed();
}

// The search goes through the active table.
class LargestProductTest : public ::testing::TestWithParam<const KernelTable*> {
 protected:
  void SetUp() override { set_active_kernels(GetParam()); }
  void TearDown() override { set_active_kernels(nullptr); }

  std::vector<LargestProduct> search(const WeightMatrix& w, const ActivationRows& x) {
    return largest_products(w, coarse_copy(w, workers_), x, workers_);
  }

  // Returns how many outputs were computed.
  std::size_t expect_same(const WeightMatrix& w, const std::vector<float>& x,
                          ActivationValues values = ActivationValues::kF32) {
    const ActivationRows rows = {
        .data = x.data(), .stride = w.columns, .tokens = x.size() / w.columns, .values = values};
    std::vector<float> outputs(rows.tokens * w.rows);
    reference_kernels().matmul_groups(w, rows, outputs.data(), w.rows, 0, w.row_groups());
    const std::vector<LargestProduct> found = search(w, rows);
    EXPECT_EQ(found.size(), rows.tokens);
    std::size_t computed = 0;
    for (std::size_t token = 0; token < rows.tokens; ++token) {
      const LargestProduct all = find_largest(std::span(outputs).subspan(token * w.rows, w.rows));
      EXPECT_EQ(found[token].row, all.row);
      EXPECT_EQ(std::bit_cast<std::uint32_t>(found[token].value),
                std::bit_cast<std::uint32_t>(all.value));
      EXPECT_EQ(found[token].broken, all.broken);
      EXPECT_EQ(all.computed, w.rows);
      computed += found[token].computed;
    }
    return computed;
  }

 private:
  WorkerPool workers_{2};
};

std::vector<std::vector<float>> normal_rows(std::size_t count, std::size_t columns,
                                            std::uint32_t seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal;
  std::vector<std::vector<float>> rows(count, std::vector<float>(columns));
  for (auto& row : rows) {
    for (float& value : row) value = numerics::round_to_bf16(normal(engine));
  }
  return rows;
}

TEST(FindLargestTest, TakesTheLowestOfEqualOnesAndLeavesOutWhatIsBroken) {
  EXPECT_EQ(find_largest(std::vector<float>{1, 3, 3, 2}).row, 1u);
  EXPECT_EQ(find_largest(std::vector<float>{-0.0f, 0.0f}).row, 0u);
  EXPECT_EQ(find_largest(std::vector<float>{-kInfinity, -5}).row, 1u);
  const LargestProduct found = find_largest(std::vector<float>{kNan, -1, kInfinity, -2});
  EXPECT_EQ(found.row, 1u);
  EXPECT_EQ(found.value, -1.0f);
  EXPECT_EQ(found.broken, 2u);
  const LargestProduct none = find_largest(std::vector<float>{kNan, -kInfinity});
  EXPECT_EQ(none.row, 2u);
  EXPECT_EQ(none.broken, 1u);
}

TEST_P(LargestProductTest, AgreesOnRandomMatricesOfEveryRange) {
  for (int s = 0; s < static_cast<int>(Spread::kCount); ++s) {
    const auto spread = static_cast<Spread>(s);
    RandomValues random(static_cast<std::uint32_t>(s) + 1);
    for (const std::size_t rows : {1, 16, 31, 300}) {
      for (const std::size_t columns : {1, 33, 96, 258}) {
        const WeightMatrix w =
            random_matrix(WeightFormat::kBf16, rows, columns, spread, random).packed();
        expect_same(w, random.values(columns, spread));
        expect_same(w, random.values(8 * columns, spread));
        expect_same(w, random.bf16_values(columns, spread), ActivationValues::kBf16);
        expect_same(w, random.bf16_values(8 * columns, spread), ActivationValues::kBf16);
      }
    }
  }
}

TEST_P(LargestProductTest, TakesTheLowestOfEqualRows) {
  auto rows = normal_rows(400, 128, 1);
  const std::vector<float> x = rows[77];
  for (const std::size_t copy : {90, 200, 399}) rows[copy] = rows[77];
  expect_same(packed(rows), x);
  // A matrix of nothing but equal rows.
  expect_same(packed(std::vector<std::vector<float>>(100, rows[0])), x);
}

// Rows that differ from the best one by a last place: their bounds cannot tell them apart.
TEST_P(LargestProductTest, TellsNearlyEqualRowsApart) {
  for (std::uint32_t seed = 0; seed < 30; ++seed) {
    auto rows = normal_rows(200, 160, seed);
    const std::vector<float> x = normal_rows(1, 160, seed + 100).front();
    std::mt19937 engine(seed);
    for (std::size_t row = 1; row < rows.size(); row += 3) {
      rows[row] = x;
      float& changed = rows[row][engine() % 160];
      changed = numerics::round_to_bf16(changed * (1.0f + 0x1p-7f));
    }
    expect_same(packed(rows), x, ActivationValues::kBf16);
  }
}

TEST_P(LargestProductTest, AgreesOnZeros) {
  const auto rows = normal_rows(50, 64, 1);
  const WeightMatrix zeros = packed(std::vector<std::vector<float>>(50, std::vector<float>(64)));
  expect_same(packed(rows), std::vector<float>(2 * 64));
  expect_same(packed(rows), std::vector<float>(64, -0.0f));
  expect_same(zeros, rows[0]);
  expect_same(zeros, std::vector<float>(64));
}

TEST_P(LargestProductTest, CountsWhatIsBrokenAsTheWholeProductDoes) {
  for (const float odd : {kInfinity, -kInfinity, kNan, 3e38f, -3e38f}) {
    auto rows = normal_rows(120, 64, 2);
    const std::vector<float> usual = normal_rows(1, 64, 3).front();
    rows[70][9] = odd;
    rows[100] = std::vector<float>(64, odd);
    expect_same(packed(rows), usual);
    std::vector<float> x = usual;
    x[9] = odd;
    expect_same(packed(rows), x);
    expect_same(packed(normal_rows(120, 64, 2)), x);
    x.assign(64, odd);
    expect_same(packed(rows), x);
  }
}

// One column dwarfs all others in weights or activations: codes of the others lose their bits.
TEST_P(LargestProductTest, AgreesWhereOneColumnDwarfsTheOthers) {
  for (const float factor : {1e2f, 1e4f, 1e8f, 1e30f}) {
    auto rows = normal_rows(300, 96, 4);
    std::vector<float> x = normal_rows(1, 96, 5).front();
    x[7] *= factor;
    expect_same(packed(rows), x);
    for (auto& row : rows) row[7] = 0.0f;
    expect_same(packed(rows), x);
    for (auto& row : rows) row[50] *= factor;
    expect_same(packed(rows), x);
    x[50] = 0.0f;
    expect_same(packed(rows), x);
  }
}

TEST_P(LargestProductTest, AgreesOnManyTextsOfARandomHead) {
  const WeightMatrix w = packed(normal_rows(1000, 256, 6));
  for (std::uint32_t seed = 0; seed < 4; ++seed) {
    std::vector<float> x;
    for (const auto& row : normal_rows(8, 256, seed + 50))
      x.insert(x.end(), row.begin(), row.end());
    expect_same(w, x, ActivationValues::kBf16);
  }
}

TEST_P(LargestProductTest, ComputesFewRowsWhereOneStandsOut) {
  const auto rows = normal_rows(2000, 256, 7);
  std::vector<float> x = normal_rows(1, 256, 8).front();
  for (std::size_t k = 0; k < x.size(); ++k) x[k] += rows[1234][k];
  const std::size_t computed = expect_same(packed(rows), x);
  EXPECT_EQ(computed, kCoarseLanes);
}

INSTANTIATE_TEST_SUITE_P(Tables, LargestProductTest, ::testing::ValuesIn(available_kernels()),
                         table_name);

}  // namespace
}  // namespace locket::kernels
