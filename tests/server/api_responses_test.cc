// The Responses dialect over HTTP: what a request may say, and the shape of answers and streams.
#include "tests/server/api_fixture.h"

namespace locket::server {
namespace {

using ::testing::MatchesRegex;

constexpr const char* kHello = "Hello! How are you today?";

Json message_item(const char* role, const Json& content) {
  return {{"type", "message"}, {"role", role}, {"content", content}};
}
Json items_body(const std::vector<Json>& items, const Json& more = Json::object()) {
  return with(responses_body("", more), {{"input", items}});
}
std::size_t prompt_tokens_of(const Json& body) {
  return mini_server().ask(kResponsesPath, body)["usage"]["input_tokens"];
}
const Json& city_tool() {
  static const Json tool = {{"type", "function"},
                            {"name", "find"},
                            {"parameters",
                             {{"type", "object"},
                              {"properties", {{"city", {{"type", "string"}, {"enum", {"Rome"}}}}}},
                              {"required", {"city"}},
                              {"additionalProperties", false}}}};
  return tool;
}

TEST(ApiResponsesTest, AnAnswerHasTheShapeOfTheFormat) {
  const Json body = mini_server().ask(kResponsesPath, responses_body("Hello!"));
  EXPECT_THAT(body["id"].get<std::string>(), MatchesRegex("resp_[0-9a-f]{32}"));
  EXPECT_EQ(body["object"], "response");
  EXPECT_EQ(body["status"], "completed");
  EXPECT_EQ(body["store"], false);
  EXPECT_TRUE(body["error"].is_null());
  EXPECT_TRUE(body["incomplete_details"].is_null());
  ASSERT_EQ(body["output"].size(), 1U);
  EXPECT_EQ(body["output"][0]["type"], "message");
  const Json& part = body["output"][0]["content"][0];
  EXPECT_EQ(part["type"], "output_text");
  EXPECT_EQ(part["text"], kHello);
  EXPECT_EQ(part["annotations"], Json::array());
  const Json& usage = body["usage"];
  EXPECT_TRUE(usage["input_tokens_details"]["cached_tokens"].is_number());
  EXPECT_TRUE(usage["output_tokens_details"]["reasoning_tokens"].is_number());
  EXPECT_EQ(usage["total_tokens"],
            usage["input_tokens"].get<std::size_t>() + usage["output_tokens"].get<std::size_t>());
}

TEST(ApiResponsesTest, EveryPathOfTheDialectAnswers) {
  for (const char* path : {"/responses", "/v1/responses", "/beta/responses"}) {
    EXPECT_EQ(words_of(mini_server().ask(path, responses_body("Hello!"))), kHello) << path;
  }
}

TEST(ApiResponsesTest, ReasoningIsAnItemOfItsOwn) {
  const Json body = mini_server().ask(
      kResponsesPath, responses_body("My cat is called Milo.", {{"reasoning", Json::object()}}));
  const Json& item = body["output"][0];
  EXPECT_EQ(item["type"], "reasoning");
  EXPECT_EQ(item["summary"], Json::array());
  EXPECT_EQ(item["content"][0]["type"], "reasoning_text");
  EXPECT_NE(item["content"][0]["text"], "");
  EXPECT_GT(body["usage"]["output_tokens_details"]["reasoning_tokens"].get<int>(), 0);
}

TEST(ApiResponsesTest, AStreamAddsUpToTheBody) {
  for (const Json& more : {Json::object(), Json({{"reasoning", {{"summary", "auto"}}}})}) {
    const Json question = responses_body("My cat is called Milo.", more);
    const Json whole = mini_server().ask(kResponsesPath, question);
    const Json stream = streamed(mini_server(), kResponsesPath, question);
    ASSERT_EQ(stream["output"].size(), whole["output"].size());
    for (std::size_t i = 0; i < whole["output"].size(); ++i) {
      EXPECT_EQ(stream["output"][i]["content"], whole["output"][i]["content"]);
    }
    EXPECT_EQ(stream["status"], whole["status"]);
    EXPECT_EQ(stream["usage"]["output_tokens"], whole["usage"]["output_tokens"]);
  }
}

TEST(ApiResponsesTest, AStreamHasTheEventsThatHelpersNeedAndNoDone) {
  const HttpReply reply = stream_reply(mini_server(), kResponsesPath, responses_body("Hello!"));
  std::vector<std::string> types;
  for (const auto& event : test_support::read_event_stream(reply.body).events) {
    const Json data = Json::parse(event.data);
    if (types.empty() || data["type"] != types.back()) types.push_back(data["type"]);
    EXPECT_TRUE(data["sequence_number"].is_number());
  }
  EXPECT_THAT(types, ::testing::ElementsAre(
                         "response.created", "response.in_progress", "response.output_item.added",
                         "response.content_part.added", "response.output_text.delta",
                         "response.output_text.done", "response.content_part.done",
                         "response.output_item.done", "response.completed"));
  EXPECT_EQ(reply.body.find("[DONE]"), std::string::npos);
}

TEST(ApiResponsesTest, ALimitMakesTheAnswerIncomplete) {
  const Json body = responses_body("Hello!", {{"max_output_tokens", 2}});
  for (const Json& answer :
       {mini_server().ask(kResponsesPath, body), streamed(mini_server(), kResponsesPath, body)}) {
    EXPECT_EQ(answer["status"], "incomplete");
    EXPECT_EQ(answer["incomplete_details"]["reason"], "max_output_tokens");
  }
}

TEST(ApiResponsesTest, TakesNoNoticeOfWhatOnlyTheHostedServiceKeeps) {
  const Json more = {{"previous_response_id", "resp_1"},
                     {"conversation", "c"},
                     {"store", true},
                     {"background", false},
                     {"metadata", {{"a", "b"}}},
                     {"include", {"reasoning.encrypted_content"}},
                     {"truncation", "auto"},
                     {"service_tier", "auto"},
                     {"safety_identifier", "s"},
                     {"prompt_cache_key", "k"},
                     {"prompt_cache_retention", "24h"},
                     {"context_management", Json::array()},
                     {"stream_options", {{"include_obfuscation", false}}},
                     {"parallel_tool_calls", false},
                     {"max_tool_calls", 3},
                     {"client_metadata", {{"x", "y"}}},
                     {"never_heard_of", 1}};
  EXPECT_EQ(words_of(mini_server().ask(kResponsesPath, responses_body("Hello!", more))), kHello);
}

TEST(ApiResponsesTest, InputIsAStringOrItems) {
  const std::size_t tokens = prompt_tokens_of(responses_body("Hello!"));
  EXPECT_EQ(prompt_tokens_of(items_body({message_item("user", "Hello!")})), tokens);
  const Json part = {{"type", "input_text"}, {"text", "Hello!"}};
  Json untyped = message_item("user", Json::array({part}));
  untyped.erase("type");
  EXPECT_EQ(prompt_tokens_of(items_body({untyped})), tokens);
  const Json unknown = {{"type", "never_heard_of"}, {"x", 1}};
  EXPECT_EQ(prompt_tokens_of(items_body({unknown, message_item("user", "Hello!")})), tokens);
}

TEST(ApiResponsesTest, InstructionsAndDevelopersAreSystemTexts) {
  const Json user = message_item("user", "Hello!");
  const std::size_t system =
      prompt_tokens_of(items_body({message_item("system", "Be kind."), user}));
  EXPECT_EQ(prompt_tokens_of(items_body({message_item("developer", "Be kind."), user})), system);
  EXPECT_EQ(prompt_tokens_of(responses_body("Hello!", {{"instructions", "Be kind."}})), system);
  EXPECT_GT(system, prompt_tokens_of(responses_body("Hello!")));
}

// The first answer thinks and speaks; both of its items are referred to by their ids.
TEST(ApiResponsesTest, ReferencesPutBackWhatWasSaid) {
  const Json tool = {{"tools", Json::array({city_tool()})}};
  const Json question = message_item("user", "My cat is called Milo.");
  Json thinking = tool;
  thinking["reasoning"] = Json::object();
  const Json thought =
      mini_server().ask(kResponsesPath, items_body({question}, thinking))["output"];
  const Json said = mini_server().ask(kResponsesPath, items_body({question}, tool))["output"];
  ASSERT_EQ(thought[0]["type"], "reasoning");
  ASSERT_EQ(said[0]["type"], "message");
  const auto tokens = [&](const Json& one, const Json& two) {
    // While it thinks and has tools, the model is shown what it thought before.
    return prompt_tokens_of(
        items_body({question, one, two, message_item("user", "And?")}, thinking));
  };
  const auto reference = [](const Json& id) {
    return Json{{"type", "item_reference"}, {"id", id}};
  };
  const std::size_t whole = tokens(thought[0], said[0]);
  EXPECT_EQ(tokens(reference(thought[0]["id"]), reference(said[0]["id"])), whole);
  // An unknown thought is left out; an unknown message is never lost silently.
  EXPECT_LT(tokens(reference("rs_unknown"), said[0]), whole);
  const HttpReply reply = mini_server().post(
      kResponsesPath, items_body({question, reference("msg_unknown"), question}));
  expect_refused(reply, 400, "\"msg_unknown\", and no such item is kept");
  EXPECT_THAT(reply.body, HasSubstr("store"));
}

TEST(ApiResponsesTest, CallsAreItemsAndTheirOutputsAreRead) {
  const Json more = {{"tools", Json::array({city_tool(), {{"type", "web_search"}}})},
                     {"tool_choice", "required"},
                     {"max_output_tokens", 400}};
  Json body = responses_body("Where?", more);
  body.erase("reasoning");
  const Json answer = streamed(mini_server(), kResponsesPath, body);
  ASSERT_EQ(answer["output"].size(), 1U) << answer;
  const Json& call = answer["output"][0];
  EXPECT_EQ(call["type"], "function_call");
  EXPECT_EQ(call["name"], "find");
  EXPECT_EQ(call["arguments"], R"({"city":"Rome"})");
  const Json output = {
      {"type", "function_call_output"}, {"call_id", call["call_id"]}, {"output", "Found."}};
  const Json second =
      items_body({message_item("user", "Where?"), call, output}, {{"tools", more["tools"]}});
  mini_server().ask(kResponsesPath, second);
  Json lost = second;
  lost["input"].erase(2);
  expect_refused(mini_server().post(kResponsesPath, lost), 400, call["call_id"].get<std::string>());
}

TEST(ApiResponsesTest, ToolsInsideANamespaceAreMappedBack) {
  const Json more = {
      {"tools",
       Json::array(
           {{{"type", "namespace"}, {"name", "maps"}, {"tools", Json::array({city_tool()})}}})},
      {"tool_choice", "required"},
      {"max_output_tokens", 400}};
  const Json answer = mini_server().ask(kResponsesPath, responses_body("Where?", more));
  ASSERT_FALSE(answer["output"].empty());
  EXPECT_EQ(answer["output"][0]["name"], "find");
  EXPECT_EQ(answer["output"][0]["namespace"], "maps");
}

TEST(ApiResponsesTest, AFormatBindsTheAnswer) {
  const Json format = {{"type", "json_schema"},
                       {"name", "city"},
                       {"strict", true},
                       {"schema", city_tool()["parameters"]}};
  const Json body =
      responses_body("Where?", {{"text", {{"format", format}}}, {"max_output_tokens", 200}});
  EXPECT_EQ(Json::parse(words_of(mini_server().ask(kResponsesPath, body))),
            Json({{"city", "Rome"}}));
}

TEST(ApiResponsesTest, PicturesAreRefusedWithTheKnownWords) {
  const auto refused = [](const Json& part) {
    return mini_server().post(kResponsesPath,
                              items_body({message_item("user", Json::array({part}))}));
  };
  expect_refused(refused({{"type", "input_image"}}), 400,
                 "input_image must have image_url or file_id");
  expect_refused(refused({{"type", "input_image"}, {"image_url", "data:,"}, {"file_id", "f"}}), 400,
                 "input_image cannot have both image_url and file_id");
}

}  // namespace
}  // namespace locket::server
