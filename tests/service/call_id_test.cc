#include "service/call_id.h"

#include <gtest/gtest.h>
#include <regex>
#include <set>
#include <string>

namespace locket::service {
namespace {

TEST(CallIdTest, HasTheCallsIndexAndRandomLetters) {
  EXPECT_TRUE(std::regex_match(make_call_id(0), std::regex("call_00_[A-Za-z0-9]{24}")));
  EXPECT_TRUE(std::regex_match(make_call_id(7), std::regex("call_07_[A-Za-z0-9]{24}")));
  EXPECT_TRUE(std::regex_match(make_call_id(123), std::regex("call_123_[A-Za-z0-9]{24}")));
}

TEST(CallIdTest, IsNeverTheSame) {
  std::set<std::string> seen;
  for (int number = 0; number < 1000; ++number) seen.insert(make_call_id(0));
  EXPECT_EQ(seen.size(), 1000U);
}

TEST(CallIdTest, EveryLetterOccurs) {
  const std::string text = random_letters(20000);
  EXPECT_EQ(text.size(), 20000U);
  EXPECT_EQ(std::set<char>(text.begin(), text.end()).size(), 62U);
  EXPECT_EQ(random_letters(0), "");
}

}  // namespace
}  // namespace locket::service
