#include "kernels/sparse_attention.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <list>
#include <utility>
#include <vector>

#include "kernels/elementary.h"
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
  std::vector<AttentionRow> slots;
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
    if (is_hole(shape.holes, slot, random)) data.used[slot] = 0;
  }
  data.slots = float_slots(std::span<const float>(data.rows).subspan(1), shape.head_dim, data.used);
  data.input = {.heads = shape.heads,
                .head_dim = shape.head_dim,
                .scale = 1.0f / std::sqrt(static_cast<float>(shape.head_dim)),
                .query = std::span<const float>(data.query).subspan(1),
                .rows = data.slots,
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

TEST_P(SparseAttentionTest, TakesFloat32ValuesInEitherRounding) {
  for (const bool odd_query : {true, false}) {
    RandomValues random(13);
    Data data = make_data({2, 64, 70, Holes::kNone, Rounding::kBf16}, random);
    std::vector<float>& values = odd_query ? data.query : data.rows;
    std::ranges::copy(random.values(values.size(), Spread::kUsual), values.begin());
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

// Rows as the memory stores them: random codes with scales of a spread.
class StoredRows {
 public:
  StoredRows(std::size_t head_dim, RandomValues& random) : head_dim_(head_dim), random_(random) {}

  AttentionRow add(RowFormat format, Spread spread) {
    std::vector<std::byte>& bytes = bytes_.emplace_back(row_bytes(format, head_dim_));
    const std::size_t codes = format == RowFormat::kFp8 ? head_dim_ : head_dim_ / 2;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      bytes[i] = i < codes ? code(format) : scale(format, spread);
    }
    if (format == RowFormat::kF32) {
      const std::vector<float> values = random_.values(head_dim_, spread);
      encode_row(format, values, bytes);
    }
    return {.bytes = bytes.data(), .format = format};
  }

 private:
  std::byte code(RowFormat format) {
    const std::uint32_t code = random_.below(256);
    const bool nan = format == RowFormat::kFp8 && (code & 0x7Fu) == 0x7Fu;
    return static_cast<std::byte>(nan ? code - 1 : code);
  }
  std::byte scale(RowFormat format, Spread spread) {
    // E4M3 scales of either sign, all but NaN.
    if (format == RowFormat::kFp4Main) return code(RowFormat::kFp8);
    return static_cast<std::byte>(random_.scale_code(spread));
  }

  std::size_t head_dim_;
  RandomValues& random_;
  std::list<std::vector<std::byte>> bytes_;
};

struct StoredShape {
  std::size_t heads;
  std::size_t head_dim;
  std::size_t window;
  std::size_t selected;
  Spread spread = Spread::kUsual;
};

// A window whose end is empty, then selected rows, as a position reads them.
void expect_same_stored(const KernelTable& table, const StoredShape& shape, Rounding rounding) {
  RandomValues random(static_cast<std::uint32_t>(shape.selected * 31 + shape.heads));
  StoredRows rows(shape.head_dim, random);
  const bool quantized = shape.head_dim % 32 == 0;
  std::vector<AttentionRow> slots(shape.window + shape.selected);
  const std::size_t seen =
      shape.window == 0 ? 0 : 1 + random.below(static_cast<std::uint32_t>(shape.window));
  for (std::size_t slot = 0; slot < seen; ++slot) {
    slots[slot] = rows.add(quantized ? RowFormat::kFp8 : RowFormat::kF32, shape.spread);
  }
  for (std::size_t slot = shape.window; slot < slots.size(); ++slot) {
    slots[slot] = rows.add(RowFormat::kFp4Main, shape.spread);
  }
  const std::size_t size = shape.heads * shape.head_dim;
  const std::vector<float> query = rounding == Rounding::kBf16
                                       ? random.bf16_values(size, shape.spread)
                                       : random.values(size, shape.spread);
  const std::vector<float> sink = random.values(shape.heads, Spread::kUsual);
  SCOPED_TRACE(::testing::Message()
               << shape.heads << " heads of " << shape.head_dim << ", window " << shape.window
               << ", selected " << shape.selected << ", rounding " << static_cast<int>(rounding));
  expect_same_output(table, {.heads = shape.heads,
                             .head_dim = shape.head_dim,
                             .scale = 0.01f,
                             .query = query,
                             .rows = slots,
                             .sink = sink,
                             .rounding = rounding});
}

TEST_P(SparseAttentionTest, HasTheReferenceBitsForStoredRows) {
  for (const Rounding rounding : {Rounding::kNone, Rounding::kBf16}) {
    for (const std::size_t heads : {1, 4, 15, 16, 17, 32, 33, 48, 64, 65, 80}) {
      expect_same_stored(*GetParam(), {heads, 64, 20, 50}, rounding);
    }
    for (const std::size_t head_dim : {16, 32, 48, 80, 96, 128, 144, 512}) {
      expect_same_stored(*GetParam(), {3, head_dim, 128, 33}, rounding);
    }
    for (const std::size_t selected : {0, 1, 7, 63, 64, 65, 129, 512, 571, 700}) {
      expect_same_stored(*GetParam(), {2, 32, 128, selected}, rounding);
      expect_same_stored(*GetParam(), {2, 32, 0, selected}, rounding);
    }
  }
}

TEST_P(SparseAttentionTest, HasTheReferenceBitsForExtremeScalesOfStoredRows) {
  for (const Rounding rounding : {Rounding::kNone, Rounding::kBf16}) {
    for (const Spread spread : {Spread::kTiny, Spread::kHuge, Spread::kDenormal}) {
      for (const std::size_t selected : {0, 5, 100}) {
        expect_same_stored(*GetParam(), {5, 64, 70, selected, spread}, rounding);
      }
    }
  }
}

// With one slot and no sink to speak of, the output is the slot's row: its decoded values, all
// codes with all scales.
TEST_P(SparseAttentionTest, DecodesEveryCodeWithEveryScale) {
  constexpr std::size_t kDim = 256;
  const std::vector<float> query(kDim, 0.0f);
  const std::vector<float> sink(1, -1000.0f);
  for (const RowFormat format : {RowFormat::kFp8, RowFormat::kFp4Main, RowFormat::kFp4Index}) {
    for (std::uint32_t scale = 0; scale < 256; ++scale) {
      std::vector<std::byte> bytes(row_bytes(format, kDim), static_cast<std::byte>(scale));
      const std::size_t codes = format == RowFormat::kFp8 ? kDim : kDim / 2;
      for (std::size_t i = 0; i < codes; ++i) bytes[i] = static_cast<std::byte>(i);
      // One NaN would make all scores NaN.
      if (format == RowFormat::kFp8) bytes[0x7F] = bytes[0xFF] = std::byte{0};
      const std::vector<AttentionRow> slots = {{.bytes = bytes.data(), .format = format}};
      SCOPED_TRACE(::testing::Message() << static_cast<int>(format) << ", scale " << scale);
      expect_same_output(*GetParam(), {.heads = 1,
                                       .head_dim = kDim,
                                       .query = query,
                                       .rows = slots,
                                       .sink = sink,
                                       .rounding = Rounding::kNone});
    }
  }
}

TEST_P(SparseAttentionTest, ANanInARowShows) {
  constexpr std::size_t kDim = 32;
  const std::vector<float> query(kDim, 1.0f);
  const std::vector<float> sink(1, 0.0f);
  for (const int code : {0x7F, 0xFF}) {
    std::vector<std::byte> bytes(row_bytes(RowFormat::kFp8, kDim), std::byte{0x7E});
    bytes[5] = static_cast<std::byte>(code);
    const std::vector<AttentionRow> slots = {{.bytes = bytes.data(), .format = RowFormat::kFp8}};
    std::vector<float> out(kDim);
    GetParam()->sparse_attention({.heads = 1,
                                  .head_dim = kDim,
                                  .query = query,
                                  .rows = slots,
                                  .sink = sink,
                                  .rounding = Rounding::kBf16},
                                 out);
    for (const float value : out) EXPECT_TRUE(std::isnan(value));
  }
}

// Exponents whose exponentials lie so near the middle between two floats that an approximation in
// double rounds to the other one. The second dimension of the output is the weight: the first slot
// has score 0 and value 0, and weights this small vanish in the denominator.
TEST_P(SparseAttentionTest, WeightsRoundAsTheExactStepsDo) {
  const std::vector<float> query = {1.0f, 0.0f};
  const std::vector<float> sink = {-1000.0f};
  for (const float exponent :
       {-0x1.266284p+4f, -0x1.ade73cp+4f, -0x1.2c1302p+5f, -0x1.aab196p+5f, -0x1.27c252p+6f}) {
    const std::vector<float> rows = {0.0f, 0.0f, exponent, 1.0f};
    const std::vector<AttentionRow> slots = float_slots(rows, 2, std::vector<std::uint8_t>{1, 1});
    std::vector<float> out(2);
    GetParam()->sparse_attention(
        {.heads = 1, .head_dim = 2, .query = query, .rows = slots, .sink = sink}, out);
    EXPECT_TRUE(is_same(out[1], exp_value(exponent))) << exponent;
  }
}

// Heads may be shared out among calls.
TEST_P(SparseAttentionTest, HeadsDoNotDependOnEachOther) {
  RandomValues random(37);
  const Data data = make_data({40, 64, 150, Holes::kSome, Rounding::kBf16}, random);
  std::vector<float> whole(40 * 64);
  std::vector<float> parts(40 * 64);
  GetParam()->sparse_attention(data.input, whole);
  for (const auto& [first, count] : {std::pair<std::size_t, std::size_t>{0, 13}, {13, 27}}) {
    AttentionInput part = data.input;
    part.heads = count;
    part.query = data.input.query.subspan(first * 64, count * 64);
    part.sink = data.input.sink.subspan(first, count);
    GetParam()->sparse_attention(part, std::span(parts).subspan(first * 64, count * 64));
  }
  EXPECT_TRUE(same_bits(parts, whole));
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
               static_cast<double>(data.rows[1 + slot * 64 + i]);
      }
      weights[slot] = std::exp(dot * static_cast<double>(data.input.scale));
      denominator += weights[slot];
    }
    for (std::size_t i = 0; i < 64; ++i) {
      double sum = 0.0;
      for (std::size_t slot = 0; slot < 150; ++slot) {
        sum += weights[slot] * static_cast<double>(data.rows[1 + slot * 64 + i]);
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
