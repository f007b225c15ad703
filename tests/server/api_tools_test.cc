// Calls of tools over HTTP: offered, forced, streamed, cut, and sent back by clients.
#include <set>

#include "tests/server/api_fixture.h"

namespace locket::server {
namespace {

using ::testing::MatchesRegex;

Json tool(const std::string& name, const Json& properties) {
  Json required = Json::array();
  for (const auto& [key, value] : properties.items()) required.push_back(key);
  return {{"type", "function"},
          {"function",
           {{"name", name},
            {"description", "Does " + name},
            {"parameters",
             {{"type", "object"},
              {"properties", properties},
              {"required", required},
              {"additionalProperties", false}}}}}};
}
const Json& weather_tools() {
  static const Json tools = Json::array(
      {tool("get_weather", {{"city", {{"type", "string"}, {"enum", {"Rome"}}}},
                            {"days", {{"type", "integer"}, {"minimum", 1}, {"maximum", 1}}}})});
  return tools;
}
const Json& named_weather() {
  static const Json choice = {{"type", "function"}, {"function", {{"name", "get_weather"}}}};
  return choice;
}
// A question that must be answered by exactly one call. It does not say whether to think.
Json call_body(const Json& more = Json::object()) {
  Json body = chat_body(
      "How is the weather?",
      {{"tools", weather_tools()}, {"tool_choice", named_weather()}, {"max_tokens", 400}});
  body.erase("thinking");
  return with(body, more);
}
Json call_of(const Json& body) { return body["choices"][0]["message"]["tool_calls"][0]; }
std::string prompt_of(const Json& body) {
  return mini_server().ask("/v1/chat/completions/render", body)["prompt"].get<std::string>();
}

TEST(ApiToolsTest, ANamedChoiceIsOneCallOfThatTool) {
  const Json body = mini_server().ask(kChatPath, call_body());
  const Json& choice = body["choices"][0];
  EXPECT_EQ(choice["finish_reason"], "tool_calls");
  EXPECT_EQ(choice["message"]["content"], "");
  ASSERT_EQ(choice["message"]["tool_calls"].size(), 1U);
  const Json call = call_of(body);
  EXPECT_EQ(call["index"], 0);
  EXPECT_EQ(call["type"], "function");
  EXPECT_EQ(call["function"]["name"], "get_weather");
  EXPECT_EQ(call["function"]["arguments"], R"({"city":"Rome","days":1})");
}

TEST(ApiToolsTest, IdsCannotBeGuessed) {
  std::set<std::string> ids;
  for (int i = 0; i < 3; ++i) {
    const std::string id = call_of(mini_server().ask(kChatPath, call_body()))["id"];
    EXPECT_THAT(id, MatchesRegex("call_00_[A-Za-z0-9]{24}"));
    ids.insert(id);
  }
  EXPECT_EQ(ids.size(), 3U);
}

TEST(ApiToolsTest, AStreamNamesACallOnceAndThenItsArguments) {
  const HttpReply reply = stream_reply(mini_server(), kChatPath, call_body());
  const StreamCheck check = checked(kChatPath, reply.body);
  std::size_t names = 0;
  std::string arguments;
  for (const auto& event : test_support::read_event_stream(reply.body).events) {
    if (event.data == "[DONE]") continue;
    const Json delta = Json::parse(event.data)["choices"][0]["delta"];
    if (!delta.contains("tool_calls")) continue;
    const Json call = delta["tool_calls"][0];
    EXPECT_EQ(call["index"], 0);
    names += call.contains("id") ? 1 : 0;
    EXPECT_EQ(call.contains("id"), call["function"].contains("name"));
    EXPECT_EQ(call.contains("id"), call["function"]["arguments"] == "");
    arguments += call["function"]["arguments"].get<std::string>();
  }
  EXPECT_EQ(names, 1U);
  EXPECT_EQ(arguments, R"({"city":"Rome","days":1})");
  EXPECT_EQ(check.body["choices"][0]["finish_reason"], "tool_calls");
}

TEST(ApiToolsTest, RequiredBeginsWithACall) {
  const Json answer = mini_server().ask(kChatPath, call_body({{"tool_choice", "required"}}));
  EXPECT_FALSE(answer["choices"][0]["message"]["tool_calls"].empty());
  expect_refused(mini_server().post(kChatPath, call_body({{"thinking", {{"type", "enabled"}}}})),
                 400, "tool_choice asks for a call, which thinking mode does not allow");
  const Json unknown = {{"type", "function"}, {"function", {{"name", "nothing"}}}};
  expect_refused(mini_server().post(kChatPath, call_body({{"tool_choice", unknown}})), 400,
                 "nothing");
}

// Case C22.
TEST(ApiToolsTest, C22AChoiceOfNoneShowsNoTool) {
  const Json body = call_body({{"tool_choice", "none"}, {"reasoning_effort", "none"}});
  EXPECT_EQ(prompt_of(body), prompt_of(chat_body("How is the weather?")));
  const Json answer = mini_server().ask(kChatPath, body);
  EXPECT_EQ(answer["choices"][0]["message"].count("tool_calls"), 0U);
  EXPECT_THAT(content_of(answer), ::testing::Not(HasSubstr("DSML")));
}

// Case D26.
TEST(ApiToolsTest, D26EmptyToolsAreNoTools) {
  const std::string without = prompt_of(chat_body("Hello!"));
  for (const Json& none : {Json::array(), Json(nullptr)}) {
    EXPECT_EQ(prompt_of(chat_body("Hello!", {{"tools", none}})), without);
    expect_refused(mini_server().post(
                       kChatPath, chat_body("x", {{"tools", none}, {"tool_choice", "required"}})),
                   400, "the request has no tools");
  }
}

TEST(ApiToolsTest, BoundsTheirNumberAndNames) {
  Json tools = Json::array();
  for (int i = 0; i < 128; ++i) tools.push_back(tool(fmt::format("f{}", i), Json::object()));
  const auto reply = [](const Json& offered) {
    return mini_server().post("/v1/chat/completions/render", chat_body("x", {{"tools", offered}}));
  };
  EXPECT_EQ(reply(tools).status, 200);
  tools.push_back(tool("one_more", Json::object()));
  expect_refused(reply(tools), 400, "129");
  EXPECT_EQ(reply(Json::array({tool(std::string(64, 'a'), Json::object())})).status, 200);
  for (const std::string& name : {std::string(65, 'a'), std::string("a b"), std::string()}) {
    expect_refused(reply(Json::array({tool(name, Json::object())})), 400, "tools[0].function.name");
  }
  const Json bare = {{"type", "function"}, {"function", {{"name", "f"}}}};
  EXPECT_EQ(reply(Json::array({bare})).status, 200);
}

TEST(ApiToolsTest, StrictIsAllOrNoneAndWhatItCannotKeepIsRefusedBeforeAnyWork) {
  Json tools = Json::array({tool("f", {{"s", {{"type", "string"}, {"minLength", 3}}}})});
  tools[0]["function"]["strict"] = true;
  const std::size_t steps = mini_server().load("steps");
  expect_refused(mini_server().post(kChatPath, chat_body("x", {{"tools", tools}})), 400,
                 "minLength is not allowed in a strict schema");
  tools[0]["function"]["parameters"]["properties"]["s"].erase("minLength");
  tools.push_back(tool("g", Json::object()));
  expect_refused(mini_server().post(kChatPath, chat_body("x", {{"tools", tools}})), 400,
                 "either all or none");
  EXPECT_EQ(mini_server().load("steps"), steps);
}

// The conversation in which the model has called the tool and the client answers.
Json second_turn(const Json& message, const Json& call_id, const std::string& result) {
  Json body = call_body({{"tool_choice", "auto"}, {"reasoning_effort", "none"}});
  body["messages"].push_back(message);
  body["messages"].push_back({{"role", "tool"}, {"tool_call_id", call_id}, {"content", result}});
  return body;
}

// What was sampled stands in the next prompt, however the client wrote the arguments again.
TEST(ApiToolsTest, ACallThatComesBackIsTheVeryTokensThatWereSampled) {
  const Json first = mini_server().ask(kChatPath, call_body());
  Json message = first["choices"][0]["message"];
  message["tool_calls"][0]["function"]["arguments"] = "{\"days\": 1, \"city\" : \"Rom\\u0065\"}";
  message.erase("content");
  const Json body = second_turn(message, call_of(first)["id"], "Sunny.");
  const PromptUse use = prompt_use(mini_server().ask(kChatPath, body));
  const std::size_t told = first["usage"]["total_tokens"];
  EXPECT_GE(use.hits + 1, told);
  // Other arguments are the client's own words.
  message["tool_calls"][0]["function"]["arguments"] = R"({"city":"Oslo","days":1})";
  const std::string prompt = prompt_of(second_turn(message, call_of(first)["id"], "Sunny."));
  EXPECT_THAT(prompt, HasSubstr("Oslo"));
}

// Cases C27 and, for null content, C23: every form that clients send is answered.
TEST(ApiToolsTest, C27OldReasoningMayComeBackOrNot) {
  for (const Json& reasoning : {Json("I look it up."), Json(""), Json(nullptr)}) {
    const Json call = {{"id", "call_1"},
                       {"type", "function"},
                       {"function", {{"name", "get_weather"}, {"arguments", "{}"}}}};
    Json message = {{"role", "assistant"},
                    {"content", nullptr},
                    {"reasoning_content", reasoning},
                    {"tool_calls", Json::array({call})}};
    Json body = second_turn(message, "call_1", "Sunny.");
    body.erase("reasoning_effort");
    body["max_tokens"] = 4;
    mini_server().ask(kChatPath, body);
    const std::string prompt = prompt_of(body);
    EXPECT_EQ(prompt.find("null"), std::string::npos);
    EXPECT_EQ(prompt.find("None"), std::string::npos);
    body["messages"][1].erase("reasoning_content");
    mini_server().ask(kChatPath, body);
  }
}

// Case C29.
TEST(ApiToolsTest, C29ACallCutByLengthIsNotReported) {
  const Json whole = mini_server().ask(kChatPath, call_body());
  const std::size_t tokens = whole["usage"]["completion_tokens"];
  ASSERT_GT(tokens, 20U);
  for (const std::size_t limit : {tokens / 3, tokens * 2 / 3, tokens - 2}) {
    const Json body = call_body({{"max_tokens", limit}});
    const Json answer = mini_server().ask(kChatPath, body);
    EXPECT_EQ(answer["choices"][0]["finish_reason"], "length") << limit;
    EXPECT_EQ(content_of(answer), "");
    const std::string text = stream_reply(mini_server(), kChatPath, body).body;
    const StreamCheck check = checked(kChatPath, text);
    EXPECT_EQ(check.body["choices"][0]["finish_reason"], "length");
    EXPECT_EQ(text.find("DSML"), std::string::npos);
  }
}

// Case C31: three turns, every answer sent back as it was.
TEST(ApiToolsTest, C31SeparatorsBeforeCallsDoNotPileUp) {
  Json body = call_body();
  for (int turn = 0; turn < 3; ++turn) {
    const Json answer = mini_server().ask(kChatPath, body);
    body["messages"].push_back(answer["choices"][0]["message"]);
    body["messages"].push_back(
        {{"role", "tool"}, {"tool_call_id", call_of(answer)["id"]}, {"content", "Sunny."}});
  }
  std::string prompt = prompt_of(body);
  prompt.erase(0, prompt.find("<｜User｜>"));
  const std::string block = "</think>\n\n<｜DSML｜ calls>\n";
  std::size_t blocks = 0;
  for (std::size_t at = prompt.find(block); at != std::string::npos;
       at = prompt.find(block, at + 1)) {
    ++blocks;
  }
  // A forced call that comes next has begun its own.
  EXPECT_EQ(blocks, 4U) << prompt;
  EXPECT_EQ(prompt.find("\n\n\n"), std::string::npos);
}

// Case D33: interrupted turns, results in another order, and a result of nobody's call.
TEST(ApiToolsTest, D33CallsWithoutResultsAreAnsweredAndLostCallsNamed) {
  Json calls = Json::array();
  for (const char* id : {"call_a", "call_b"}) {
    calls.push_back({{"id", id},
                     {"type", "function"},
                     {"function", {{"name", "get_weather"}, {"arguments", "{}"}}}});
  }
  const Json message = {{"role", "assistant"}, {"content", ""}, {"tool_calls", calls}};
  Json interrupted = second_turn(message, "call_b", "Sunny.");
  interrupted["messages"].push_back({{"role", "user"}, {"content", "Never mind."}});
  mini_server().ask(kChatPath, interrupted);
  const auto both = [&](const char* one, const char* two) {
    Json body = second_turn(message, one, std::string("result of ") + one);
    body["messages"].push_back(
        {{"role", "tool"}, {"tool_call_id", two}, {"content", std::string("result of ") + two}});
    return prompt_of(body);
  };
  EXPECT_EQ(both("call_b", "call_a"), both("call_a", "call_b"));
  expect_refused(mini_server().post(kChatPath, second_turn(message, "call_z", "x")), 400,
                 "\"call_z\"");
}

}  // namespace
}  // namespace locket::server
