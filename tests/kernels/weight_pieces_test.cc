// Weights that are packed piece by piece are those that are packed at once.
#include <algorithm>
#include <gtest/gtest.h>

#include "kernels/weight_matrix.h"
#include "tests/support/kernel_data.h"

namespace locket::kernels {
namespace {

// Rows in steps, the last ones first.
void pack_backwards(const RandomMatrix& stored, std::size_t step, WeightMatrix& matrix) {
  const std::size_t row_bytes = stored_row_bytes(stored.format, stored.columns);
  const std::size_t steps = (stored.rows + step - 1) / step;
  for (std::size_t left = steps; left > 0; --left) {
    const std::size_t first = (left - 1) * step;
    const std::size_t rows = std::min(step, stored.rows - first);
    const auto values = std::span(stored.values).subspan(first * row_bytes, rows * row_bytes);
    ASSERT_TRUE(pack_values(values, first, matrix));
  }
  ASSERT_TRUE(pack_scales(stored.scales, matrix));
}

void expect_same(const WeightMatrix& actual, const WeightMatrix& expected) {
  EXPECT_EQ(actual.rows, expected.rows);
  EXPECT_EQ(actual.columns, expected.columns);
  EXPECT_TRUE(std::ranges::equal(actual.tiles.bytes(), expected.tiles.bytes()));
  EXPECT_TRUE(std::ranges::equal(actual.scales.bytes(), expected.scales.bytes()));
}

void expect_same_in_pieces(WeightFormat format, std::size_t rows, std::size_t columns) {
  RandomValues random(11);
  const RandomMatrix stored = random_matrix(format, rows, columns, Spread::kUsual, random);
  for (const std::size_t step : {16, 32, 64}) {
    WeightMatrix matrix = unpacked_matrix(format, rows, columns);
    pack_backwards(stored, step, matrix);
    expect_same(matrix, stored.packed());
  }
}

TEST(WeightPiecesTest, PiecesGiveTheSameBytesAsTheWhole) {
  for (const WeightFormat format : kWeightFormats) {
    for (const std::size_t rows : {1, 16, 17, 40, 96}) {
      expect_same_in_pieces(format, rows, 32);
      expect_same_in_pieces(format, rows, 96);
      if (!needs_whole_groups(format)) expect_same_in_pieces(format, rows, 100);
    }
  }
}

TEST(WeightPiecesTest, AMatrixMayBeFilledAnew) {
  RandomValues random(12);
  for (const WeightFormat format : kWeightFormats) {
    WeightMatrix matrix = unpacked_matrix(format, 40, 96);
    for (int round = 0; round < 3; ++round) {
      const RandomMatrix stored = random_matrix(format, 40, 96, Spread::kTiny, random);
      pack_backwards(stored, 16, matrix);
      expect_same(matrix, stored.packed());
    }
  }
}

TEST(WeightPiecesTest, SizesAreKnownBeforeAnythingIsRead) {
  RandomValues random(13);
  for (const WeightFormat format : kWeightFormats) {
    const RandomMatrix stored = random_matrix(format, 40, 96, Spread::kUsual, random);
    EXPECT_GE(packed_bytes(format, 40, 96), stored.packed().byte_count());
    EXPECT_LT(packed_bytes(format, 40, 96), stored.packed().byte_count() + 128);
    EXPECT_EQ(stored_row_bytes(format, 96) * 40, stored.values.size());
    EXPECT_EQ(stored_scale_bytes(format, 40, 96), stored.scales.size());
  }
}

TEST(WeightPiecesTest, NanIsRefusedInAnyPiece) {
  RandomValues random(14);
  RandomMatrix fp4 = random_matrix(WeightFormat::kFp4, 32, 64, Spread::kUsual, random);
  WeightMatrix matrix = unpacked_matrix(WeightFormat::kFp4, 32, 64);
  fp4.scales[17] = std::byte{255};
  const Status scales = pack_scales(fp4.scales, matrix);
  ASSERT_FALSE(scales);
  EXPECT_EQ(scales.error().code, ErrorCode::kBadCheckpoint);
  EXPECT_NE(scales.error().message.find("scale 17"), std::string::npos);

  RandomMatrix fp8 = random_matrix(WeightFormat::kFp8, 32, 64, Spread::kUsual, random);
  matrix = unpacked_matrix(WeightFormat::kFp8, 32, 64);
  fp8.values[16 * 64 + 5] = std::byte{0xFF};
  EXPECT_TRUE(pack_values(std::span(fp8.values).first(16 * 64), 0, matrix));
  const Status values = pack_values(std::span(fp8.values).subspan(16 * 64), 16, matrix);
  ASSERT_FALSE(values);
  EXPECT_NE(values.error().message.find("value 1029 is NaN"), std::string::npos);
}

}  // namespace
}  // namespace locket::kernels
