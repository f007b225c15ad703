// What a schema lets pass, byte by byte and as sets of tokens.
#include "chat/reply_parser.h"
#include "tests/chat/constraint_rows.h"

namespace locket::chat {
namespace {

using test_support::small_tokenizer;

void expect_fits(const std::string& schema, std::initializer_list<std::string_view> whole,
                 std::initializer_list<std::string_view> wrong) {
  TextProbe probe(schema_request(schema));
  for (const std::string_view text : whole) {
    EXPECT_EQ(probe.fit(text), Fit::kWhole) << schema << "\n" << text;
  }
  for (const std::string_view text : wrong) {
    EXPECT_NE(probe.fit(text), Fit::kWhole) << schema << "\n" << text;
  }
}

std::string refusal(const ChatRequest& request) {
  const auto grammar = compile(request);
  if (grammar) return "";
  EXPECT_EQ(grammar.error().code, ErrorCode::kBadRequest);
  return grammar.error().message;
}

void expect_refused(const std::string& schema, std::string_view part) {
  const std::string message = refusal(schema_request(schema));
  EXPECT_NE(message.find(part), std::string::npos) << schema << "\n" << message;
}

TEST(OutputConstraintTest, BindsNothingWhereNothingIsAskedFor) {
  ChatRequest request = chat_request();
  EXPECT_EQ(compile(request).value(), nullptr);
  Tool tool;
  tool.name = "f";
  request.tools.push_back(tool);
  EXPECT_EQ(compile(request).value(), nullptr);
  request.tools[0].is_strict = true;
  EXPECT_NE(compile(request).value(), nullptr);
}

TEST(OutputConstraintTest, TakesAnyObjectInJsonMode) {
  ChatRequest request = chat_request();
  request.response_format.kind = ResponseFormat::Kind::kJsonObject;
  TextProbe probe(request);
  for (const char* text :
       {"{}", "{ }", "\n\n{}", R"({"a": [1, -0.5e+10, true, null, "\u00e9\ud83d\ude00é😀\n"]})",
        "{\n  \"a\": {\n    \"b\": []\n  }\n}", R"({"":[[],{},""]})"}) {
    EXPECT_EQ(probe.fit(text), Fit::kWhole) << text;
  }
  for (const char* text : {"[]",
                           "1",
                           "\"a\"",
                           "{}}",
                           "{} ",
                           "{}\n",
                           "{a:1}",
                           R"({"a":01})",
                           R"({"a":.5})",
                           R"({"a":1,})",
                           R"({"a"})",
                           R"({"a":"\ud83d"})",
                           R"({"a":"\ude00"})",
                           "{\"a\":\"\n\"}",
                           "{\"a\":\"\xC3\"}",
                           "{\"a\":\"\xED\xA0\x80\"}",
                           R"({"a":"\x"})",
                           R"({"a":tru})",
                           "```json\n{}",
                           R"({"a":1e999})"}) {
    EXPECT_EQ(probe.fit(text), Fit::kNot) << text;
  }
}

TEST(OutputConstraintTest, BoundsEveryRunOfBlanks) {
  ChatRequest request = chat_request();
  request.response_format.kind = ResponseFormat::Kind::kJsonObject;
  TextProbe probe(request);
  for (const std::string start : {"", "{", "{\"a\":", "{\"a\":[1,", "{\"a\":1"}) {
    EXPECT_EQ(probe.fit(start + "  "), Fit::kNot) << start;
    EXPECT_EQ(probe.fit(start + "\n\n\n"), Fit::kNot) << start;
    EXPECT_EQ(probe.fit(start + "\n" + std::string(65, ' ')), Fit::kNot) << start;
    EXPECT_EQ(probe.fit(start + "\t"), Fit::kNot) << start;
  }
  EXPECT_EQ(probe.fit("{\n" + std::string(64, ' ')), Fit::kBeginning);
}

TEST(OutputConstraintTest, NestsSixtyFourDeepAndCanAlwaysFinish) {
  ChatRequest request = chat_request();
  request.response_format.kind = ResponseFormat::Kind::kJsonObject;
  TextProbe probe(request);
  const auto nested = [](std::size_t lists) {
    return "{\"a\":" + std::string(lists, '[') + std::string(lists, ']') + "}";
  };
  EXPECT_EQ(probe.fit(nested(63)), Fit::kWhole);
  EXPECT_EQ(probe.fit(nested(64)), Fit::kNot);
  // Each level needs two more, so it must stop being opened before the limit.
  TextProbe deep(schema_request(
      R"({"type":"object","properties":{"v":{"type":"array","minItems":1,"items":{"type":"array"}},)"
      R"("c":{"$ref":"#"}},"required":["v"]})"));
  std::string text;
  std::size_t depth = 0;
  for (; deep.fit(text + R"({"v":[[]],"c":)") != Fit::kNot; ++depth) text += R"({"v":[[]],"c":)";
  EXPECT_EQ(depth, 61U);
  std::string whole = text + R"({"v":[[]]})" + std::string(depth, '}');
  EXPECT_EQ(deep.fit(whole), Fit::kWhole);
}

TEST(OutputConstraintTest, WritesTheMembersOfASchemaInOrderAndOnce) {
  expect_fits(R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"null"},)"
              R"("c":{"type":"boolean"}},"required":["b"],"additionalProperties":false})",
              {R"({"a":1,"b":null,"c":true})", R"({"b":null})", R"({"b": null, "c": false})",
               R"({"a":-12,"b":null})", "{\n \"b\": null\n}"},
              {"{}", R"({"a":1})", R"({"b":null,"a":1})", R"({"b":null,"b":null})",
               R"({"b":null,"x":1})", R"({"a":1.5,"b":null})", R"({"b":null,})", "{,}"});
}

TEST(OutputConstraintTest, AllowsOtherMembersUnderOtherNamesOnly) {
  expect_fits(
      R"({"type":"object","properties":{"ab":{"type":"integer"}},"required":["ab"],)"
      R"("additionalProperties":{"type":"string"}})",
      {R"({"ab":1})", R"({"ab":1,"a":"x"})", R"({"ab":1,"abc":"x","é":"y"})", R"({"ab":1,"":"x"})"},
      {R"({"ab":1,"ab":"x"})", R"({"ab":1,"c":2})", R"({"c":"x","ab":1})",
       R"({"ab":1,"\u0061b":"x"})"});
  expect_fits(R"({"type":"object","additionalProperties":{"type":"integer"}})",
              {"{}", R"({"a":1})", R"({"a":1,"b":2})"}, {R"({"a":"x"})"});
  expect_fits(R"({"type":"object","required":["z"],"additionalProperties":true})",
              {R"({"z":[1]})", R"({"z":1,"b":2})"}, {"{}", R"({"b":2})"});
}

TEST(OutputConstraintTest, CountsCharactersAndItems) {
  expect_fits(R"({"type":"string","minLength":2,"maxLength":3})",
              {R"("ab")", R"("é😀x")", R"("\n\u00e9\ud83d\ude00")"},
              {R"("a")", R"("abcd")", R"("")", R"("\n")"});
  expect_fits(R"({"type":"string","minLength":2})", {R"("ab")", R"("abcdefgh")"}, {R"("a")"});
  expect_fits(R"({"type":"array","items":{"type":"integer"},"minItems":1,"maxItems":2})",
              {"[1]", "[1,2]", "[1, 2]", "[\n 1\n]"}, {"[]", "[1,2,3]", "[1,]"});
  expect_fits(R"({"type":"array","items":{"type":"integer"},"minItems":2})", {"[1,2]", "[1,2,3,4]"},
              {"[1]", "[]"});
  expect_fits(R"({"type":"array","maxItems":0})", {"[]", "[ ]"}, {"[1]"});
}

TEST(OutputConstraintTest, KeepsIntegersWithinTheirBounds) {
  for (const auto& [low, high] : {std::pair{-12, 34}, {0, 9}, {-100, -98}, {7, 1003}, {-5, 0}}) {
    TextProbe probe(schema_request(R"({"type":"integer","minimum":)" + std::to_string(low) +
                                   R"(,"maximum":)" + std::to_string(high) + "}"));
    TextProbe open(schema_request(R"({"type":"integer","exclusiveMinimum":)" + std::to_string(low) +
                                  R"(,"exclusiveMaximum":)" + std::to_string(high) + "}"));
    for (int value = -1100; value <= 1100; ++value) {
      const bool fits = low <= value && value <= high;
      EXPECT_EQ(probe.fit(std::to_string(value)) == Fit::kWhole, fits) << value;
      EXPECT_EQ(open.fit(std::to_string(value)) == Fit::kWhole, low < value && value < high);
    }
    EXPECT_EQ(probe.fit("-0"), Fit::kNot);
  }
  TextProbe multiples(schema_request(R"({"type":"integer","multipleOf":7,"minimum":-50})"));
  for (int value = -200; value <= 2000; ++value) {
    EXPECT_EQ(multiples.fit(std::to_string(value)) == Fit::kWhole, value % 7 == 0 && value >= -50);
  }
}

TEST(OutputConstraintTest, KeepsNumbersWithinTheirBounds) {
  TextProbe probe(schema_request(R"({"type":"number","minimum":-1.25,"exclusiveMaximum":30.5})"));
  for (int hundredths = -300; hundredths <= 4000; ++hundredths) {
    const double value = hundredths / 100.0;
    const bool fits = value >= -1.25 && value < 30.5;
    for (const int places : {2, 4}) {
      std::array<char, 32> text{};
      std::snprintf(text.data(), text.size(), "%.*f", places, value);
      EXPECT_EQ(probe.fit(text.data()) == Fit::kWhole, fits) << text.data();
    }
  }
  expect_fits(R"({"type":"number","exclusiveMaximum":0})", {"-1", "-0.001", "-20.5"},
              {"0", "-0", "-0.0", "0.0", "1"});
  expect_fits(R"({"type":"number","multipleOf":0.25,"minimum":0})", {"0", "0.25", "1.50", "10.75"},
              {"0.1", "1.3", "-0.25", "0.255"});
  expect_fits(R"({"type":"number","minimum":1e2})", {"100", "100.0", "1000.5"}, {"99.9", "10"});
}

TEST(OutputConstraintTest, FollowsPatternsWithoutGoingBack) {
  expect_fits(R"({"type":"string","pattern":"^[a-c]+(x|yz){2,3}\\d?$"})",
              {R"("axx")", R"("abcyzx7")", R"("ayzyzyz")"},
              {R"("xx")", R"("ax")", R"("axx77")", R"("Axx")", R"("axxxx")"});
  expect_fits(R"({"type":"string","pattern":"ab|^c$"})", {R"("xxabyy")", R"("ab")", R"("c")"},
              {R"("cc")", R"("a")"});
  expect_fits(R"({"type":"string","pattern":"^[\"\\\\\\n]é.$"})",
              {R"("\"é😀")", R"("\\éx")", R"("\néx")"}, {R"("né?")", R"("\u0022éx")"});
  expect_fits(R"({"type":"string","pattern":"^[a-z]+$","minLength":2,"maxLength":4})",
              {R"("ab")", R"("abcd")"}, {R"("a")", R"("abcde")", R"("a1")"});
  // Takes exponential time in an engine that goes back.
  TextProbe probe(schema_request(R"({"type":"string","pattern":"^(a+)+(a|aa)*b$"})"));
  EXPECT_EQ(probe.fit("\"" + std::string(20'000, 'a') + "b\""), Fit::kWhole);
}

TEST(OutputConstraintTest, KnowsTheFormatsOfTheSubset) {
  const auto format = [](std::string name) {
    return R"({"type":"string","format":")" + name + "\"}";
  };
  expect_fits(format("email"), {R"("a.b+c@example.com")"},
              {R"("a@b")", R"("@x.de")", R"("a b@c.d")"});
  expect_fits(format("hostname"), {R"("a-1.example.org")"}, {R"("-a")", R"("a..b")", R"("")"});
  expect_fits(format("ipv4"), {R"("0.255.10.99")"},
              {R"("256.1.1.1")", R"("1.2.3")", R"("01.2.3.4")"});
  expect_fits(format("ipv6"), {R"("::")", R"("fe80::1")", R"("1:2:3:4:5:6:7:8")", R"("::ffff:a")"},
              {R"("1::2::3")", R"("1:2:3")", R"("12345::")"});
  expect_fits(format("uuid"), {R"("123e4567-e89b-12d3-a456-426614174000")"}, {R"("123e4567")"});
  expect_fits(format("date-time"),
              {R"("2026-11-30T01:02:03Z")", R"("2026-11-30T01:02:03.5+01:00")"},
              {R"("2026-11-31T01:02:03Z")", R"("2026-02-30T01:02:03Z")", R"("2026-11-30")"});
}

TEST(OutputConstraintTest, ChoosesBetweenAlternativesAndFixedValues) {
  expect_fits(R"({"enum":["a","ab",1,1.50,null,{"k":[1,2]},"é\"\n"]})",
              {R"("a")", R"("ab")", "1", "1.5", "null", R"({"k": [1, 2]})", R"("é\"\n")"},
              {R"("b")", "2", "true", R"("")"});
  expect_fits(R"({"type":"string","enum":["a",1]})", {R"("a")"}, {"1"});
  expect_fits(R"({"const":"x"})", {R"("x")"}, {R"("y")"});
  expect_fits(R"({"type":["integer","null"]})", {"5", "null"}, {"5.5", R"("a")"});
  expect_fits(
      R"({"anyOf":[{"type":"object","properties":{"t":{"const":"a"},"n":{"type":"integer"}},)"
      R"("required":["t","n"]},{"type":"object","properties":{"t":{"const":"b"}},)"
      R"("required":["t"]},{"type":"null"}]})",
      {R"({"t":"a","n":1})", R"({"t":"b"})", "null"}, {R"({"t":"b","n":1})", R"({"t":"a"})"});
}

TEST(OutputConstraintTest, FollowsReferencesAlsoToItself) {
  const std::string tree =
      R"({"$defs":{"tree":{"type":"object","properties":{"v":{"type":"integer"},"kids":)"
      R"({"type":"array","items":{"$ref":"#/$defs/tree"}}},"required":["v"]}},"$ref":"#/$defs/tree"})";
  expect_fits(tree, {R"({"v":1})", R"({"v":1,"kids":[{"v":2},{"v":3,"kids":[]}]})"},
              {R"({"kids":[]})", R"({"v":1,"kids":[1]})"});
  // An alternative that is only the schema itself adds nothing.
  expect_fits(R"({"anyOf":[{"$ref":"#"},{"type":"integer"}]})", {"5"}, {"null"});
}

TEST(OutputConstraintTest, RefusesWhatItDoesNotKnowAndSaysWhere) {
  const std::string at = "response_format.json_schema.schema";
  expect_refused(R"({"type":"object","properties":{"a":{"type":"array","uniqueItems":true}}})",
                 at + ".properties.a.uniqueItems is not supported");
  expect_refused(R"j({"type":"string","pattern":"(?=a)"})j", at + ".pattern has a (? that");
  expect_refused(R"({"type":"string","pattern":"a{9999}"})", "a repeat of more than 4096");
  expect_refused(R"({"type":"string","pattern":"(a{100}){100}"})", "more than 5000 states");
  expect_refused(R"({"type":"string","pattern":"\\bx"})", "\\b, which is not supported");
  expect_refused(R"({"type":"string","format":"uri"})", "uri\"; it must be one of email");
  expect_refused(R"({"type":"string","maxLength":100000})", "an integer from 0 to 8192");
  expect_refused(R"({"type":"strin"})", at + ".type is \"strin\"");
  expect_refused(R"({"$ref":"#/$defs/x"})", at + ".$ref is");
  expect_refused(R"({"$ref":"http://x"})", at + ".$ref is");
  expect_refused(R"({"type":"string","anyOf":[{"minLength":1}]})", "stands beside anyOf");
  expect_refused(R"({"type":"number","multipleOf":0.0000001})", at + ".multipleOf");
  expect_refused(R"({"type":"integer","minimum":5,"maximum":4})", "contradicts itself");
  expect_refused(R"({"$ref":"#"})", "contradicts itself or has no end");
  expect_refused(R"({"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]})",
                 "has no end");
  expect_refused(R"({"type":"object","required":["a"],"additionalProperties":false})",
                 at + ".required is \"a\"");
}

TEST(OutputConstraintTest, RefusesHostileSchemasQuickly) {
  std::string many = R"({"enum":[0)";
  for (int index = 1; index < 10'000; ++index) many += "," + std::to_string(index);
  TextProbe probe(schema_request(many + "]}"));
  EXPECT_EQ(probe.fit("9999"), Fit::kWhole);
  EXPECT_EQ(probe.fit("10000"), Fit::kNot);
  expect_refused(R"({"enum":[")" + std::string(70'000, 'x') + "\"]}", "at most 65536 are allowed");
  std::string deep;
  for (int level = 0; level < 30'000; ++level) deep += R"({"items":)";
  EXPECT_NE(refusal(schema_request(deep)), "");
  std::string wide = R"({"type":"object","properties":{)";
  for (int index = 0; index < 100; ++index) {
    wide += (index == 0 ? "\"" : ",\"") + std::to_string(index) +
            R"(":{"type":"array","items":{"type":"integer"},"maxItems":)" +
            std::to_string(8000 + index) + "}";
  }
  expect_refused(wide + "}}", "more than 200000 states");
}

// Each level doubles the ways to read the text.
TEST(OutputConstraintTest, KeepsAmbiguousSchemasSmall) {
  std::string schema = R"({"$defs":{)";
  schema += R"("a":{"anyOf":[{"type":"array","items":{"$ref":"#/$defs/a"}},)"
            R"({"type":"array","items":{"$ref":"#/$defs/b"}}]},)";
  schema += R"("b":{"anyOf":[{"type":"array","items":{"$ref":"#/$defs/a"},"maxItems":3},)"
            R"({"type":"array","items":{"$ref":"#/$defs/b"}}]}},"$ref":"#/$defs/a"})";
  TextProbe probe(schema_request(schema));
  EXPECT_EQ(probe.fit(std::string(60, '[') + std::string(60, ']')), Fit::kWhole);
  const auto grammar = compile(schema_request(schema)).value();
  RandomWriter writer(small_tokenizer(), 1);
  for (int round = 0; round < 5; ++round) EXPECT_TRUE(writer.write(grammar).has_value());
}

TEST(OutputConstraintTest, GoesOnWhereTheClientsBeginningEnds) {
  ChatRequest request =
      schema_request(R"({"type":"object","properties":{"a":{"enum":["x","y"]}},"required":["a"]})");
  Message message = text_message(Role::kAssistant, R"({"a":)");
  message.is_unfinished = true;
  request.messages.push_back(message);
  RandomWriter writer(small_tokenizer(), 3);
  const std::string text = writer.write(compile(request).value()).value();
  EXPECT_TRUE(text.find("x\"") != std::string::npos || text.find("y\"") != std::string::npos);
  request.messages.back().content[0].text = R"({"b":)";
  EXPECT_NE(refusal(request).find("messages[1].content is no beginning"), std::string::npos);
}

TEST(OutputConstraintTest, LeavesReasoningFreeAndBindsTheAnswer) {
  ChatRequest request = chat_request();
  request.thinking = ThinkingMode::kThinking;
  request.response_format.kind = ResponseFormat::Kind::kJsonObject;
  const auto grammar = compile(request).value();
  const auto end = *small_tokenizer().find_added_token(kEndOfSentence);
  const auto close = *small_tokenizer().find_added_token(kThinkClose);
  const auto tokens = std::make_shared<const TokenBytes>(small_tokenizer(), end);
  OutputConstraint constraint(grammar, tokens);
  for (const tokenizer::TokenId token : small_tokenizer().encode_text("Hm [1, \n\n\n {} </th é ")) {
    ASSERT_TRUE(has_token(constraint.allowed(), token));
    EXPECT_FALSE(has_token(constraint.allowed(), end));
    constraint.advance(token);
  }
  ASSERT_TRUE(has_token(constraint.allowed(), close));
  constraint.advance(close);
  EXPECT_FALSE(has_token(constraint.allowed(), close));
  EXPECT_FALSE(has_token(constraint.allowed(), end));
  for (const tokenizer::TokenId token : small_tokenizer().encode_text("{\"a\": 1}")) {
    ASSERT_TRUE(has_token(constraint.allowed(), token));
    EXPECT_FALSE(constraint.is_complete());
    constraint.advance(token);
  }
  EXPECT_TRUE(constraint.is_complete());
  std::size_t allowed = 0;
  for (const std::uint64_t word : constraint.allowed()) {
    allowed += static_cast<std::size_t>(__builtin_popcountll(word));
  }
  EXPECT_EQ(allowed, 1U);
  EXPECT_TRUE(has_token(constraint.allowed(), end));
}

TEST(OutputConstraintTest, TakesASpelledThinkCloseForTheEndOfReasoning) {
  ChatRequest request = chat_request();
  request.thinking = ThinkingMode::kThinking;
  request.response_format.kind = ResponseFormat::Kind::kJsonObject;
  const auto grammar = compile(request).value();
  const auto end = *small_tokenizer().find_added_token(kEndOfSentence);
  OutputConstraint constraint(grammar, std::make_shared<const TokenBytes>(small_tokenizer(), end));
  for (const tokenizer::TokenId token : small_tokenizer().encode_text("so</think>")) {
    constraint.advance(token);
  }
  const tokenizer::TokenId letter = small_tokenizer().encode_text("a")[0];
  const tokenizer::TokenId brace = small_tokenizer().encode_text("{")[0];
  EXPECT_FALSE(has_token(constraint.allowed(), letter));
  EXPECT_TRUE(has_token(constraint.allowed(), brace));
}

TEST(OutputConstraintTest, IsFreeAfterATokenThatItDidNotAllow) {
  const auto grammar = compile(schema_request(R"({"type":"integer"})")).value();
  const auto end = *small_tokenizer().find_added_token(kEndOfSentence);
  OutputConstraint constraint(grammar, std::make_shared<const TokenBytes>(small_tokenizer(), end));
  constraint.advance(small_tokenizer().encode_text("x")[0]);
  EXPECT_TRUE(constraint.allowed().empty());
  EXPECT_FALSE(constraint.is_complete());
}

// The definition of a mask: a token is in it exactly if all its bytes fit one after the other.
TEST(OutputConstraintTest, MasksHoldExactlyTheTokensThatFit) {
  const std::string schema =
      R"({"type":"object","properties":{"a b":{"type":"string","maxLength":5},)"
      R"("n":{"type":"number","minimum":3},"l":{"type":"array","items":{"enum":["to","the"]}}}})";
  const std::string text = "{\n  \"a b\": \"the\", \"n\": 31.5, \"l\": [\"the\"]}";
  const auto grammar = compile(schema_request(schema)).value();
  TextProbe probe(schema_request(schema));
  const auto end = *small_tokenizer().find_added_token(kEndOfSentence);
  OutputConstraint constraint(grammar, std::make_shared<const TokenBytes>(small_tokenizer(), end));
  std::string before;
  for (const tokenizer::TokenId chosen : small_tokenizer().encode_text(text)) {
    const std::span<const std::uint64_t> mask = constraint.allowed();
    for (std::size_t id = 0; id < small_tokenizer().vocabulary_size(); ++id) {
      const auto token = static_cast<tokenizer::TokenId>(id);
      const std::string bytes = small_tokenizer().decode_bytes({&token, 1});
      const bool fits = !small_tokenizer().is_added_token(token) && !bytes.empty() &&
                        probe.fit(before + bytes) != Fit::kNot;
      ASSERT_EQ(has_token(mask, token), fits) << before << "|" << bytes;
    }
    constraint.advance(chosen);
    before += small_tokenizer().decode_bytes({&chosen, 1});
  }
  EXPECT_TRUE(constraint.is_complete());
}

}  // namespace
}  // namespace locket::chat
