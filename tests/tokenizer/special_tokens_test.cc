#include "tokenizer/special_tokens.h"

#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace locket::tokenizer {
namespace {

AddedToken token(std::string spelling, TokenId id) {
  return {.spelling = std::move(spelling), .id = id};
}

std::string shown(const std::vector<TextPart>& parts) {
  std::string text;
  for (const TextPart& part : parts) {
    text +=
        part.added_token ? '<' + std::to_string(*part.added_token) + '>' : std::string(part.text);
    text += '|';
  }
  return text;
}

TEST(SpecialTokensTest, TakesTheLeftmostAndThereTheLongest) {
  const auto tokens =
      SpecialTokens::build({token("ab", 1), token("abc", 2), token("bcd", 3)}).value();
  EXPECT_EQ(shown(tokens.split("xabcdbcd")), "x|<2>|d|<3>|");
  EXPECT_EQ(shown(tokens.split("abab")), "<1>|<1>|");
  EXPECT_EQ(shown(tokens.split("a")), "a|");
  EXPECT_EQ(shown(tokens.split("")), "");
}

TEST(SpecialTokensTest, LooksForNormalizedTokensOnlyInWhatTheOthersLeave) {
  AddedToken late = token("abc", 1);
  late.normalized = true;
  const auto tokens = SpecialTokens::build({late, token("cd", 2)}).value();
  EXPECT_EQ(shown(tokens.split("abcd")), "ab|<2>|");
  EXPECT_EQ(shown(tokens.split("abce")), "<1>|e|");
}

TEST(SpecialTokensTest, FindsBySpellingAndById) {
  AddedToken special = token("<s>", 7);
  special.special = true;
  const auto tokens = SpecialTokens::build({special, token("<t>", 9)}).value();
  EXPECT_EQ(tokens.find("<s>"), 7);
  EXPECT_EQ(tokens.find("<u>"), std::nullopt);
  EXPECT_TRUE(tokens.is_special(7));
  EXPECT_FALSE(tokens.is_special(9));
  EXPECT_TRUE(tokens.is_added(9));
  EXPECT_FALSE(tokens.is_added(8));
}

TEST(SpecialTokensTest, RefusesASpellingOrIdThatComesTwice) {
  EXPECT_FALSE(SpecialTokens::build({token("a", 1), token("a", 2)}).has_value());
  EXPECT_FALSE(SpecialTokens::build({token("a", 1), token("b", 1)}).has_value());
}

}  // namespace
}  // namespace locket::tokenizer
