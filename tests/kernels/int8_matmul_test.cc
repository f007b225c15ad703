#include "kernels/int8_matmul.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "kernels/kernel_table.h"
#include "tests/support/kernel_data.h"

namespace locket::kernels {
namespace {

constexpr float kUntouched = -12345.0f;
constexpr std::size_t kLaneRows = 16;

struct Shape {
  std::size_t rows;
  std::size_t columns;
  std::size_t tokens;
  std::size_t padding;  // floats between rows of results
};

Int8Matrix quantized(const KernelTable& table, std::span<const float> x, std::size_t columns) {
  Int8Matrix matrix(x.size() / columns, columns);
  for (std::size_t t = 0; t < matrix.tokens(); ++t) {
    table.int8.quantize_row(x.subspan(t * columns, columns), matrix.row(t));
  }
  return matrix;
}

std::vector<float> multiply(const KernelTable& table, const WeightMatrix& w, const Int8Rows& x,
                            std::size_t padding) {
  const std::size_t stride = w.rows + padding;
  std::vector<float> out(x.tokens * stride + 16, kUntouched);
  table.int8.matmul_groups(w, x, out.data(), stride, 0, w.row_groups());
  EXPECT_TRUE(computes_denormals());
  return out;
}

// FP4 weights whose scale codes per row and block come from `code(row, block)`.
template <class Code>
WeightMatrix scaled_matrix(std::size_t rows, std::size_t columns, RandomValues& random,
                           const Code& code) {
  RandomMatrix matrix = random_matrix(WeightFormat::kFp4, rows, columns, Spread::kUsual, random);
  const std::size_t blocks = columns / 32;
  for (std::size_t i = 0; i < matrix.scales.size(); ++i) {
    matrix.scales[i] = static_cast<std::byte>(code(i / blocks, i % blocks));
  }
  return matrix.packed();
}

class Int8MatmulTest : public ::testing::TestWithParam<const KernelTable*> {
 protected:
  void expect_same_product(const WeightMatrix& w, std::span<const float> x, std::size_t padding) {
    const Int8Matrix rows = quantized(reference_kernels(), x, w.columns);
    const auto expected = multiply(reference_kernels(), w, rows.rows(), padding);
    const auto actual = multiply(*GetParam(), w, rows.rows(), padding);
    EXPECT_TRUE(same_bits(actual, expected))
        << w.rows << " x " << w.columns << ", " << rows.tokens() << " tokens";
  }

  void expect_same(const Shape& shape, Spread weights, Spread activations) {
    RandomValues random(static_cast<std::uint32_t>(shape.rows * 1000 + shape.columns));
    const WeightMatrix w =
        random_matrix(WeightFormat::kFp4, shape.rows, shape.columns, weights, random).packed();
    expect_same_product(w, random.values(shape.tokens * shape.columns, activations), shape.padding);
  }
};

TEST_P(Int8MatmulTest, QuantizesToTheReferenceBits) {
  for (int s = 0; s < static_cast<int>(Spread::kCount); ++s) {
    RandomValues random(static_cast<std::uint32_t>(s));
    for (const std::size_t columns : {1, 7, 31, 32, 96, 127, 128, 129, 160, 256, 300, 512}) {
      std::vector<float> x = random.values(columns + 1, static_cast<Spread>(s));
      const std::span<const float> values = std::span(x).subspan(1);
      const Int8Matrix expected = quantized(reference_kernels(), values, columns);
      const Int8Matrix actual = quantized(*GetParam(), values, columns);
      const Int8Rows a = actual.rows();
      const Int8Rows e = expected.rows();
      EXPECT_TRUE(std::equal(a.codes, a.codes + a.groups() * kInt8GroupColumns, e.codes));
      EXPECT_TRUE(std::equal(a.offsets, a.offsets + a.groups() * kInt8GroupBlocks, e.offsets));
      EXPECT_TRUE(same_bits({a.scales, a.groups()}, {e.scales, e.groups()}));
    }
  }
}

TEST_P(Int8MatmulTest, QuantizesGroupsThatHaveNoScale) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const float odd : {kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN()}) {
    std::vector<float> x(384, 1.0f);
    x[140] = odd;
    std::fill(x.begin() + 256, x.end(), 1e-37f);
    const Int8Matrix matrix = quantized(*GetParam(), x, x.size());
    const Int8Rows rows = matrix.rows();
    EXPECT_EQ(rows.scales[0], 1.0f / 127.0f);
    EXPECT_EQ(rows.codes[0], 127);
    EXPECT_TRUE(std::isnan(rows.scales[1]));
    EXPECT_EQ(rows.scales[2], 0.0f);
    EXPECT_TRUE(std::all_of(rows.codes + 128, rows.codes + 384, [](auto c) { return c == 0; }));
    EXPECT_TRUE(std::all_of(rows.offsets + 4, rows.offsets + 12, [](auto c) { return c == 0; }));
  }
}

TEST_P(Int8MatmulTest, HasTheReferenceBitsForEveryCountOfColumns) {
  for (const std::size_t columns : {32, 64, 96, 128, 160, 192, 224, 256, 288, 544, 1152}) {
    for (const std::size_t tokens : {1, 3, 9, 21}) {
      expect_same({33, columns, tokens, 3}, Spread::kUsual, Spread::kUsual);
    }
  }
}

TEST_P(Int8MatmulTest, HasTheReferenceBitsForEveryCountOfRows) {
  for (std::size_t rows = 1; rows <= 50; ++rows) {
    for (const std::size_t tokens : {1, 5, 18}) {
      expect_same({rows, 224, tokens, rows % 3}, Spread::kUsual, Spread::kUsual);
    }
  }
}

TEST_P(Int8MatmulTest, HasTheReferenceBitsForEveryCountOfTokens) {
  for (std::size_t tokens = 0; tokens <= 70; ++tokens) {
    expect_same({48, 160, tokens, tokens % 2}, Spread::kUsual, Spread::kUsual);
  }
  for (const std::size_t tokens : {127, 128, 129, 191, 193, 400}) {
    expect_same({17, 160, tokens, 0}, Spread::kUsual, Spread::kUsual);
  }
}

TEST_P(Int8MatmulTest, HasTheReferenceBitsForExtremeScalesAndValues) {
  for (int w = 0; w < static_cast<int>(Spread::kCount); ++w) {
    for (int x = 0; x < static_cast<int>(Spread::kCount); ++x) {
      for (const std::size_t tokens : {1, 2, 5, 9, 35}) {
        expect_same({37, 288, tokens, 0}, static_cast<Spread>(w), static_cast<Spread>(x));
      }
    }
  }
}

std::vector<unsigned> spans_of_interest() {
  std::vector<unsigned> spans(40);
  std::iota(spans.begin(), spans.end(), 0U);
  for (const unsigned span : {53U, 106U, 159U, 212U, 254U}) spans.push_back(span);
  return spans;
}

// Every way to add the blocks meets its neighbour: folded to 3, integers to 12, then double, beside
// the lowest codes; in one row group, and lane by lane.
TEST_P(Int8MatmulTest, HasTheReferenceBitsForEverySpanOfScales) {
  RandomValues random(11);
  for (const std::size_t tokens : {1, 4, 8, 20}) {
    const std::vector<float> x = random.values(tokens * 256, Spread::kUsual);
    for (const unsigned span : spans_of_interest()) {
      for (const unsigned wanted : {0U, 1U, 2U, 4U, 5U, 100U, 254U}) {
        const unsigned lowest = std::min(wanted, 254U - span);
        const auto same = scaled_matrix(16, 256, random, [&](std::size_t, std::size_t block) {
          return block % 4 == 1 ? lowest + span : lowest + random.below(span + 1);
        });
        expect_same_product(same, x, 0);
        const auto one = scaled_matrix(40, 256, random, [&](std::size_t row, std::size_t block) {
          return row == 5 && block == 2 ? lowest + span : lowest;
        });
        expect_same_product(one, x, 0);
      }
    }
  }
}

TEST_P(Int8MatmulTest, HasTheReferenceBitsAtTheLargestSums) {
  RandomMatrix matrix{
      .format = WeightFormat::kFp4, .rows = 16, .columns = 256, .values = {}, .scales = {}};
  for (const unsigned code : {0x77u, 0xFFu}) {
    matrix.values.assign(16 * 128, static_cast<std::byte>(code));
    for (const unsigned top : {120u, 123u, 132u, 133u}) {
      matrix.scales.assign(16 * 8, static_cast<std::byte>(top));
      for (std::size_t i = 0; i < matrix.scales.size(); i += 4) matrix.scales[i] = std::byte{120};
      for (const float value : {3.0f, -3.0f}) {
        expect_same_product(matrix.packed(), std::vector<float>(20 * 256, value), 0);
        expect_same_product(matrix.packed(), std::vector<float>(256, value), 0);
      }
    }
  }
}

TEST_P(Int8MatmulTest, PropagatesNaN) {
  RandomValues random(4);
  for (const std::size_t tokens : {1, 24}) {
    std::vector<float> x = random.values(tokens * 256, Spread::kUsual);
    x[200] = std::numeric_limits<float>::infinity();
    const WeightMatrix w =
        random_matrix(WeightFormat::kFp4, 32, 256, Spread::kUsual, random).packed();
    expect_same_product(w, x, 0);
    const Int8Matrix rows = quantized(*GetParam(), x, 256);
    const auto out = multiply(*GetParam(), w, rows.rows(), 0);
    EXPECT_TRUE(std::all_of(out.begin(), out.begin() + 32, [](float v) { return std::isnan(v); }));
    EXPECT_TRUE(std::isfinite(out[32]));  // the next token, or what was there
  }
}

TEST_P(Int8MatmulTest, ComputesOnlyTheRowGroupsAskedFor) {
  RandomValues random(3);
  const WeightMatrix w =
      random_matrix(WeightFormat::kFp4, 70, 160, Spread::kUsual, random).packed();
  for (const std::size_t tokens : {1, 24}) {
    const Int8Matrix x =
        quantized(reference_kernels(), random.values(tokens * 160, Spread::kUsual), 160);
    std::vector<float> whole(tokens * 70, kUntouched);
    std::vector<float> parts(tokens * 70, kUntouched);
    reference_kernels().int8.matmul_groups(w, x.rows(), whole.data(), 70, 0, 5);
    GetParam()->int8.matmul_groups(w, x.rows(), parts.data(), 70, 1, 4);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const bool asked = i % 70 >= kLaneRows && i % 70 < 4 * kLaneRows;
      EXPECT_EQ(parts[i], asked ? whole[i] : kUntouched);
    }
    GetParam()->int8.matmul_groups(w, x.rows(), parts.data(), 70, 0, 1);
    GetParam()->int8.matmul_groups(w, x.rows(), parts.data(), 70, 4, 5);
    EXPECT_TRUE(same_bits(parts, whole));
  }
}

INSTANTIATE_TEST_SUITE_P(Tables, Int8MatmulTest, ::testing::ValuesIn(fast_tables()), table_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Int8MatmulTest);

// Weights at their places, codes at theirs, against a sum written without either.
TEST(Int8MatmulReferenceTest, IsTheExactProductOfCodesAndWeights) {
  RandomValues random(8);
  const WeightMatrix w =
      random_matrix(WeightFormat::kFp4, 20, 224, Spread::kUsual, random).packed();
  const std::vector<float> x = random.values(2 * 224, Spread::kUsual);
  const Int8Matrix rows = quantized(reference_kernels(), x, 224);
  const auto out = multiply(reference_kernels(), w, rows.rows(), 0);
  for (std::size_t i = 0; i < 2 * 20; ++i) {
    const std::size_t t = i / 20;
    double sum = 0.0;
    for (std::size_t k = 0; k < 224; ++k) {
      const std::size_t group = k / 128;
      float largest = 0.0f;
      for (std::size_t j = group * 128; j < std::min<std::size_t>(224, group * 128 + 128); ++j) {
        largest = std::max(largest, std::fabs(x[t * 224 + j]));
      }
      const double scale = largest / 127.0f;
      sum += std::nearbyint(x[t * 224 + k] / static_cast<float>(scale)) * scale *
             static_cast<double>(weight_at(w, i % 20, k));
    }
    EXPECT_NEAR(out[i], sum, 1e-6 * (1.0 + std::fabs(sum)));
  }
}

TEST(Int8MatmulReferenceTest, IsWithinOnePercentOfTheExactProduct) {
  std::mt19937 engine(7);
  std::normal_distribution<float> normal;
  RandomValues random(9);
  const WeightMatrix w =
      random_matrix(WeightFormat::kFp4, 96, 2304, Spread::kUsual, random).packed();
  std::vector<float> x(2304);
  for (float& value : x) value = normal(engine);
  const Int8Matrix rows = quantized(reference_kernels(), x, x.size());
  const auto out = multiply(reference_kernels(), w, rows.rows(), 0);
  double error = 0.0;
  double size = 0.0;
  for (std::size_t n = 0; n < w.rows; ++n) {
    double exact = 0.0;
    for (std::size_t k = 0; k < x.size(); ++k) {
      exact += static_cast<double>(x[k]) * static_cast<double>(weight_at(w, n, k));
    }
    error += (out[n] - exact) * (out[n] - exact);
    size += exact * exact;
  }
  EXPECT_LT(std::sqrt(error / size), 0.01);
  EXPECT_GT(std::sqrt(error / size), 0.0001);
}

TEST(Int8MatrixTest, CopiesRowsWithEverythingTheyHave) {
  RandomValues random(2);
  const std::vector<float> x = random.values(3 * 160, Spread::kUsual);
  const Int8Matrix all = quantized(reference_kernels(), x, 160);
  Int8Matrix some(7, 512);  // larger than what follows
  some.resize(2, 160);
  some.copy_row(all.rows(), 2, 0);
  some.copy_row(all.rows(), 0, 1);
  const WeightMatrix w =
      random_matrix(WeightFormat::kFp4, 16, 160, Spread::kUsual, random).packed();
  const auto expected = multiply(reference_kernels(), w, all.rows(), 0);
  for (const KernelTable* table : available_kernels()) {
    const auto actual = multiply(*table, w, some.rows(), 0);
    EXPECT_TRUE(same_bits(std::span(actual).first(16), std::span(expected).subspan(32, 16)));
    EXPECT_TRUE(same_bits(std::span(actual).subspan(16, 16), std::span(expected).first(16)));
  }
}

TEST(Int8MatmulPublicTest, GivesTheSameBitsWithAnyNumberOfThreads) {
  RandomValues random(5);
  const WeightMatrix w =
      random_matrix(WeightFormat::kFp4, 100, 160, Spread::kUsual, random).packed();
  for (const std::size_t tokens : {3, 40}) {
    const std::vector<float> x = random.values(tokens * 160, Spread::kUsual);
    Int8Matrix rows(tokens, 160);
    for (std::size_t t = 0; t < tokens; ++t) {
      quantize_int8(std::span(x).subspan(t * 160, 160), rows.row(t));
    }
    std::vector<float> expected(tokens * 100);
    reference_kernels().int8.matmul_groups(w, rows.rows(), expected.data(), 100, 0, 7);
    for (const std::size_t threads : {1, 2, 3, 8}) {
      WorkerPool workers(threads);
      std::vector<float> out(tokens * 100);
      int8_matmul(w, rows.rows(), out.data(), 100, workers);
      EXPECT_TRUE(same_bits(out, expected)) << threads;
    }
  }
}

}  // namespace
}  // namespace locket::kernels
