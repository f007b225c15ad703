#include "numerics/dtype.h"

#include <gtest/gtest.h>
#include <set>
#include <string_view>

namespace locket::numerics {
namespace {

TEST(DtypeTest, HasOneNameAndAWidthForEveryType) {
  std::set<std::string_view> names;
  for (int i = 0; i < static_cast<int>(Dtype::kCount); ++i) {
    const auto dtype = static_cast<Dtype>(i);
    EXPECT_TRUE(names.insert(dtype_name(dtype)).second) << dtype_name(dtype);
    EXPECT_GT(bits_of(dtype), 0u);
  }
  EXPECT_EQ(names.size(), static_cast<std::size_t>(Dtype::kCount));
}

TEST(DtypeTest, KnowsTheWidthsOfTheCheckpointTypes) {
  EXPECT_EQ(bits_of(Dtype::kF32), 32u);
  EXPECT_EQ(bits_of(Dtype::kBf16), 16u);
  EXPECT_EQ(bits_of(Dtype::kFp8E4m3), 8u);
  EXPECT_EQ(bits_of(Dtype::kE8m0), 8u);
  EXPECT_EQ(bits_of(Dtype::kI8), 8u);
  EXPECT_EQ(bits_of(Dtype::kFp4E2m1), 4u);
  EXPECT_EQ(dtype_name(Dtype::kFp8E4m3), "F8_E4M3");
  EXPECT_EQ(dtype_name(Dtype::kE8m0), "F8_E8M0");
}

}  // namespace
}  // namespace locket::numerics
