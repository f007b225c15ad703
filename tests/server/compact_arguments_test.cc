// Arguments in the form of JSON.stringify, whole and in pieces.
#include "server/compact_arguments.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace locket::server {
namespace {

std::string in_pieces(std::string_view text, std::mt19937_64& random) {
  CompactArguments compact;
  std::string out;
  while (!text.empty()) {
    const std::size_t bytes = std::min<std::size_t>(1 + random() % 4, text.size());
    out += compact.push(text.substr(0, bytes));
    text.remove_prefix(bytes);
  }
  return out + compact.finish();
}

TEST(CompactArgumentsTest, DropsBlanksOutsideOfStrings) {
  EXPECT_EQ(compact_arguments("{\"a\": \"x y\", \"b\" :[ 1 ,\n\t2 ] , \"c\": { } }  "),
            R"({"a":"x y","b":[1,2],"c":{}})");
  EXPECT_EQ(compact_arguments(" [ ] "), "[]");
  EXPECT_EQ(compact_arguments("{}"), "{}");
  EXPECT_EQ(compact_arguments(" true"), "true");
}

TEST(CompactArgumentsTest, KeepsTheOrderOfKeysAndKeysThatOccurTwice) {
  EXPECT_EQ(compact_arguments(R"({"b": 1, "10": 2, "9": 3, "b": 4})"),
            R"({"b":1,"10":2,"9":3,"b":4})");
}

TEST(CompactArgumentsTest, WritesNumbersAsJavaScriptDoes) {
  const std::vector<std::pair<std::string, std::string>> rows = {
      {"1.0", "1"},
      {"-0", "0"},
      {"-0.0", "0"},
      {"1e2", "100"},
      {"1E+2", "100"},
      {"0.1", "0.1"},
      {"1e21", "1e+21"},
      {"1e20", "100000000000000000000"},
      {"1.5e-7", "1.5e-7"},
      {"0.000001", "0.000001"},
      {"1e-6", "0.000001"},
      {"0.0000001", "1e-7"},
      {"123.4560", "123.456"},
      {"-2.50", "-2.5"},
      {"1.7976931348623157e308", "1.7976931348623157e+308"},
      {"5e-324", "5e-324"},
      {"1e-400", "0"},
  };
  for (const auto& [written, expected] : rows) EXPECT_EQ(compact_arguments(written), expected);
}

TEST(CompactArgumentsTest, KeepsTheDigitsThatADoubleWouldLose) {
  EXPECT_EQ(compact_arguments("12345678901234567890123"), "12345678901234567890123");
  EXPECT_EQ(compact_arguments("9007199254740993"), "9007199254740993");
  EXPECT_EQ(compact_arguments("1e999"), "1e999");
}

TEST(CompactArgumentsTest, WritesTheShortestEscapes) {
  EXPECT_EQ(compact_arguments(R"("\u0041\/\u00e9\u000a\u001F\u0022\u007f")"),
            "\"A/é\\n\\u001f\\\"\x7f\"");
  EXPECT_EQ(compact_arguments(R"("\ud83d\ude00")"), "\"\U0001F600\"");
  EXPECT_EQ(compact_arguments(R"("\uD83D")"), R"("\ud83d")");
  EXPECT_EQ(compact_arguments(R"("\uDE00\uD83Dx\uD83D\uD83D\uDE00\uD83D\n")"),
            "\"\\ude00\\ud83dx\\ud83d\U0001F600\\ud83d\\n\"");
}

TEST(CompactArgumentsTest, PassesWhatIsNoJsonUnchangedFromThereOn) {
  EXPECT_EQ(compact_arguments("{\"a\": 1 2, \"b\": 3}"), "{\"a\":1 2, \"b\": 3}");
  EXPECT_EQ(compact_arguments("hello  world"), "hello  world");
  EXPECT_EQ(compact_arguments("{\"a\": tru e , 1}"), "{\"a\":tru e , 1}");
  EXPECT_EQ(compact_arguments("{\"a\": 01 , 1.0}"), "{\"a\":01 , 1.0}");
  EXPECT_EQ(compact_arguments("{\"a\": \"\\x \", 1.0}"), "{\"a\":\"\\x \", 1.0}");
  EXPECT_EQ(compact_arguments("{\"a\": \"\\ud83d\\u12\", 1.0}"), "{\"a\":\"\\ud83d\\u12\", 1.0}");
  EXPECT_EQ(compact_arguments("{\"a\": \"x\ny  \"}"), "{\"a\":\"x\ny  \"}");
  EXPECT_EQ(compact_arguments("[1}  "), "[1}  ");
  EXPECT_EQ(compact_arguments("[1, ]  "), "[1, ]  ");
  EXPECT_EQ(compact_arguments("{} {} 1.0"), "{} {} 1.0");
}

TEST(CompactArgumentsTest, KeepsWhatIsCutOff) {
  EXPECT_EQ(compact_arguments("{\"a\": \"x"), "{\"a\":\"x");
  EXPECT_EQ(compact_arguments("{\"a\": 1."), "{\"a\":1.");
  EXPECT_EQ(compact_arguments("{\"a\": fal"), "{\"a\":fal");
  EXPECT_EQ(compact_arguments("{\"a\": \"\\u12"), "{\"a\":\"\\u12");
  EXPECT_EQ(compact_arguments("{\"a\": \"\\ud83d\\"), "{\"a\":\"\\ud83d\\");
}

TEST(CompactArgumentsTest, AnyCutGivesTheSameText) {
  std::mt19937_64 random(7);
  const std::vector<std::string> texts = {
      R"({"a": [1.50, -0.0, 1e3, true, null], "b\u00e9": "x\/y \ud83d\ude00 \ud83d", "c": {}})",
      "{\"a\": 1 2, \"b\": 3}", R"({"a": nul, "b": "\ud83d\u12"})", " { } x"};
  for (const std::string& text : texts) {
    for (int round = 0; round < 50; ++round) {
      EXPECT_EQ(in_pieces(text, random), compact_arguments(text));
    }
  }
}

TEST(CompactArgumentsTest, IsJsonOfTheSameMeaningExactlyIfTheTextWas) {
  std::mt19937_64 random(11);
  const std::string seed = R"({"k": [1.5, {"x": "a\"b"}, true ], "m": {"n": null, "o": "\u0041"}})";
  constexpr std::string_view kBytes = "{}[]:,\" 1.e-tn\\u\n";
  int valid = 0;
  for (int round = 0; round < 4000; ++round) {
    std::string text = seed;
    for (std::uint64_t change = random() % 3; change > 0; --change) {
      const std::size_t at = random() % text.size();
      if (random() % 2 == 0) {
        text[at] = kBytes[random() % kBytes.size()];
      } else {
        text.insert(at, 1, kBytes[random() % kBytes.size()]);
      }
    }
    const auto before = nlohmann::json::parse(text, nullptr, false);
    const auto after = nlohmann::json::parse(compact_arguments(text), nullptr, false);
    ASSERT_EQ(before.is_discarded(), after.is_discarded()) << text;
    if (before.is_discarded()) continue;
    ++valid;
    ASSERT_EQ(before, after) << text;
    ASSERT_EQ(compact_arguments(compact_arguments(text)), compact_arguments(text));
  }
  EXPECT_GT(valid, 200);
}

}  // namespace
}  // namespace locket::server
