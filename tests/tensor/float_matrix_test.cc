#include "tensor/float_matrix.h"

#include <algorithm>
#include <gtest/gtest.h>

namespace locket::tensor {
namespace {

TEST(FloatMatrixTest, RowsLieSideBySide) {
  FloatMatrix matrix(3, 4);
  EXPECT_EQ(matrix.rows(), 3U);
  EXPECT_EQ(matrix.columns(), 4U);
  EXPECT_TRUE(std::ranges::all_of(matrix.values(), [](float value) { return value == 0.0f; }));
  matrix.row(1)[2] = 5.0f;
  EXPECT_EQ(matrix.values()[6], 5.0f);
  EXPECT_EQ(matrix.row(2).data(), matrix.values().data() + 8);
  EXPECT_EQ(matrix.row(2).size(), 4U);
  const FloatMatrix copy = matrix;
  matrix.row(1)[2] = 0.0f;
  EXPECT_EQ(copy.row(1)[2], 5.0f);
}

TEST(FloatMatrixTest, MayBeEmpty) {
  EXPECT_TRUE(FloatMatrix().empty());
  EXPECT_TRUE(FloatMatrix(0, 4).empty());
  EXPECT_EQ(FloatMatrix(0, 4).columns(), 4U);
  EXPECT_TRUE(FloatMatrix(4, 0).row(3).empty());
}

}  // namespace
}  // namespace locket::tensor
