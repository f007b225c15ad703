// Broken and hostile schemas and patterns: nothing crashes or runs away, every refusal is the
// request's fault and says so in valid text, and what compiles always leaves a way on.
#include <gtest/gtest.h>
#include <random>
#include <string>
#include <string_view>

#include "chat/internal/regex.h"
#include "chat/internal/schema_reader.h"
#include "chat/json_reader.h"
#include "tests/chat/constraint_rows.h"

namespace locket::chat {
namespace {

constexpr std::string_view kSeeds[] = {
    R"({"type":"object","properties":{"a":{"type":"string","minLength":2,"maxLength":9},"b":{"type":["integer","null"],"minimum":-3,"maximum":70,"multipleOf":5}},"required":["a"],"additionalProperties":{"type":"number","exclusiveMinimum":0.5}})",
    R"({"$ref":"#/$defs/a","$defs":{"a":{"anyOf":[{"type":"array","items":{"$ref":"#/$defs/a"},"minItems":1,"maxItems":3},{"type":"object","properties":{"é\"":{"$ref":"#"}}},{"enum":["x",1,null,{"k":[2]}]}]}}})",
    R"j({"type":"array","items":{"type":"string","pattern":"^(a|b[^c-e\\d])+(x{2,4}|\\u00e9?)$","minLength":3}})j",
    R"({"anyOf":[{"type":"string","format":"ipv6"},{"const":{"a":[1.5,"\u0001"]}},{"type":"boolean"},{"type":"string","format":"date-time"}]})"};

constexpr std::string_view kInserts[] = {
    "\"",     "{",          "}",       "[",         "]",    ",",        ":",
    "999999", "-",          ".",       "e",         "null", "true",     "\"$ref\":\"#\"",
    "\xFF",   "\\\\",       "(",       ")",         "*",    "{1,3000}", "\"minItems\":8192",
    "\"a\":", "\"type\"",   "anyOf",   "#/$defs/a", "8192", "\\\\x",    "|",
    "\"\"",   "properties", "pattern", "1e60",      "enum", "é",        "\\ud83d"};

constexpr std::string_view kWords[] = {
    "minLength", "maxLength", "minimum",     "maximum",  "multipleOf", "items",     "minItems",
    "maxItems",  "enum",      "const",       "anyOf",    "properties", "type",      "required",
    "pattern",   "format",    "\"integer\"", "\"null\"", "\"string\"", "\"array\"", "\"number\"",
    "2",         "3",         "9",           "70",       "0.5",        "-3"};

// Puts one word of a schema in place of another.
std::string swap_words(std::string text, std::mt19937& random) {
  const std::string_view old = kWords[random() % std::size(kWords)];
  const std::size_t at = text.find(old, random() % text.size());
  if (at != std::string::npos) text.replace(at, old.size(), kWords[random() % std::size(kWords)]);
  return text;
}

std::string mutate(std::string text, std::mt19937& random) {
  for (std::size_t count = random() % 4; count > 0; --count) text = swap_words(text, random);
  if (random() % 2 == 0) return text;
  const auto below = [&random](std::size_t limit) {
    return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random);
  };
  for (std::size_t edits = 1 + below(3); edits > 0 && !text.empty(); --edits) {
    const std::size_t at = below(text.size());
    switch (below(4)) {
      case 0:
        text.erase(at, 1 + below(5));
        break;
      case 1: {
        const std::size_t from = below(text.size());
        text.insert(at, text.substr(from, 1 + below(30)));
        break;
      }
      default:
        text.insert(at, kInserts[below(std::size(kInserts))]);
        break;
    }
  }
  return text;
}

void expect_good_error(const Error& error) {
  EXPECT_EQ(error.code, ErrorCode::kBadRequest) << error.message;
  EXPECT_FALSE(error.message.empty());
  EXPECT_EQ(tokenizer::repair_utf8(error.message), error.message);
}

// Random allowed tokens; there is always one, and each keeps the constraint.
void expect_ways_on(const std::shared_ptr<const ConstraintGrammar>& grammar,
                    const std::shared_ptr<const TokenBytes>& tokens, std::mt19937& random) {
  OutputConstraint constraint(grammar, tokens);
  for (int count = 0; count < 12; ++count) {
    const std::span<const std::uint64_t> mask = constraint.allowed();
    if (mask.empty()) return;
    std::vector<tokenizer::TokenId> fitting;
    for (std::size_t id = 0; id < tokens->vocabulary_size(); ++id) {
      const auto token = static_cast<tokenizer::TokenId>(id);
      if (has_token(mask, token)) fitting.push_back(token);
    }
    ASSERT_FALSE(fitting.empty());
    constraint.advance(fitting[random() % fitting.size()]);
  }
}

class ChatConstraintFuzzTest : public testing::Test {
 protected:
  const tokenizer::Tokenizer& tokenizer_ = test_support::small_tokenizer();
  std::shared_ptr<const TokenBytes> tokens_ =
      std::make_shared<const TokenBytes>(tokenizer_, *tokenizer_.find_added_token(kEndOfSentence));
};

TEST_F(ChatConstraintFuzzTest, NoSchemaBringsTheCompilerDown) {
  std::mt19937 random(20261205);
  std::size_t compiled = 0;
  std::size_t refused = 0;
  for (int round = 0; round < 4000; ++round) {
    const std::string text = mutate(std::string(kSeeds[random() % std::size(kSeeds)]), random);
    const auto grammar = compile(schema_request(text));
    if (!grammar) {
      ++refused;
      expect_good_error(grammar.error());
      continue;
    }
    ++compiled;
    if (round % 4 == 0) expect_ways_on(*grammar, tokens_, random);
  }
  EXPECT_GT(compiled, 200U);
  EXPECT_GT(refused, 200U);
}

// Of a loose tool nothing is refused that is JSON.
TEST_F(ChatConstraintFuzzTest, EveryLooseToolCanBeCalled) {
  std::mt19937 random(20261206);
  std::size_t compiled = 0;
  for (int round = 0; round < 3000; ++round) {
    const std::string text = mutate(std::string(kSeeds[random() % std::size(kSeeds)]), random);
    if (!read_json(text, "parameters")) continue;
    ChatRequest request = call_request(text, ToolChoice::Kind::kRequired);
    request.tools[0].is_strict = false;
    const auto grammar = compile(request);
    if (!grammar) {
      expect_good_error(grammar.error());
      // Only a schema that no value fits.
      EXPECT_NE(grammar.error().message.find("contradicts itself"), std::string::npos)
          << text << "\n"
          << grammar.error().message;
      continue;
    }
    ++compiled;
    if (round % 8 == 0) expect_ways_on(*grammar, tokens_, random);
  }
  EXPECT_GT(compiled, 300U);
}

TEST_F(ChatConstraintFuzzTest, NoPatternBringsTheReaderDown) {
  constexpr std::string_view kPieces[] = {
      "a",  "b",   "(",  ")",   "[",    "]",   "|",   "*",  "+",    "?",    "{2}", "{0,30}",
      "{",  "}",   "^",  "$",   "\\d",  "\\W", "\\",  "-",  "é",    ".",    "(?:", "(?<n>",
      "[^", "a-z", "\"", "\\u", "00e9", "\\S", "(?=", "]*", "{3,}", "\\\\", "😀",   "\\x41"};
  std::mt19937 random(20261207);
  std::size_t compiled = 0;
  for (int round = 0; round < 30'000; ++round) {
    std::string pattern;
    for (std::size_t count = 1 + random() % 9; count > 0; --count) {
      pattern += kPieces[random() % std::size(kPieces)];
    }
    const Result<CharAutomaton> made = compile_regex(pattern);
    if (made) {
      ++compiled;
      EXPECT_LE(made->states.size(), kMaxPatternStates + 64);
    } else {
      expect_good_error(made.error());
    }
  }
  EXPECT_GT(compiled, 1000U);
}

}  // namespace
}  // namespace locket::chat
