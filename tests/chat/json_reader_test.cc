#include "chat/json_reader.h"

#include <gtest/gtest.h>
#include <string>

#include "chat/python_json.h"

namespace locket::chat {
namespace {

// The value as Python would write it, or the message of the refusal.
std::string reread(std::string_view text) {
  const Result<JsonValue> value = read_json(text, "the body");
  return value ? python_json(*value) : value.error().message;
}

TEST(JsonReaderTest, KeepsOrderAndDigits) {
  EXPECT_EQ(reread(R"({"z":1,"a":[2,{"m":-7}],"big":123456789012345678901234567890})"),
            R"({"z": 1, "a": [2, {"m": -7}], "big": 123456789012345678901234567890})");
  EXPECT_EQ(reread(std::string(400, '9')), std::string(400, '9'));
  EXPECT_EQ(reread(" [ ] "), "[]");
  EXPECT_EQ(reread("{ }"), "{}");
}

TEST(JsonReaderTest, TakesTheLastOfEqualNamesAtThePlaceOfTheFirst) {
  EXPECT_EQ(reread(R"({"b":1,"a":2,"b":3})"), R"({"b": 3, "a": 2})");
  std::string many = "{";
  for (int i = 0; i < 40; ++i) many += "\"k" + std::to_string(i) + "\":" + std::to_string(i) + ",";
  const std::string twice = reread(many + R"("k3":"x","k39":"y"})");
  EXPECT_NE(twice.find(R"("k2": 2, "k3": "x", "k4": 4)"), std::string::npos) << twice;
  EXPECT_TRUE(twice.ends_with(R"("k38": 38, "k39": "y"})")) << twice;
}

TEST(JsonReaderTest, ReadsEscapesAndPairs) {
  EXPECT_EQ(read_json(R"("\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00")", "x").value().text,
            "\"\\/\b\f\n\r\té😀");
  EXPECT_EQ(reread(R"("\u0000\u001F")"), R"("\u0000\u001f")");
}

TEST(JsonReaderTest, NamesTheFieldOfHalfAPair) {
  EXPECT_EQ(reread(R"({"messages": [{"content": "x \ud83d"}]})"),
            "the body is not valid JSON: half of a surrogate pair, \\ud83d, at byte offset 29, in "
            "messages[0].content");
  EXPECT_NE(reread(R"(["\ude00 y"])").find("half of a surrogate pair, \\ude00, at byte offset 2"),
            std::string::npos);
  EXPECT_NE(reread(R"(["\ud83d\u0041"])").find("half of a surrogate pair"), std::string::npos);
  EXPECT_NE(reread(R"(["\ud83d\ud83d"])").find("half of a surrogate pair"), std::string::npos);
}

TEST(JsonReaderTest, NamesThePlaceOfAnUnknownEscape) {
  EXPECT_EQ(
      reread(R"({"a": "\s"})"),
      "the body is not valid JSON: unknown escape \\s (a backslash itself is written \\\\) at "
      "byte offset 7, in a");
  EXPECT_EQ(reread(R"({"a": "\\s"})"), R"({"a": "\\s"})");
}

TEST(JsonReaderTest, RefusesBrokenUtf8) {
  EXPECT_EQ(reread("{\"a\": \"\xC3\x28\"}"),
            "the body is not valid JSON: byte 0xc3, which is not UTF-8, at byte offset 7, in a");
  EXPECT_NE(reread("\xFF").find("byte 0xff found where a value should be"), std::string::npos);
  EXPECT_NE(reread("\"\xED\xA0\x80\"").find("not UTF-8"), std::string::npos);
}

TEST(JsonReaderTest, RefusesWhatIsNotJson) {
  for (const std::string_view text : {"",          "{",
                                      "[1,",       "[1 2]",
                                      "{\"a\" 1}", "{\"a\": 1,}",
                                      "[,]",       "{a: 1}",
                                      "'x'",       "NaN",
                                      "Infinity",  "-",
                                      "01",        "1.",
                                      ".5",        "1e",
                                      "+1",        "tru",
                                      "nul",       "\"a",
                                      "\"\\u12\"", "\"\n\"",
                                      "[1] x",     "\"\\\"",
                                      "--1",       "\"\\ud83d\\u12\""}) {
    EXPECT_FALSE(read_json(text, "x").has_value()) << text;
  }
}

TEST(JsonReaderTest, RefusesNumbersBeyondDouble) {
  EXPECT_EQ(reread(R"({"a": [1e400]})"),
            "the body is not valid JSON: a number that is too large for a double at byte offset 7, "
            "in a[0]");
  EXPECT_EQ(reread("[1e-400, -1e-400]"), "[0.0, -0.0]");
  EXPECT_EQ(reread("0." + std::string(500, '0') + "1e-3"), "0.0");
  EXPECT_EQ(reread("[0e99999999999999999999]"), "[0.0]");
  EXPECT_NE(reread("1e99999999999999999999").find("too large"), std::string::npos);
}

TEST(JsonReaderTest, StopsAtAFixedDepth) {
  const auto nested = [](std::size_t levels) {
    return std::string(levels, '[') + std::string(levels, ']');
  };
  EXPECT_TRUE(read_json(nested(512), "x").has_value());
  EXPECT_NE(reread(nested(100000)).find("more than 512 levels"), std::string::npos);
}

TEST(PythonJsonTest, WritesFloatsAsPythonDoes) {
  EXPECT_EQ(reread("[1.0, 1.50, 1e5, 1e-7, -0.0, 1e16, 1e22, 0.0001, 0.00001, 123456.789]"),
            "[1.0, 1.5, 100000.0, 1e-07, -0.0, 1e+16, 1e+22, 0.0001, 1e-05, 123456.789]");
  EXPECT_EQ(reread("[9999999999999998.0, 1.2345678901234568e17, 5e-324, 1.7976931348623157e308]"),
            "[9999999999999998.0, 1.2345678901234568e+17, 5e-324, 1.7976931348623157e+308]");
  EXPECT_EQ(reread("[1E2, 12e-1, 1e100, 0.1]"), "[100.0, 1.2, 1e+100, 0.1]");
}

TEST(PythonJsonTest, KeepsTheDigitsOfEveryInteger) {
  EXPECT_EQ(reread("[18446744073709551616, -9223372036854775809, -0, 0]"),
            "[18446744073709551616, -9223372036854775809, -0, 0]");
}

TEST(PythonJsonTest, EscapesOnlyWhatJsonMust) {
  EXPECT_EQ(reread("{\"\\u0007é\\u2028/\x7F\": \"\\\"\\\\\\n😀\"}"),
            "{\"\\u0007é\u2028/\x7F\": \"\\\"\\\\\\n😀\"}");
}

}  // namespace
}  // namespace locket::chat
