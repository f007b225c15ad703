#include "kernels/matmul.h"

#include <array>
#include <bit>
#include <cmath>
#include <gtest/gtest.h>
#include <vector>

#include "kernels/kernel_table.h"
#include "numerics/fp4_e2m1.h"
#include "numerics/fp8_e4m3.h"
#include "tests/support/kernel_data.h"
#include "tests/support/sanitizer.h"

namespace locket::kernels {
namespace {

constexpr float kUntouched = -12345.0f;

struct Shape {
  std::size_t rows;
  std::size_t columns;
  std::size_t tokens;
  std::size_t misalignment;  // floats before the activations and the results
  std::size_t padding;       // floats between rows of activations and of results
};

struct Product {
  std::vector<float> out;  // [tokens, rows + padding], with everything around it
};

Product multiply(const KernelTable& table, const WeightMatrix& w, const Shape& shape,
                 std::span<const float> x, ActivationValues values) {
  const std::size_t out_stride = shape.rows + shape.padding;
  Product product;
  product.out.assign(shape.misalignment + shape.tokens * out_stride + 16, kUntouched);
  const ActivationRows rows{.data = x.data() + shape.misalignment,
                            .stride = shape.columns + shape.padding,
                            .tokens = shape.tokens,
                            .values = values};
  table.matmul_groups(w, rows, product.out.data() + shape.misalignment, out_stride, 0,
                      w.row_groups());
  EXPECT_TRUE(computes_denormals());
  return product;
}

class MatmulTest : public ::testing::TestWithParam<const KernelTable*> {
 protected:
  void expect_same(WeightFormat format, const Shape& shape, Spread weights, Spread activations) {
    RandomValues random(static_cast<std::uint32_t>(shape.rows * 1000 + shape.columns));
    const WeightMatrix w =
        random_matrix(format, shape.rows, shape.columns, weights, random).packed();
    const std::size_t count = shape.misalignment + shape.tokens * (shape.columns + shape.padding);
    for (const ActivationValues values : {ActivationValues::kF32, ActivationValues::kBf16}) {
      const std::vector<float> x = values == ActivationValues::kBf16
                                       ? random.bf16_values(count, activations)
                                       : random.values(count, activations);
      const Product expected = multiply(reference_kernels(), w, shape, x, values);
      const Product actual = multiply(*GetParam(), w, shape, x, values);
      EXPECT_TRUE(same_bits(actual.out, expected.out))
          << format_name(format) << " " << shape.rows << " x " << shape.columns << ", "
          << shape.tokens << " tokens, activations " << static_cast<int>(values);
    }
  }
};

constexpr std::array kSpreads = {Spread::kUsual, Spread::kTiny, Spread::kHuge, Spread::kDenormal};

std::vector<std::size_t> column_counts(WeightFormat format) {
  if (needs_whole_groups(format)) return {32, 64, 96, 288, 544};
  return {1, 5, 8, 31, 32, 33, 40, 64, 100, 257, 544};
}

TEST_P(MatmulTest, HasTheReferenceBitsForEveryCountOfColumns) {
  for (const WeightFormat format : kWeightFormats) {
    for (const std::size_t columns : column_counts(format)) {
      for (const std::size_t tokens : {1, 3, 6, 9}) {
        expect_same(format, {33, columns, tokens, 1, 3}, Spread::kUsual, Spread::kUsual);
      }
    }
  }
}

TEST_P(MatmulTest, HasTheReferenceBitsForEveryCountOfRows) {
  for (const WeightFormat format : kWeightFormats) {
    for (std::size_t rows = 1; rows <= 50; ++rows) {
      for (const std::size_t tokens : {1, 5}) {
        expect_same(format, {rows, 96, tokens, rows % 4, rows % 3}, Spread::kUsual, Spread::kUsual);
      }
    }
  }
}

TEST_P(MatmulTest, HasTheReferenceBitsForEveryCountOfTokens) {
  for (const WeightFormat format : kWeightFormats) {
    for (std::size_t tokens = 0; tokens <= 40; ++tokens) {
      expect_same(format, {48, 64, tokens, tokens % 5, tokens % 2}, Spread::kUsual, Spread::kUsual);
    }
  }
}

TEST_P(MatmulTest, CutsManyTokensIntoBlocks) {
  for (const WeightFormat format : kWeightFormats) {
    expect_same(format, {17, 32, 200, 0, 0}, Spread::kUsual, Spread::kUsual);
  }
}

TEST_P(MatmulTest, HasTheReferenceBitsForLongRows) {
  for (const WeightFormat format : {WeightFormat::kFp8, WeightFormat::kFp8F32}) {
    for (const std::size_t tokens : {1, 2, 7}) {
      expect_same(format, {85, 2101, tokens, 1, 1}, Spread::kUsual, Spread::kUsual);
    }
    expect_same(format, {100, 4096, 1, 3, 0}, Spread::kUsual, Spread::kUsual);
    expect_same(format, {3, 5120, 54, 0, 0}, Spread::kUsual, Spread::kUsual);
  }
}

// Kernels that apply scales to sums must notice the one that is too small for that.
TEST_P(MatmulTest, HasTheReferenceBitsBesideOneExtremeScale) {
  constexpr std::size_t kColumns = 2304;
  for (const WeightFormat format : {WeightFormat::kFp8, WeightFormat::kFp8F32}) {
    RandomValues random(21);
    RandomMatrix stored = random_matrix(format, 150, kColumns, Spread::kUsual, random);
    const std::size_t last = stored.scales.size() - 1;  // the exponent's byte of a float32
    stored.scales[last] = std::byte{0};
    stored.scales[last / 2 / 4 * 4 + 3] = std::byte{1};
    const WeightMatrix w = stored.packed();
    for (const std::size_t tokens : {1, 3, 6}) {
      const std::vector<float> x = random.bf16_values(tokens * kColumns, Spread::kUsual);
      const Shape shape = {150, kColumns, tokens, 0, 0};
      for (const ActivationValues values : {ActivationValues::kF32, ActivationValues::kBf16}) {
        EXPECT_TRUE(same_bits(multiply(*GetParam(), w, shape, x, values).out,
                              multiply(reference_kernels(), w, shape, x, values).out))
            << format_name(format) << ", " << tokens << " tokens";
      }
    }
  }
}

TEST_P(MatmulTest, HasTheReferenceBitsForExtremeScalesAndValues) {
  for (const WeightFormat format : kWeightFormats) {
    for (const Spread weights : kSpreads) {
      for (const Spread x : kSpreads) {
        expect_same(format, {37, 160, 1, 1, 0}, weights, x);
        expect_same(format, {37, 160, 2, 1, 0}, weights, x);
        expect_same(format, {37, 160, 5, 1, 0}, weights, x);
        expect_same(format, {37, 160, 9, 1, 0}, weights, x);
      }
    }
  }
}

// One row of weights given as float32, rounded to what `format` stores, with scales of this code.
WeightMatrix one_row(WeightFormat format, std::span<const float> weights, std::uint8_t scale) {
  RandomMatrix matrix{
      .format = format, .rows = 1, .columns = weights.size(), .values = {}, .scales = {}};
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const auto* bytes = reinterpret_cast<const std::byte*>(&weights[i]);
    if (format == WeightFormat::kF32) matrix.values.insert(matrix.values.end(), bytes, bytes + 4);
    if (format == WeightFormat::kBf16) {
      matrix.values.insert(matrix.values.end(), bytes + 2, bytes + 4);
    }
    if (format == WeightFormat::kFp8 || format == WeightFormat::kFp8F32) {
      matrix.values.push_back(std::byte{numerics::to_fp8_e4m3(weights[i]).code});
    }
    if (format == WeightFormat::kFp4 && i % 2 == 0) {
      matrix.values.push_back(std::byte{numerics::pack_fp4(numerics::to_fp4_e2m1(weights[i]),
                                                           numerics::to_fp4_e2m1(weights[i + 1]))});
    }
  }
  if (format == WeightFormat::kFp8F32) {
    const auto bytes =
        std::bit_cast<std::array<std::byte, 4>>(std::uint32_t{scale} << 23 | 0x2CCCCDu);
    matrix.scales.assign(bytes.begin(), bytes.end());
  } else if (tile_scale_bytes(format) != 0) {
    matrix.scales.assign((weights.size() + 31) / 32, std::byte{scale});
  }
  return matrix.packed();
}

float product_of(const KernelTable& table, const WeightMatrix& w, std::span<const float> x,
                 ActivationValues values) {
  const ActivationRows rows{.data = x.data(), .stride = x.size(), .tokens = 1, .values = values};
  float out = kUntouched;
  table.matmul_groups(w, rows, &out, 1, 0, 1);
  return out;
}

// 2^-126 minus a product between 2^-151 and 2^-150: with 24 bits below 2^-126 it is denormal,
// though it would round up to 2^-126 in the steps of the denormals.
TEST_P(MatmulTest, FlushesWhatIsDenormalAfterRoundingTo24Bits) {
  for (const float sign : {1.0f, -1.0f}) {
    for (int step = 0; step < 128; ++step) {
      std::vector<float> weights(32, 0.0f);
      std::vector<float> x(32, 0.0f);
      weights[4] = sign * 0x1p-63f;
      x[4] = 0x1p-63f;
      weights[0] = -sign * (1.0f + static_cast<float>(step) / 128.0f) * 0x1p-76f;
      x[0] = 0x1p-75f;
      const float expected = step == 0 ? sign * 0x1p-126f : 0.0f;
      for (const WeightFormat format : {WeightFormat::kBf16, WeightFormat::kF32}) {
        const WeightMatrix w = one_row(format, weights, 0);
        EXPECT_EQ(product_of(reference_kernels(), w, x, ActivationValues::kBf16), expected);
        EXPECT_EQ(product_of(*GetParam(), w, x, ActivationValues::kBf16), expected);
      }
    }
  }
}

// Two products that cancel but for their last bit, at the size of `exponent`.
std::vector<float> cancelling(std::uint32_t exponent, ActivationValues values) {
  const float one = std::bit_cast<float>(exponent << 23);
  std::vector<float> x(32, 0.0f);
  x[4] = one;
  x[0] = -one * (values == ActivationValues::kBf16 ? 1.0f + 0x1p-7f : 1.0f + 0x1p-23f);
  return x;
}

void expect_same_cancellation(const KernelTable& table, const WeightMatrix& w) {
  for (const ActivationValues values : {ActivationValues::kBf16, ActivationValues::kF32}) {
    for (std::uint32_t exponent = 1; exponent <= 254; exponent += exponent < 60 ? 1 : 20) {
      const std::vector<float> x = cancelling(exponent, values);
      ASSERT_TRUE(
          is_same(product_of(table, w, x, values), product_of(reference_kernels(), w, x, values)))
          << format_name(w.format) << ", exponent " << exponent;
    }
  }
}

TEST_P(MatmulTest, KeepsTheLastBitOfACancellationForEveryScale) {
  for (const WeightFormat format :
       {WeightFormat::kFp8, WeightFormat::kFp8F32, WeightFormat::kFp4}) {
    std::vector<float> weights(32, 0.0f);
    weights[0] = weights[4] = format == WeightFormat::kFp4 ? 0.5f : 0x1p-9f;
    const std::uint32_t step = test_support::runs_with_sanitizer() ? 9 : 1;
    for (std::uint32_t scale = 0; scale <= 254; scale += step) {
      SCOPED_TRACE(scale);
      expect_same_cancellation(*GetParam(),
                               one_row(format, weights, static_cast<std::uint8_t>(scale)));
    }
  }
}

// A total that was flushed to -0 keeps its sign if the last group is short.
TEST_P(MatmulTest, KeepsTheSignOfZeroBesidePaddedColumns) {
  std::vector<float> weights(65, 0.0f);
  std::vector<float> x(65, 0.0f);
  weights[0] = 0x1p-63f;
  x[0] = 0x1p-63f;
  weights[32] = -1.5f * 0x1p-63f;
  x[32] = 0x1p-63f;
  weights[64] = -0x1p-100f;
  x[64] = 0x1p-100f;
  for (const WeightFormat format : {WeightFormat::kBf16, WeightFormat::kF32}) {
    const WeightMatrix w = one_row(format, weights, 0);
    const float expected = product_of(reference_kernels(), w, x, ActivationValues::kBf16);
    EXPECT_TRUE(is_same(expected, -0.0f)) << expected;
    EXPECT_TRUE(is_same(product_of(*GetParam(), w, x, ActivationValues::kBf16), expected));
  }
}

TEST_P(MatmulTest, ComputesOnlyTheRowGroupsAskedFor) {
  RandomValues random(3);
  const WeightMatrix w = random_matrix(WeightFormat::kFp8, 70, 64, Spread::kUsual, random).packed();
  const std::vector<float> x = random.bf16_values(8 * 64, Spread::kUsual);
  for (const std::size_t tokens : {1, 8}) {
    const ActivationRows rows{
        .data = x.data(), .stride = 64, .tokens = tokens, .values = ActivationValues::kBf16};
    std::vector<float> whole(8 * 70, kUntouched);
    std::vector<float> parts(8 * 70, kUntouched);
    reference_kernels().matmul_groups(w, rows, whole.data(), 70, 0, 5);
    GetParam()->matmul_groups(w, rows, parts.data(), 70, 1, 4);
    for (std::size_t t = 0; t < tokens; ++t) {
      for (std::size_t row = 0; row < 70; ++row) {
        const bool asked = row >= 16 && row < 64;
        EXPECT_EQ(parts[t * 70 + row], asked ? whole[t * 70 + row] : kUntouched);
      }
    }
    GetParam()->matmul_groups(w, rows, parts.data(), 70, 0, 1);
    GetParam()->matmul_groups(w, rows, parts.data(), 70, 4, 5);
    EXPECT_TRUE(same_bits(parts, whole));
  }
}

// code * scale rounded before the sum would give another last bit.
TEST(MatmulPublicTest, MultipliesTheSumOfCodesByAFloatScale) {
  std::vector<float> weights(64, 0.0f);
  std::vector<float> x(64, 1.0f);
  weights[0] = 1.0f;
  weights[1] = 1.375f;
  weights[40] = 0.875f;
  const WeightMatrix w = one_row(WeightFormat::kFp8F32, weights, 120);
  const float scale = scale_at(w, 0, 0);
  const float expected = std::fma(0.875f, scale, 2.375f * scale);
  EXPECT_EQ(code_at(w, 0, 1), 1.375f);
  EXPECT_EQ(product_of(reference_kernels(), w, x, ActivationValues::kF32), expected);
  const float rounded_weights = 1.0f * scale + 1.375f * scale + 0.875f * scale;
  EXPECT_NE(expected, rounded_weights);
}

INSTANTIATE_TEST_SUITE_P(Tables, MatmulTest, ::testing::ValuesIn(fast_tables()), table_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(MatmulTest);

TEST(MatmulPublicTest, GivesTheSameBitsWithAnyNumberOfThreads) {
  RandomValues random(5);
  const WeightMatrix w =
      random_matrix(WeightFormat::kFp4, 100, 128, Spread::kUsual, random).packed();
  const std::vector<float> x = random.bf16_values(3 * 128, Spread::kUsual);
  const ActivationRows rows{
      .data = x.data(), .stride = 128, .tokens = 3, .values = ActivationValues::kBf16};
  std::vector<float> expected(300);
  reference_kernels().matmul_groups(w, rows, expected.data(), 100, 0, w.row_groups());
  for (const std::size_t threads : {1, 2, 3, 8}) {
    WorkerPool workers(threads);
    std::vector<float> out(300);
    matmul(w, rows, out.data(), 100, workers);
    EXPECT_TRUE(same_bits(out, expected)) << threads;
  }
}

TEST(MatmulPublicTest, UsesTheTableThatWasSet) {
  set_active_kernels(&reference_kernels());
  EXPECT_EQ(active_kernels().name, "reference");
  set_active_kernels(nullptr);
  EXPECT_EQ(active_kernels().name, available_kernels().back()->name);
  EXPECT_EQ(available_kernels().front(), &reference_kernels());
}

}  // namespace
}  // namespace locket::kernels
