#include "chat/model_names.h"

#include <gtest/gtest.h>

namespace locket::chat {
namespace {

TEST(ModelNamesTest, DropsTheSuffixOfALongContext) {
  EXPECT_EQ(canonical_model_name("deepseek-flash[1m]"), "deepseek-flash");
  EXPECT_EQ(canonical_model_name("mine[1m]"), "mine");
  EXPECT_EQ(canonical_model_name("[1m]"), "[1m]");
  EXPECT_EQ(canonical_model_name("mine[2m]"), "mine[2m]");
}

TEST(ModelNamesTest, KnowsTheOtherNamesOfTheFlashModel) {
  for (const auto* name : {"deepseek-v4-flash", "deepseek-v4-flash-vision-exp", "deepseek-chat",
                           "deepseek-reasoner", "deepseek-reasoner[1m]"}) {
    EXPECT_EQ(canonical_model_name(name), "deepseek-flash");
  }
  EXPECT_EQ(canonical_model_name("deepseek-v4-pro"), "deepseek-v4-pro");
  EXPECT_EQ(canonical_model_name(""), "");
}

TEST(ModelNamesTest, OldNamesSayWhetherToThink) {
  EXPECT_EQ(thinking_of_model_name("deepseek-chat"), ThinkingMode::kChat);
  EXPECT_EQ(thinking_of_model_name("deepseek-reasoner[1m]"), ThinkingMode::kThinking);
  EXPECT_FALSE(thinking_of_model_name("deepseek-flash").has_value());
}

}  // namespace
}  // namespace locket::chat
