#include "tensor/shape.h"

#include <gtest/gtest.h>

namespace locket::tensor {
namespace {

TEST(ShapeTest, CountsElements) {
  EXPECT_EQ(element_count({}), 1);
  EXPECT_EQ(element_count({7}), 7);
  EXPECT_EQ(element_count({3, 0, 5}), 0);
  EXPECT_EQ(element_count({384'006'168, 256}), 98'305'579'008);
}

TEST(ShapeTest, RefusesNegativeExtents) {
  const auto count = element_count({3, -1});
  ASSERT_FALSE(count);
  EXPECT_EQ(count.error().code, ErrorCode::kBadRequest);
  EXPECT_EQ(count.error().message, "shape [3, -1] has a negative extent");
}

TEST(ShapeTest, RefusesProductsThatOverflow) {
  constexpr std::int64_t kBig = std::int64_t{1} << 31;
  EXPECT_EQ(element_count({kBig, kBig}), std::int64_t{1} << 62);
  EXPECT_FALSE(element_count({kBig, kBig, 2}));
  EXPECT_FALSE(element_count({kBig + 1, kBig}));
  const auto count = element_count({INT64_MAX, INT64_MAX});
  ASSERT_FALSE(count);
  EXPECT_NE(count.error().message.find("too many elements"), std::string::npos);
  EXPECT_EQ(element_count({0, INT64_MAX, INT64_MAX}), 0) << "nothing in it, whatever the rest";
}

TEST(ShapeTest, IsWrittenInBrackets) {
  EXPECT_EQ(to_string({}), "[]");
  EXPECT_EQ(to_string({5}), "[5]");
  EXPECT_EQ(to_string({3, 4, -1}), "[3, 4, -1]");
}

}  // namespace
}  // namespace locket::tensor
