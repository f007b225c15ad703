// Checks of errors in the tests of the checkpoint room.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <initializer_list>
#include <string>
#include <string_view>

#include "base/result.h"

namespace locket::checkpoint {

// The result is an error with this code, and its message contains all `words`.
template <class Value>
void expect_failure(const Result<Value>& result, ErrorCode code,
                    std::initializer_list<std::string_view> words) {
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(error_code_name(result.error().code), error_code_name(code)) << result.error().message;
  for (const std::string_view word : words) {
    EXPECT_THAT(result.error().message, ::testing::HasSubstr(std::string(word)));
  }
}

}  // namespace locket::checkpoint
