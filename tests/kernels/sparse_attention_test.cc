#include "kernels/sparse_attention.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <vector>

#include "kernels/kernel_table.h"
#include "tests/support/kernel_data.h"

namespace locket::kernels {
namespace {

enum class Holes { kNone, kSome, kAll, kWholeTiles };

struct Shape {
  std::size_t heads;
  std::size_t head_dim;
  std::size_t slots;
  Holes holes;
  Rounding rounding;
  Spread spread = Spread::kUsual;
};

struct Data {
  std::vector<float> query;
  std::vector<float> rows;
  std::vector<std::uint8_t> used;
  std::vector<float> sink;
  AttentionInput input;
};

bool is_hole(Holes holes, std::size_t slot, RandomValues& random) {
  switch (holes) {
    case Holes::kNone:
      return false;
    case Holes::kSome:
      return random.below(3) == 0;
    case Holes::kAll:
      return true;
    case Holes::kWholeTiles:
      return slot / kAttentionTile != 1;
  }
  return false;
}

// One float before query and rows, so that no vector load is aligned.
Data make_data(const Shape& shape, RandomValues& random) {
  Data data;
  const bool rounded = shape.rounding == Rounding::kBf16;
  const auto values = [&](std::size_t count) {
    return rounded ? random.bf16_values(count, shape.spread) : random.values(count, shape.spread);
  };
  data.query = values(1 + shape.heads * shape.head_dim);
  data.rows = values(1 + shape.slots * shape.head_dim);
  data.sink = random.values(shape.heads, Spread::kUsual);
  data.used.assign(shape.slots, 1);
  for (std::size_t slot = 0; slot < shape.slots; ++slot) {
    if (!is_hole(shape.holes, slot, random)) continue;
    data.used[slot] = 0;
    for (std::size_t i = 0; i < shape.head_dim; ++i) {
      data.rows[1 + slot * shape.head_dim + i] = 0.0f;
    }
  }
  data.input = {.heads = shape.heads,
                .head_dim = shape.head_dim,
                .scale = 1.0f / std::sqrt(static_cast<float>(shape.head_dim)),
                .query = std::span<const float>(data.query).subspan(1),
                .rows = std::span<const float>(data.rows).subspan(1),
                .used = data.used,
                .sink = data.sink,
                .rounding = shape.rounding};
  return data;
}

class SparseAttentionTest : public ::testing::TestWithParam<const KernelTable*> {
 protected:
  void expect_same(const Shape& shape) {
    RandomValues random(static_cast<std::uint32_t>(shape.slots * 977 + shape.head_dim));
    const Data data = make_data(shape, random);
    std::vector<float> expected(shape.heads * shape.head_dim, -1.0f);
    std::vector<float> actual(expected.size() + 1, -2.0f);
    reference_kernels().sparse_attention(data.input, expected);
    GetParam()->sparse_attention(data.input, std::span<float>(actual).subspan(1));
    ASSERT_TRUE(computes_denormals());
    EXPECT_TRUE(same_bits(std::span<const float>(actual).subspan(1), expected))
        << shape.heads << " heads of " << shape.head_dim << ", " << shape.slots << " slots, holes "
        << static_cast<int>(shape.holes) << ", rounding " << static_cast<int>(shape.rounding);
  }
};

TEST_P(SparseAttentionTest, HasTheReferenceBitsForEveryCountOfSlots) {
  for (const Rounding rounding : {Rounding::kNone, Rounding::kBf16}) {
    for (std::size_t slots = 0; slots <= 200; ++slots) {
      const Holes holes = slots % 2 == 0 ? Holes::kSome : Holes::kNone;
      expect_same({slots % 5 + 1, 64, slots, holes, rounding});
    }
  }
}

TEST_P(SparseAttentionTest, HasTheReferenceBitsForEveryCountOfHeads) {
  for (const Rounding rounding : {Rounding::kNone, Rounding::kBf16}) {
    for (std::size_t heads = 1; heads <= 20; ++heads) {
      expect_same({heads, 96, 70, Holes::kSome, rounding});
    }
  }
}

TEST_P(SparseAttentionTest, HasTheReferenceBitsForEveryHeadDimension) {
  for (const Rounding rounding : {Rounding::kNone, Rounding::kBf16}) {
    for (const std::size_t head_dim : {1, 7, 16, 24, 32, 40, 48, 80, 96, 128, 257, 300, 512}) {
      expect_same({3, head_dim, 90, Holes::kSome, rounding});
    }
  }
}

TEST_P(SparseAttentionTest, HasTheReferenceBitsWithoutUsedSlots) {
  for (const Rounding rounding : {Rounding::kNone, Rounding::kBf16}) {
    expect_same({2, 64, 100, Holes::kAll, rounding});
    expect_same({2, 64, 200, Holes::kWholeTiles, rounding});
  }
}

TEST_P(SparseAttentionTest, HasTheReferenceBitsForTinyAndHugeValues) {
  for (const Rounding rounding : {Rounding::kNone, Rounding::kBf16}) {
    for (const Spread spread : {Spread::kTiny, Spread::kHuge, Spread::kDenormal}) {
      for (const std::size_t slots : {1, 33, 150}) {
        expect_same({3, 64, slots, Holes::kSome, rounding, spread});
      }
    }
  }
}

// Weights that become denormal, and scores so far apart that the maximum moves from tile to tile.
TEST_P(SparseAttentionTest, HasTheReferenceBitsForScoresFarApart) {
  for (const Rounding rounding : {Rounding::kNone, Rounding::kBf16}) {
    RandomValues random(11);
    Data data = make_data({4, 32, 200, Holes::kSome, rounding}, random);
    for (const float scale : {3.0f, 40.0f, 1000.0f, -20.0f}) {
      data.input.scale = scale;
      std::vector<float> expected(4 * 32);
      std::vector<float> actual(4 * 32);
      reference_kernels().sparse_attention(data.input, expected);
      GetParam()->sparse_attention(data.input, actual);
      EXPECT_TRUE(same_bits(actual, expected)) << scale;
    }
  }
}

// The promise of bfloat16 values is checked, not trusted.
TEST_P(SparseAttentionTest, TakesFloat32ValuesInEitherRounding) {
  for (const bool odd_query : {true, false}) {
    RandomValues random(13);
    Data data = make_data({2, 64, 70, Holes::kNone, Rounding::kBf16}, random);
    std::vector<float>& values = odd_query ? data.query : data.rows;
    values = random.values(values.size(), Spread::kUsual);
    (odd_query ? data.input.query : data.input.rows) = std::span<const float>(values).subspan(1);
    std::vector<float> expected(2 * 64);
    std::vector<float> actual(2 * 64);
    reference_kernels().sparse_attention(data.input, expected);
    GetParam()->sparse_attention(data.input, actual);
    EXPECT_TRUE(same_bits(actual, expected));
  }
}

void expect_same_output(const KernelTable& table, const AttentionInput& input) {
  std::vector<float> expected(input.heads * input.head_dim);
  std::vector<float> actual(expected.size());
  reference_kernels().sparse_attention(input, expected);
  table.sparse_attention(input, actual);
  EXPECT_TRUE(same_bits(actual, expected));
}

// Denormal keys count as zeros, however large the query is. The first dimension shows the weights.
TEST_P(SparseAttentionTest, TakesDenormalKeysAsZeros) {
  for (const Rounding rounding : {Rounding::kNone, Rounding::kBf16}) {
    RandomValues random(29);
    Data data = make_data({2, 64, 70, Holes::kNone, rounding}, random);
    std::fill(data.query.begin(), data.query.end(), 0x1p126f);
    data.query[1] = data.query[65] = 0.0f;
    for (std::size_t slot = 0; slot < 70; ++slot) {
      float* row = data.rows.data() + 1 + slot * 64;
      std::fill(row, row + 64, slot % 2 == 0 ? 0.0f : 1.5f * 0x1p-127f);
      row[0] = slot % 2 == 0 ? 2.0f : 1.0f;
    }
    expect_same_output(*GetParam(), data.input);
  }
}

// Denormal values count as zeros, beside normal ones that keep the sum from being flushed.
TEST_P(SparseAttentionTest, TakesDenormalValuesAsZeros) {
  for (const Rounding rounding : {Rounding::kNone, Rounding::kBf16}) {
    RandomValues random(31);
    Data data = make_data({2, 64, 70, Holes::kNone, rounding}, random);
    std::fill(data.query.begin(), data.query.end(), 0.0f);
    for (std::size_t slot = 0; slot < 70; ++slot) {
      float* row = data.rows.data() + 1 + slot * 64;
      std::fill(row, row + 64, slot % 8 == 4 ? 0x1p-126f : 1.5f * 0x1p-127f);
    }
    expect_same_output(*GetParam(), data.input);
  }
}

INSTANTIATE_TEST_SUITE_P(Tables, SparseAttentionTest, ::testing::ValuesIn(fast_tables()),
                         table_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(SparseAttentionTest);

TEST(SparseAttentionReferenceTest, AgreesWithASoftmaxInDouble) {
  RandomValues random(17);
  const Data data = make_data({3, 64, 150, Holes::kSome, Rounding::kNone}, random);
  std::vector<float> out(3 * 64);
  reference_kernels().sparse_attention(data.input, out);
  for (std::size_t h = 0; h < 3; ++h) {
    std::vector<double> weights(150, 0.0);
    double denominator = std::exp(static_cast<double>(data.sink[h]));
    for (std::size_t slot = 0; slot < 150; ++slot) {
      if (data.used[slot] == 0) continue;
      double dot = 0.0;
      for (std::size_t i = 0; i < 64; ++i) {
        dot += static_cast<double>(data.input.query[h * 64 + i]) *
               static_cast<double>(data.input.rows[slot * 64 + i]);
      }
      weights[slot] = std::exp(dot * static_cast<double>(data.input.scale));
      denominator += weights[slot];
    }
    for (std::size_t i = 0; i < 64; ++i) {
      double sum = 0.0;
      for (std::size_t slot = 0; slot < 150; ++slot) {
        sum += weights[slot] * static_cast<double>(data.input.rows[slot * 64 + i]);
      }
      EXPECT_NEAR(static_cast<double>(out[h * 64 + i]), sum / denominator,
                  2e-5);  // scores reach 100, so float32 leaves them 1e-5 of error
    }
  }
}

TEST(SparseAttentionReferenceTest, GivesZeroWhenOnlyTheSinkIsThere) {
  RandomValues random(19);
  const Data data = make_data({2, 32, 10, Holes::kAll, Rounding::kBf16}, random);
  std::vector<float> out(64, 1.0f);
  reference_kernels().sparse_attention(data.input, out);
  for (const float value : out) EXPECT_EQ(value, 0.0f);
}

}  // namespace
}  // namespace locket::kernels
