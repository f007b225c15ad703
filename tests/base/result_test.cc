#include "base/result.h"

#include <gtest/gtest.h>
#include <set>
#include <string>

namespace locket {
namespace {

Result<int> half(int value) {
  if (value % 2 != 0)
    return fail(ErrorCode::kBadRequest, "value " + std::to_string(value) + " is odd");
  return value / 2;
}

Result<int> quarter(int value) {
  LOCKET_TRY(const int first, half(value));
  LOCKET_TRY(const int second, half(first));
  return second;
}

TEST(ResultTest, TryHandsOnTheValueOrTheFirstError) {
  EXPECT_EQ(quarter(8).value(), 2);
  EXPECT_EQ(quarter(6).error().message, "value 3 is odd");
  EXPECT_EQ(quarter(6).error().code, ErrorCode::kBadRequest);
}

TEST(ResultTest, EveryCodeHasANameOfItsOwn) {
  std::set<std::string_view> names;
  for (int code = 0; code < static_cast<int>(ErrorCode::kCount); ++code) {
    names.insert(error_code_name(static_cast<ErrorCode>(code)));
  }
  EXPECT_EQ(names.size(), static_cast<std::size_t>(ErrorCode::kCount));
}

}  // namespace
}  // namespace locket
