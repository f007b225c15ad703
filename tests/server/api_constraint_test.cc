// Answers that are bound to JSON or to a schema, over HTTP.
#include "tests/server/api_fixture.h"
#include "tests/support/sanitizer.h"

namespace locket::server {
namespace {

Json format_of(const Json& schema, bool is_strict = true) {
  return {{"type", "json_schema"},
          {"json_schema", {{"name", "x"}, {"strict", is_strict}, {"schema", schema}}}};
}
Json object_schema(const Json& properties) {
  Json required = Json::array();
  for (const auto& [key, value] : properties.items()) required.push_back(key);
  return {{"type", "object"},
          {"properties", properties},
          {"required", required},
          {"additionalProperties", false}};
}

// Free text of a hot sampler need not end soon.
int long_answer() { return test_support::runs_with_sanitizer() ? 400 : 3000; }

TEST(ApiConstraintTest, AJsonObjectIsOneValueAndThenTheEnd) {
  for (const double temperature : {0.0, 1.0, 2.0}) {
    const Json body = chat_body("Give me JSON.", {{"response_format", {{"type", "json_object"}}},
                                                  {"temperature", temperature},
                                                  {"seed", 3},
                                                  {"max_tokens", long_answer()}});
    const Json answer = mini_server().ask(kChatPath, body);
    if (answer["choices"][0]["finish_reason"] == "length") continue;  // a long string
    EXPECT_TRUE(Json::parse(content_of(answer), nullptr, false).is_object()) << answer;
  }
}

// Case D24: no word of JSON in the prompt; thinking is free, blanks are bounded.
TEST(ApiConstraintTest, D24JsonModeNeedsNoMagicWordAndLeavesThinkingFree) {
  const Json format = {{"response_format", {{"type", "json_object"}}}};
  const Json answer = mini_server().ask(kChatPath, chat_body("My cat is called Milo.", format));
  EXPECT_TRUE(Json::parse(content_of(answer), nullptr, false).is_object()) << answer;
  EXPECT_LT(answer["usage"]["completion_tokens"].get<int>(), 40);
  const Json thinking = with(format, {{"thinking", {{"type", "enabled"}}}, {"max_tokens", 30}});
  const Json thought = mini_server().ask(kChatPath, chat_body("My cat is called Milo.", thinking));
  const Json& message = thought["choices"][0]["message"];
  const std::string reasoning = message["reasoning_content"];
  EXPECT_NE(reasoning.find_first_not_of("{}[] \n\""), std::string::npos) << reasoning;
}

// The end of thinking is one token; biased, it comes at once and the answer begins.
TEST(ApiConstraintTest, TheAnswerBehindThinkingIsBound) {
  const Json ids = mini_server().ask("/v1/chat/completions/render", chat_body("x"))["tokens"];
  const std::string close = std::to_string(ids.back().get<int>());
  const Json schema = object_schema({{"n", {{"type", "integer"}, {"enum", {1, 2, 3}}}}});
  const Json body = chat_body("A number?", {{"thinking", {{"type", "enabled"}}},
                                            {"logit_bias", {{close, 100}}},
                                            {"response_format", format_of(schema, false)},
                                            {"max_tokens", 100}});
  const Json answer = mini_server().ask(kChatPath, body);
  EXPECT_EQ(answer["choices"][0]["finish_reason"], "stop");
  const Json value = Json::parse(content_of(answer), nullptr, false);
  ASSERT_TRUE(value.is_object()) << answer;
  EXPECT_GE(value["n"], 1);
  EXPECT_LE(value["n"], 3);
}

// Case C05: characters of several tokens arrive whole, streamed or not.
TEST(ApiConstraintTest, C05CharactersOfSeveralTokensComeWhole) {
  const std::string text = "😀 国 🇮🇹 “é”";
  const Json schema = object_schema({{"t", {{"type", "string"}, {"enum", {text}}}}});
  const Json body =
      chat_body("Say it.", {{"response_format", format_of(schema)}, {"max_tokens", 200}});
  for (const Json& answer :
       {mini_server().ask(kChatPath, body), streamed(mini_server(), kChatPath, body)}) {
    EXPECT_EQ(Json::parse(content_of(answer))["t"], text);
  }
  for (const auto& event :
       test_support::read_event_stream(stream_reply(mini_server(), kChatPath, body).body).events) {
    EXPECT_EQ(event.data.find("\xef\xbf\xbd"), std::string::npos) << event.data;
  }
}

// Case C08: the answer ends by its limit inside a character.
TEST(ApiConstraintTest, C08AnEndInsideACharacterIsRepairedAndSaid) {
  const Json schema = object_schema({{"t", {{"type", "string"}, {"enum", {"😀😀😀😀"}}}}});
  bool is_cut_inside = false;
  for (int limit = 6; limit < 20; ++limit) {
    const Json body =
        chat_body("Say it.", {{"response_format", format_of(schema)}, {"max_tokens", limit}});
    const Json stream = streamed(mini_server(), kChatPath, body);
    const std::string text = content_of(stream);
    if (text.find("\xef\xbf\xbd") == std::string::npos) continue;
    is_cut_inside = true;
    EXPECT_EQ(stream["choices"][0]["finish_reason"], "length");
    EXPECT_EQ(content_of(mini_server().ask(kChatPath, body)), text);
  }
  EXPECT_TRUE(is_cut_inside);
}

TEST(ApiConstraintTest, ASchemaBindsStreamsAndBodiesOfAnyTemperature) {
  const Json schema =
      object_schema({{"name", {{"type", "string"}, {"enum", {"Ann", "Bob"}}}},
                     {"tags", {{"type", "array"}, {"items", {{"type", "boolean"}}}}}});
  const int seeds = test_support::runs_with_sanitizer() ? 1 : 4;
  for (int seed = 0; seed < seeds; ++seed) {
    const Json body = chat_body("Who?", {{"response_format", format_of(schema)},
                                         {"temperature", 1.5},
                                         {"seed", seed},
                                         {"max_tokens", long_answer()}});
    const Json whole = mini_server().ask(kChatPath, body);
    EXPECT_EQ(content_of(streamed(mini_server(), kChatPath, body)), content_of(whole));
    if (whole["choices"][0]["finish_reason"] == "length") continue;
    const Json value = Json::parse(content_of(whole), nullptr, false);
    ASSERT_TRUE(value.is_object()) << whole;
    EXPECT_TRUE(value["name"] == "Ann" || value["name"] == "Bob");
    for (const Json& tag : value["tags"]) EXPECT_TRUE(tag.is_boolean());
  }
}

TEST(ApiConstraintTest, TheGuidesOfOtherServersWork) {
  const Json schema = object_schema({{"n", {{"type", "integer"}, {"enum", {7}}}}});
  for (const Json& more :
       {Json{{"guided_json", schema}}, Json{{"structured_outputs", {{"json", schema}}}}}) {
    const Json body = chat_body("A number?", with(more, {{"max_tokens", 200}}));
    EXPECT_EQ(Json::parse(content_of(mini_server().ask(kChatPath, body)))["n"], 7);
  }
  for (const char* name : {"guided_regex", "guided_choice", "guided_grammar"}) {
    const Json value = name == std::string("guided_choice") ? Json::array({"a"}) : Json("a+");
    expect_refused(mini_server().post(kChatPath, chat_body("x", {{name, value}})), 400, name);
  }
}

TEST(ApiConstraintTest, WhatCannotBeKeptIsRefusedBeforeAnyWork) {
  const std::size_t steps = mini_server().load("steps");
  const Json strict = object_schema({{"s", {{"type", "string"}, {"maxLength", 3}}}});
  expect_refused(
      mini_server().post(kChatPath, chat_body("x", {{"response_format", format_of(strict)}})), 400,
      "maxLength");
  Json deep = {{"type", "integer"}};
  for (int i = 0; i < 140; ++i) deep = {{"type", "array"}, {"items", deep}};
  EXPECT_EQ(mini_server()
                .post(kChatPath, chat_body("x", {{"response_format", format_of(deep, false)}}))
                .status,
            400);
  expect_refused(
      mini_server().post(kChatPath, chat_body("x", {{"response_format", {{"type", "yaml"}}}})), 400,
      "response_format.type is \"yaml\"");
  EXPECT_EQ(mini_server().load("steps"), steps);
  EXPECT_EQ(mini_server().get("/health").status, 200);
}

}  // namespace
}  // namespace locket::server
