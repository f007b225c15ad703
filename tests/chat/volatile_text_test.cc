#include "chat/volatile_text.h"

#include <gtest/gtest.h>

namespace locket::chat {
namespace {

TEST(VolatileTextTest, DropsABillingHeaderAtTheStartOnly) {
  EXPECT_EQ(without_volatile_lines("x-anthropic-billing-header: cch=1;"), "");
  EXPECT_EQ(without_volatile_lines("x-anthropic-billing-header: cch=1;\nrest\n"), "rest\n");
  EXPECT_EQ(without_volatile_lines("a\nx-anthropic-billing-header: 1"),
            "a\nx-anthropic-billing-header: 1");
}

TEST(VolatileTextTest, CountsThatPileUpLeaveNothingBehind) {
  const std::string text = "rules";
  EXPECT_EQ(without_volatile_lines(text), text);
  EXPECT_EQ(without_volatile_lines(text + "\n\n<total_tokens>9 tokens left</total_tokens>"), text);
  EXPECT_EQ(without_volatile_lines(text + "\n\n<total_tokens>9 tokens left</total_tokens>\n\n"
                                          "<total_tokens>8 tokens left</total_tokens>\n"),
            text);
}

TEST(VolatileTextTest, KeepsWhatIsNotACount) {
  for (const std::string text : {"a <total_tokens>9 tokens left</total_tokens>",
                                 "<total_tokens>x tokens left</total_tokens>",
                                 "<total_tokens> tokens left</total_tokens>", "a\n\n", "\n", ""}) {
    EXPECT_EQ(without_volatile_lines(text), text);
  }
}

TEST(VolatileTextTest, AUserIdLosesItsSessionAndNothingElse) {
  EXPECT_EQ(stable_user_id(R"({"b":1,"session_id":"x","a":"y"})"), R"({"a": "y", "b": 1})");
  EXPECT_EQ(stable_user_id("user_1_session_2"), "user_1");
  EXPECT_EQ(stable_user_id("[1]"), "[1]");
  EXPECT_EQ(stable_user_id("{broken"), "{broken");
}

}  // namespace
}  // namespace locket::chat
