#include "chat/json_equal.h"

#include <gtest/gtest.h>
#include <string>

namespace locket::chat {
namespace {

TEST(JsonEqualTest, OrderSpacingAndEscapesDoNotCount) {
  EXPECT_TRUE(is_same_arguments(R"({"a": 1, "b": [true, null]})", "{\"b\":[true,null],\n\"a\":1}"));
  EXPECT_TRUE(is_same_arguments(R"({"a": {"x": "ü", "y": 2}})", R"({"a":{"y":2,"x":"\u00fc"}})"));
  EXPECT_TRUE(is_same_arguments("{}", " { } "));
}

TEST(JsonEqualTest, WhatMeansSomethingElseDiffers) {
  const std::string sent = R"({"a": [1, 2], "b": "x"})";
  for (const char* other :
       {R"({"a": [2, 1], "b": "x"})", R"({"a": [1, 2]})", R"({"a": [1, 2], "b": "x", "c": null})",
        R"({"a": [1, 2], "b": "X"})", R"({"a": [1, 2], "c": "x"})", R"({"a": [1, "2"], "b": "x"})",
        R"({"a": [1, 2, 3], "b": "x"})", R"([1, 2])", "{", ""}) {
    EXPECT_FALSE(is_same_arguments(sent, other)) << other;
    EXPECT_FALSE(is_same_arguments(other, sent)) << other;
  }
  EXPECT_FALSE(is_same_arguments("false", "null"));
  EXPECT_FALSE(is_same_arguments("false", "true"));
}

TEST(JsonEqualTest, ANumberIsItsValue) {
  for (const char* two : {"2.0", "2e0", "20E-1", "2"}) EXPECT_TRUE(is_same_arguments("2", two));
  EXPECT_TRUE(is_same_arguments("1e-05", "0.00001"));
  EXPECT_TRUE(is_same_arguments("-0", "0"));
  EXPECT_TRUE(is_same_arguments("-0.0", "0"));
  EXPECT_FALSE(is_same_arguments("2", "2.5"));
  EXPECT_FALSE(is_same_arguments("2", "-2"));
}

TEST(JsonEqualTest, LongIntegersAreComparedToTheLastDigit) {
  EXPECT_TRUE(is_same_arguments("[123456789012345678901]", "[ 123456789012345678901 ]"));
  EXPECT_FALSE(is_same_arguments("123456789012345678901", "123456789012345678902"));
  EXPECT_FALSE(is_same_arguments("9007199254740993", "9007199254740992"));
}

TEST(JsonEqualTest, OfANameThatOccursTwiceTheLastValueCounts) {
  EXPECT_TRUE(is_same_arguments(R"({"a": 1, "a": 2})", R"({"a": 2})"));
}

TEST(JsonEqualTest, TextThatIsNoJsonIsComparedByteForByte) {
  EXPECT_TRUE(is_same_arguments(R"({"a": hello})", R"({"a": hello})"));
  EXPECT_FALSE(is_same_arguments(R"({"a": hello})", R"({"a":hello})"));
  EXPECT_TRUE(is_same_arguments("", ""));
}

}  // namespace
}  // namespace locket::chat
