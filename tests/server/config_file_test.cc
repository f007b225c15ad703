#include "server/config_file.h"

#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace locket::server {
namespace {

using Values = std::vector<std::string>;

// The values of the only setting of a text.
Values values_of(const std::string& text) {
  const auto settings = read_config(text, "locket.toml");
  EXPECT_TRUE(settings) << text << ": " << settings.error().message;
  if (!settings || settings->size() != 1) return {"no single setting"};
  return settings->front().values;
}

std::string refusal(const std::string& text) {
  const auto settings = read_config(text, "locket.toml");
  return settings ? "none" : settings.error().message;
}

TEST(ConfigFileTest, ReadsSettingsWithTheirLines) {
  const auto settings = read_config(
      "# a server\n\n  port = 9000 # not 8000\r\nserved_model_name = 'a'\n\tmetrics=true",
      "locket.toml");
  ASSERT_TRUE(settings) << settings.error().message;
  ASSERT_EQ(settings->size(), 3U);
  EXPECT_EQ((*settings)[0].name, "port");
  EXPECT_EQ((*settings)[0].values, (Values{"9000"}));
  EXPECT_EQ((*settings)[0].line, 3U);
  EXPECT_EQ((*settings)[1].name, "served-model-name");
  EXPECT_EQ((*settings)[2].values, (Values{"true"}));
  EXPECT_EQ((*settings)[2].line, 5U);
}

TEST(ConfigFileTest, ReadsTextAsItIsQuoted) {
  EXPECT_EQ(values_of(R"(a = "x # y = \"z\" \\ \n\t" # end)"), (Values{"x # y = \"z\" \\ \n\t"}));
  EXPECT_EQ(values_of(R"(a = 'C:\new "x"')"), (Values{R"(C:\new "x")"}));
  EXPECT_EQ(values_of("a = \"\""), (Values{""}));
  EXPECT_EQ(values_of("a = \"512M\""), (Values{"512M"}));
}

TEST(ConfigFileTest, ReadsNumbersAndLists) {
  EXPECT_EQ(values_of("a = -1.5e3"), (Values{"-1.5e3"}));
  EXPECT_EQ(values_of("a = false"), (Values{"false"}));
  EXPECT_EQ(values_of("a = [ \"x\", 'y' ,3,]"), (Values{"x", "y", "3"}));
  EXPECT_EQ(values_of("a = []"), Values{});
}

TEST(ConfigFileTest, AnEmptyFileSetsNothing) {
  for (const std::string text : {"", "\n\n", "# only\n   # comments"}) {
    const auto settings = read_config(text, "locket.toml");
    ASSERT_TRUE(settings);
    EXPECT_TRUE(settings->empty());
  }
}

TEST(ConfigFileTest, RefusesWhatItDoesNotKnowAndSaysWhere) {
  const std::vector<std::pair<std::string, std::string>> rows = {
      {"port", "name = value"},     {"[serve]", "no tables"},     {"= 3", "name = value"},
      {"port : 3", "name = value"}, {"a.b = 3", "name = value"},  {"host = localhost", "in quotes"},
      {"port = ", "in quotes"},     {"port = 3 4", "comment"},    {"a = \"x", "quote"},
      {"a = 'x", "quote"},          {"a = \"\\x\"", "backslash"}, {"a = \"x\\", "backslash"},
      {"a = [1, 2", "]"},           {"a = [1 2]", "commas"},      {"a = [[1]]", "in quotes"},
      {"a = \"x\"y", "comment"},    {"a = {b = 1}", "in quotes"}, {"a = True", "in quotes"}};
  for (const auto& [line, part] : rows) {
    const std::string message = refusal("\n" + line + "\n");
    EXPECT_NE(message.find("locket.toml, line 2: "), std::string::npos) << line << ": " << message;
    EXPECT_NE(message.find(part), std::string::npos) << line << ": " << message;
  }
}

TEST(ConfigFileTest, ANameStandsOnce) {
  const std::string message = refusal("max-queue = 1\nport = 2\nmax_queue = 3\n");
  EXPECT_NE(message.find("line 3: \"max-queue\" is set on line 1"), std::string::npos) << message;
}

}  // namespace
}  // namespace locket::server
