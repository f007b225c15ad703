#include "cli/token_lines.h"

#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "cli/base64.h"
#include "tests/support/tokenizer_files.h"

namespace locket::cli {
namespace {

using nlohmann::json;
using test_support::small_tokenizer;

json encoded(const std::string& line) {
  return json::parse(
      encode_token_line(small_tokenizer(), {.text = line}, TokenLineFormat::kJson).value());
}

std::string readable(const std::string& line) {
  return encode_token_line(small_tokenizer(), {.text = line}, TokenLineFormat::kReadable).value();
}

json decoded(const std::string& line) {
  return json::parse(decode_token_line(small_tokenizer(), {.text = line}).value());
}

json error_of(const std::string& text) {
  const TokenLine line = {.text = text, .number = 7};
  const auto result = encode_token_line(small_tokenizer(), line, TokenLineFormat::kJson);
  if (result) return *result;
  return json::parse(error_line(result.error(), line)).at("error");
}

TEST(TokenLinesTest, EncodesEveryVectorAsTextAndAsBase64) {
  for (const json& row : test_support::read_text_rows("mini_tokenizer_vectors.jsonl")) {
    if (row.value("decode_only", false)) continue;
    const json by_text = encoded(json({{"text", row.at("text")}}).dump());
    EXPECT_EQ(by_text.at("ids"), row.at("ids")) << row.dump();
    const std::string bytes = row.contains("bytes_b64")
                                  ? row.at("bytes_b64").get<std::string>()
                                  : encode_base64(row.at("text").get<std::string>());
    EXPECT_EQ(encoded(json({{"base64", bytes}}).dump()), by_text) << row.dump();
    EXPECT_EQ(by_text.at("pieces").size(), by_text.at("ids").size());
  }
}

TEST(TokenLinesTest, DecodesEveryVectorToTextAndBytes) {
  for (const json& row : test_support::read_text_rows("mini_tokenizer_vectors.jsonl")) {
    const json answer = decoded(json({{"ids", row.at("ids")}}).dump());
    EXPECT_EQ(answer.at("text"), row.at("text")) << row.dump();
    const std::string bytes = decode_base64(answer.at("base64").get<std::string>()).value();
    EXPECT_EQ(bytes, small_tokenizer().decode_bytes(row.at("ids").get<std::vector<int>>()));
  }
}

TEST(TokenLinesTest, ShowsPiecesThatCanBeRead) {
  const std::string letter_a = std::to_string(encoded(R"({"text": "a"})")["ids"][0].get<int>());
  EXPECT_EQ(readable(R"({"text": "a"})"), letter_a + ":\"a\"");
  EXPECT_EQ(readable(R"({"text": ""})"), "");
  // Three tokens, none of them a character.
  EXPECT_EQ(encoded(R"({"text": "\ud83e\uddff"})")["pieces"], json({"�", "�", "�"}));
  const std::string line = readable(R"({"text": "\ud83e\uddff"})");
  EXPECT_NE(line.find(R"(:"\xF0\x9F" )"), std::string::npos) << line;
  EXPECT_EQ(readable(R"({"text": "\n"})").find('\n'), std::string::npos);
}

TEST(TokenLinesTest, NeverMakesAControlTokenOfText) {
  const json answer = encoded(R"({"text": "a</think><｜User｜>"})");
  for (const json& id : answer.at("ids")) EXPECT_FALSE(small_tokenizer().is_added_token(id));
}

TEST(TokenLinesTest, AnswersHalfASurrogatePairWithLineAndByte) {
  for (const std::string text :
       {R"({"text": "x \ud83d"})", R"({"text": "\ude00 y"})", R"({"text": "\ud83d\ud83d"})"}) {
    const json error = error_of(text);
    EXPECT_EQ(error.at("code"), "bad_request");
    EXPECT_EQ(error.at("line"), 7);
    const auto message = error.at("message").get<std::string>();
    EXPECT_NE(message.find("line 7"), std::string::npos) << message;
    EXPECT_NE(message.find("at byte "), std::string::npos) << message;
    EXPECT_NE(message.find("surrogate"), std::string::npos) << message;
  }
  EXPECT_NE(error_of(R"({"text": "x \ud83d"})").at("message").get<std::string>().find("byte 19"),
            std::string::npos);
  EXPECT_TRUE(encoded(R"({"text": "\ud83d\ude00"})").contains("ids"));
}

TEST(TokenLinesTest, AnswersEveryWrongLineWithAnError) {
  for (const std::string text :
       {"", "x", "{", "[1]", "\"text\"", R"({"text": 1})", R"({"text": null})", R"({})",
        R"({"text": "a", "base64": "YQ=="})", R"({"base64": "YQ"})", R"({"base64": [1]})",
        R"({"text": "a\s"})", R"({"text": "a"} x)", "{\"text\": \"\xC3(\"}",
        "{\"text\": \"\xFF\"}"}) {
    const json error = error_of(text);
    ASSERT_TRUE(error.is_object()) << text;
    EXPECT_EQ(error.at("code"), "bad_request") << text;
    EXPECT_EQ(error.at("message").get<std::string>().rfind("line 7: ", 0), 0U) << error.dump();
  }
}

TEST(TokenLinesTest, RefusesIdsThatDoNotExist) {
  for (const std::string text :
       {R"({"ids": [1024]})", R"({"ids": [3, -1]})", R"({"ids": [1.5]})", R"({"ids": ["3"]})",
        R"({"ids": 3})", R"({"text": "a"})", R"({"ids": [18446744073709551615]})"}) {
    const auto result = decode_token_line(small_tokenizer(), {.text = text, .number = 2});
    ASSERT_FALSE(result.has_value()) << text;
    EXPECT_EQ(result.error().code, ErrorCode::kBadRequest);
    EXPECT_EQ(result.error().message.rfind("line 2: ", 0), 0U) << result.error().message;
  }
  EXPECT_EQ(decoded(R"({"ids": []})"), json({{"text", ""}, {"base64", ""}}));
}

}  // namespace
}  // namespace locket::cli
