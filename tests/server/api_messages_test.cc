// The Messages dialect over HTTP: what a request may say, and the shape of answers and streams.
#include "tests/server/api_fixture.h"

namespace locket::server {
namespace {

using ::testing::MatchesRegex;

constexpr const char* kHello = "Hello! How are you today?";

std::size_t tokens_of(const Json& body) {
  return mini_server().ask("/v1/messages/count_tokens", body)["input_tokens"];
}

TEST(ApiMessagesTest, AnAnswerHasTheShapeOfTheFormat) {
  const Json body = mini_server().ask(kMessagesPath, messages_body("Hello!"));
  EXPECT_THAT(body["id"].get<std::string>(), MatchesRegex("msg_[0-9a-f]{32}"));
  EXPECT_EQ(body["type"], "message");
  EXPECT_EQ(body["role"], "assistant");
  EXPECT_EQ(body["model"], "deepseek-flash");
  EXPECT_EQ(body["stop_reason"], "end_turn");
  EXPECT_TRUE(body["stop_sequence"].is_null());
  const Json block = {{"type", "text"}, {"text", kHello}};
  EXPECT_EQ(body["content"], Json::array({block}));
  for (const char* name : {"input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens",
                           "output_tokens"}) {
    EXPECT_TRUE(body["usage"][name].is_number()) << name;
  }
}

TEST(ApiMessagesTest, EveryPathOfTheDialectAnswers) {
  for (const char* path : {"/v1/messages", "/v1/messages?beta=true", "/anthropic/v1/messages",
                           "/anthropic/messages"}) {
    EXPECT_EQ(words_of(mini_server().ask(path, messages_body("Hello!"))), kHello) << path;
  }
}

TEST(ApiMessagesTest, NamesOfClaudeAreTakenAndOthersAreNot) {
  for (const char* name : {"claude-opus-4-5", "claude-sonnet-4-5[1m]", "claude-x",
                           "deepseek-flash[1m]", "deepseek-v4-flash"}) {
    const Json body = mini_server().ask(kMessagesPath, messages_body("Hello!", {{"model", name}}));
    EXPECT_EQ(words_of(body), kHello) << name;
  }
  const HttpReply reply =
      mini_server().post(kMessagesPath, messages_body("Hello!", {{"model", "gpt-9"}}));
  EXPECT_EQ(reply.status, 404);
  const Json error = Json::parse(reply.body);
  EXPECT_EQ(error["type"], "error");
  EXPECT_EQ(error["error"]["type"], "not_found_error");
  EXPECT_THAT(error["error"]["message"].get<std::string>(), HasSubstr("gpt-9"));
}

TEST(ApiMessagesTest, AStreamAddsUpToTheBody) {
  for (const Json& more :
       {Json::object(), Json({{"thinking", {{"type", "enabled"}, {"budget_tokens", 9}}}})}) {
    const Json question = messages_body("My cat is called Milo.", more);
    const Json whole = mini_server().ask(kMessagesPath, question);
    const Json stream = streamed(mini_server(), kMessagesPath, question);
    EXPECT_EQ(stream["content"], whole["content"]);
    EXPECT_EQ(stream["stop_reason"], whole["stop_reason"]);
    EXPECT_EQ(stream["usage"]["output_tokens"], whole["usage"]["output_tokens"]);
  }
}

TEST(ApiMessagesTest, EveryEventHasItsNameAndTheStreamItsOrder) {
  const HttpReply reply = stream_reply(mini_server(), kMessagesPath, messages_body("Hello!"));
  std::vector<std::string> names;
  for (const auto& event : test_support::read_event_stream(reply.body).events) {
    if (event.name != "content_block_delta") names.push_back(event.name);
    EXPECT_EQ(Json::parse(event.data)["type"], event.name);
  }
  EXPECT_THAT(names, ::testing::ElementsAre("message_start", "content_block_start",
                                            "content_block_stop", "message_delta", "message_stop"));
  EXPECT_EQ(reply.body.find("[DONE]"), std::string::npos);
}

// Case D10, as a body and as a stream.
TEST(ApiMessagesTest, D10AMatchedStopSequenceIsReported) {
  const Json body = messages_body("Hello!", {{"stop_sequences", {"never", "are"}}});
  for (const Json& answer :
       {mini_server().ask(kMessagesPath, body), streamed(mini_server(), kMessagesPath, body)}) {
    EXPECT_EQ(answer["stop_reason"], "stop_sequence");
    EXPECT_EQ(answer["stop_sequence"], "are");
    EXPECT_EQ(words_of(answer), "Hello! How ");
  }
  const Json other = messages_body("Hello!", {{"stop_sequences", {"never"}}});
  EXPECT_EQ(mini_server().ask(kMessagesPath, other)["stop_reason"], "end_turn");
  const Json cut = messages_body("Hello!", {{"max_tokens", 2}});
  EXPECT_EQ(mini_server().ask(kMessagesPath, cut)["stop_reason"], "max_tokens");
}

TEST(ApiMessagesTest, TakesNoNoticeOfWhatOnlyTheHostedServiceKeeps) {
  const Json more = {
      {"context_management", {{"edits", Json::array()}}},
      {"container", "c"},
      {"mcp_servers", Json::array()},
      {"service_tier", "auto"},
      {"top_k", 5},
      {"dsh_session_log", {{"events", {{{"text", "private"}}}}}},
      {"output_config", {{"effort", "xhigh"}}},
      {"thinking", {{"type", "disabled"}, {"display", "omitted"}}},
  };
  const Headers headers = {{"anthropic-version", "2023-06-01"},
                           {"anthropic-beta", "never-heard-of-2031-01-01"}};
  const Json body = messages_body("Hello!", more);
  EXPECT_EQ(words_of(mini_server().ask(kMessagesPath, body, headers)), kHello);
  EXPECT_EQ(tokens_of(body), tokens_of(messages_body("Hello!")));
}

TEST(ApiMessagesTest, EveryWayOfThinkingAndEffortIsTaken) {
  for (const char* type : {"enabled", "adaptive", "disabled"}) {
    const Json more = {{"thinking", {{"type", type}}}, {"max_tokens", 2}};
    mini_server().ask(kMessagesPath, messages_body("Hello!", more));
  }
  for (const char* effort : {"low", "medium", "high", "xhigh", "max"}) {
    const Json more = {{"output_config", {{"effort", effort}}}, {"max_tokens", 2}};
    mini_server().ask(kMessagesPath, messages_body("Hello!", more));
  }
}

TEST(ApiMessagesTest, ASystemTextInsideMessagesReadsTheSameInBothForms) {
  const auto conversation = [](const Json& content) {
    Json body = messages_body("Hello!");
    body["system"] = Json::array({{{"type", "text"}, {"text", "Be kind."}}});
    body["messages"].push_back({{"role", "system"}, {"content", content}});
    body["messages"].push_back({{"role", "user"}, {"content", "Hello!"}});
    return body;
  };
  const Json blocks = Json::array({{{"type", "text"},
                                    {"text", repeated("Be brief, too. ", 20)},
                                    {"cache_control", {{"type", "ephemeral"}}}}});
  mini_server().ask(kMessagesPath, conversation(blocks));
  const PromptUse second =
      prompt_use(mini_server().ask(kMessagesPath, conversation(repeated("Be brief, too. ", 20))));
  EXPECT_GE(second.hits + 1, second.tokens);
}

TEST(ApiMessagesTest, ALineThatChangesWithEveryRequestIsNoPartOfThePrompt) {
  const auto conversation = [](const char* line) {
    Json body = messages_body("Hello!");
    body["system"] = Json::array({{{"type", "text"}, {"text", line}},
                                  {{"type", "text"}, {"text", repeated("Be kind. ", 30)}}});
    return body;
  };
  const Json first = conversation("x-anthropic-billing-header: cc_version=2; cch=0a1b2;");
  const Json second = conversation("x-anthropic-billing-header: cc_version=2; cch=f3e4d;");
  mini_server().ask(kMessagesPath, first);
  const PromptUse use = prompt_use(mini_server().ask(kMessagesPath, second));
  EXPECT_GE(use.hits + 1, use.tokens);
}

TEST(ApiMessagesTest, UserIdsOfAnyFormAreTaken) {
  for (const std::string& user :
       {std::string("plain"),
        std::string(R"({"device_id":"d","account_uuid":"","session_id":"s"})"),
        std::string(900, 'x'), std::string("with spaces and ünïcode")}) {
    mini_server().ask(kMessagesPath, messages_body("Hello!", {{"metadata", {{"user_id", user}}}}));
  }
}

TEST(ApiMessagesTest, CountsTheTokensThatARequestWouldHave) {
  const Json body = messages_body("The farmer painted the old house near the river.");
  const std::size_t counted = tokens_of(body);
  for (int i = 0; i < 2; ++i) {
    const Json usage = mini_server().ask(kMessagesPath, body)["usage"];
    EXPECT_EQ(usage["input_tokens"].get<std::size_t>() +
                  usage["cache_read_input_tokens"].get<std::size_t>(),
              counted);
  }
  EXPECT_EQ(mini_server().ask("/anthropic/v1/messages/count_tokens", body)["input_tokens"],
            counted);
}

const Json& person_schema() {
  static const Json schema = {{"type", "object"},
                              {"properties", {{"name", {{"type", "string"}, {"enum", {"Ann"}}}}}},
                              {"required", {"name"}},
                              {"additionalProperties", false}};
  return schema;
}

TEST(ApiMessagesTest, AForcedToolGivesAToolUseBlock) {
  for (const Json& choice : {Json{{"type", "any"}}, Json{{"type", "tool"}, {"name", "json"}}}) {
    Json body = messages_body("Who?", {{"max_tokens", 400}, {"tool_choice", choice}});
    body.erase("thinking");
    body["tools"] =
        Json::array({{{"type", "custom"}, {"name", "json"}, {"input_schema", person_schema()}}});
    for (const Json& answer :
         {mini_server().ask(kMessagesPath, body), streamed(mini_server(), kMessagesPath, body)}) {
      EXPECT_EQ(answer["stop_reason"], "tool_use");
      ASSERT_EQ(answer["content"].size(), 1U) << answer;
      const Json& block = answer["content"][0];
      EXPECT_EQ(block["type"], "tool_use");
      EXPECT_EQ(block["name"], "json");
      EXPECT_EQ(block["input"], Json({{"name", "Ann"}}));
      EXPECT_THAT(block["id"].get<std::string>(), MatchesRegex("call_00_[A-Za-z0-9]{24}"));
    }
  }
}

TEST(ApiMessagesTest, AFormatBindsTheAnswer) {
  const Json format = {{"format", {{"type", "json_schema"}, {"schema", person_schema()}}}};
  const Json body = messages_body("Who?", {{"output_config", format}, {"max_tokens", 200}});
  const Json answer = mini_server().ask(kMessagesPath, body);
  EXPECT_EQ(Json::parse(words_of(answer)), Json({{"name", "Ann"}}));
}

TEST(ApiMessagesTest, ResultsOfToolsAreRead) {
  Json body = messages_body("Who?");
  body["tools"] = Json::array({{{"name", "json"}, {"input_schema", person_schema()}}});
  body["messages"].push_back(
      {{"role", "assistant"},
       {"content", Json::array({{{"type", "thinking"}, {"thinking", "Hm."}, {"signature", ""}},
                                {{"type", "tool_use"},
                                 {"id", "call_1"},
                                 {"name", "json"},
                                 {"input", {{"name", "Ann"}}}}})}});
  Json result = {{"type", "tool_result"}, {"tool_use_id", "call_1"}, {"content", "Yes, Ann."}};
  body["messages"].push_back({{"role", "user"}, {"content", Json::array({result})}});
  mini_server().ask(kMessagesPath, body);
  body["messages"][2]["content"][0]["tool_use_id"] = "call_2";
  expect_refused(mini_server().post(kMessagesPath, body), 400, "call_2");
}

TEST(ApiMessagesTest, ErrorsHaveTheShapeOfTheDialect) {
  const HttpReply reply =
      mini_server().post(kMessagesPath, messages_body("Hello!", {{"max_tokens", 0}}));
  EXPECT_EQ(reply.status, 400);
  const Json error = Json::parse(reply.body);
  EXPECT_EQ(error["type"], "error");
  EXPECT_EQ(error["error"]["type"], "invalid_request_error");
  EXPECT_THAT(error["error"]["message"].get<std::string>(), HasSubstr("max_tokens is 0"));
  const Json document = Json::array({{{"type", "document"}, {"source", Json::object()}}});
  Json body = messages_body("x");
  body["messages"][0]["content"] = document;
  expect_refused(mini_server().post(kMessagesPath, body), 400, "document");
}

}  // namespace
}  // namespace locket::server
