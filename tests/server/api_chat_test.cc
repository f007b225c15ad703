// Chat completions over HTTP: what a request may say, and the shape of answers and streams.
#include <algorithm>
#include <set>

#include "tests/server/api_fixture.h"

namespace locket::server {
namespace {

using ::testing::EndsWith;
using ::testing::MatchesRegex;

Json first_message(const Json& body) { return body["choices"][0]["message"]; }

// The prompt that a request is rendered to.
std::string prompt_of(const Json& body) {
  return mini_server().ask("/v1/chat/completions/render", body)["prompt"].get<std::string>();
}
Json thinking_body(const Json& more) {
  return with({{"messages", {{{"role", "user"}, {"content", "Hello!"}}}}}, more);
}

TEST(ApiChatTest, AnAnswerHasTheShapeOfTheFormat) {
  const Json body = mini_server().ask(kChatPath, chat_body("Hello!"));
  EXPECT_THAT(body["id"].get<std::string>(),
              MatchesRegex("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"));
  EXPECT_EQ(body["object"], "chat.completion");
  EXPECT_TRUE(body["created"].is_number_integer());
  EXPECT_EQ(body["model"], "deepseek-flash");
  EXPECT_THAT(body["system_fingerprint"].get<std::string>(),
              MatchesRegex("fp_[0-9a-f]+_.*kvcache"));
  ASSERT_EQ(body["choices"].size(), 1U);
  const Json& choice = body["choices"][0];
  EXPECT_EQ(choice["index"], 0);
  EXPECT_EQ(choice["finish_reason"], "stop");
  EXPECT_TRUE(choice["logprobs"].is_null());
  const Json expected = {{"role", "assistant"}, {"content", "Hello! How are you today?"}};
  EXPECT_EQ(choice["message"], expected);
}

TEST(ApiChatTest, EveryPathOfTheDialectAnswers) {
  for (const char* path :
       {"/chat/completions", "/v1/chat/completions", "/beta/chat/completions",
        "/beta/v1/chat/completions", "/v1/chat/completions/", "/v1/chat/completions?beta=true"}) {
    EXPECT_EQ(content_of(mini_server().ask(path, chat_body("Hello!"))), "Hello! How are you today?")
        << path;
  }
}

TEST(ApiChatTest, TheModelIsKnownUnderManyNames) {
  for (const char* name : {"deepseek-flash", "deepseek-v4-flash", "deepseek-v4-flash-vision-exp",
                           "deepseek-flash[1m]", "deepseek-chat", ""}) {
    const Json body = mini_server().ask(kChatPath, chat_body("Hello!", {{"model", name}}));
    EXPECT_EQ(body["model"], "deepseek-flash") << name;
  }
  EXPECT_EQ(mini_server().ask(kChatPath, chat_body("Hello!", {{"model", "mini"}}))["model"],
            "mini");
  const HttpReply reply = mini_server().post(kChatPath, chat_body("Hello!", {{"model", "gpt-9"}}));
  expect_refused(reply, 404, "\"gpt-9\" does not exist; this server has deepseek-flash");
  EXPECT_EQ(Json::parse(reply.body)["error"]["code"], "model_not_found");
}

TEST(ApiChatTest, OldNamesSayWhetherToThink) {
  EXPECT_THAT(prompt_of(thinking_body({{"model", "deepseek-chat"}})), EndsWith("</think>"));
  EXPECT_THAT(prompt_of(thinking_body({{"model", "deepseek-reasoner"}})), EndsWith("<think>"));
}

TEST(ApiChatTest, ThinkingIsOnUnlessItIsSwitchedOff) {
  const std::string high = prompt_of(thinking_body(Json::object()));
  EXPECT_THAT(high, EndsWith("<think>"));
  for (const char* type : {"enabled", "adaptive"}) {
    EXPECT_EQ(prompt_of(thinking_body({{"thinking", {{"type", type}}}})), high) << type;
  }
  const std::string off = prompt_of(thinking_body({{"thinking", {{"type", "disabled"}}}}));
  EXPECT_THAT(off, EndsWith("</think>"));
  EXPECT_EQ(prompt_of(thinking_body({{"reasoning_effort", "none"}})), off);
  const Json kwargs = {{"chat_template_kwargs", {{"enable_thinking", false}}}};
  EXPECT_EQ(prompt_of(thinking_body(kwargs)), off);
}

TEST(ApiChatTest, EffortsHaveTheirNamesAndNumbers) {
  const auto prompt = [](const Json& effort) {
    return prompt_of(thinking_body({{"reasoning_effort", effort}}));
  };
  EXPECT_EQ(prompt("minimal"), prompt("low"));
  for (const char* name : {"medium", "xhigh"}) EXPECT_EQ(prompt(name), prompt("high"));
  EXPECT_EQ(prompt("ultra"), prompt("max"));
  EXPECT_EQ(std::set({prompt("low"), prompt("high"), prompt("max")}).size(), 3U);
  EXPECT_THAT(prompt(17), HasSubstr("Effort: 17"));
  for (const Json& wrong : {Json("hard"), Json(0), Json(101), Json(1.5)}) {
    expect_refused(
        mini_server().post(kChatPath, chat_body("Hello!", {{"reasoning_effort", wrong}})), 400,
        "reasoning_effort is " + wrong.dump());
  }
}

TEST(ApiChatTest, UsageHasTheNamesThatClientsRead) {
  const Json question = chat_body("The brown bear sat on the roof at noon.");
  mini_server().ask(kChatPath, question);
  const Json usage = mini_server().ask(kChatPath, question)["usage"];
  const std::size_t hit = usage["prompt_cache_hit_tokens"];
  EXPECT_GT(hit, 0U);
  EXPECT_EQ(usage["prompt_tokens"], hit + usage["prompt_cache_miss_tokens"].get<std::size_t>());
  EXPECT_EQ(usage["prompt_tokens_details"]["cached_tokens"], hit);
  EXPECT_EQ(usage["completion_tokens_details"]["reasoning_tokens"], 0);
  EXPECT_EQ(usage["total_tokens"], usage["prompt_tokens"].get<std::size_t>() +
                                       usage["completion_tokens"].get<std::size_t>());
}

TEST(ApiChatTest, AStreamAddsUpToTheBody) {
  for (const Json& more : {Json::object(), Json({{"thinking", {{"type", "enabled"}}}})}) {
    const Json question = chat_body("My cat is called Milo.", more);
    const Json whole = mini_server().ask(kChatPath, question);
    const Json stream = streamed(mini_server(), kChatPath, question);
    EXPECT_EQ(stream["choices"][0]["message"], first_message(whole));
    EXPECT_EQ(stream["choices"][0]["finish_reason"], whole["choices"][0]["finish_reason"]);
    EXPECT_EQ(stream["usage"]["prompt_tokens"], whole["usage"]["prompt_tokens"]);
    EXPECT_EQ(stream["usage"]["completion_tokens"], whole["usage"]["completion_tokens"]);
  }
}

// The events of a stream as JSON, without the last one, which is [DONE].
std::vector<Json> chunks_of(const std::string& text) {
  std::vector<Json> chunks;
  for (const auto& event : test_support::read_event_stream(text).events) {
    if (event.data != "[DONE]") chunks.push_back(Json::parse(event.data));
  }
  return chunks;
}

TEST(ApiChatTest, AStreamBeginsWithTheRoleAndEndsWithUsageAndDone) {
  const HttpReply reply = stream_reply(mini_server(), kChatPath, chat_body("Hello!"));
  EXPECT_THAT(reply.body, EndsWith("data: [DONE]\n\n"));
  const std::vector<Json> chunks = chunks_of(reply.body);
  const Json first = {{"role", "assistant"}, {"content", ""}};
  EXPECT_EQ(chunks.front()["choices"][0]["delta"], first);
  EXPECT_EQ(chunks.front()["object"], "chat.completion.chunk");
  EXPECT_EQ(chunks.back()["choices"][0]["finish_reason"], "stop");
  EXPECT_TRUE(chunks.back()["usage"].is_object());
  for (const Json& chunk : chunks) {
    EXPECT_EQ(chunk.contains("usage"), &chunk == &chunks.back()) << chunk;
    EXPECT_EQ(chunk["id"], chunks.front()["id"]);
  }
  const Json thinking = chat_body("Hello!", {{"thinking", {{"type", "enabled"}}}});
  const Json role = {{"role", "assistant"}, {"content", nullptr}, {"reasoning_content", ""}};
  EXPECT_EQ(chunks_of(stream_reply(mini_server(), kChatPath, thinking).body)
                .front()["choices"][0]["delta"],
            role);
}

TEST(ApiChatTest, IncludeUsageMakesTheOtherChunksSayNull) {
  const Json body = chat_body("Hello!", {{"stream_options", {{"include_usage", true}}}});
  const HttpReply reply = stream_reply(mini_server(), kChatPath, body);
  checked(kChatPath, reply.body, {.wants_usage = true});
  std::size_t with_numbers = 0;
  for (const Json& chunk : chunks_of(reply.body)) {
    ASSERT_TRUE(chunk.contains("usage"));
    ASSERT_FALSE(chunk["choices"].empty());
    with_numbers += chunk["usage"].is_object() ? 1 : 0;
  }
  EXPECT_EQ(with_numbers, 1U);
}

TEST(ApiChatTest, UsageMayComeInAChunkOfItsOwn) {
  ApiSetup setup = {.options = quiet_options()};
  setup.options.openai_usage_chunk = true;
  ApiServer server(setup);
  server.ready();
  const Json body = chat_body("Hello!", {{"stream_options", {{"include_usage", true}}}});
  const HttpReply reply = stream_reply(server, kChatPath, body);
  checked(kChatPath, reply.body, {.wants_usage = true, .usage_chunk = UsageChunk::kOwn});
  const std::vector<Json> chunks = chunks_of(reply.body);
  EXPECT_TRUE(chunks.back()["choices"].empty());
  EXPECT_TRUE(chunks.back()["usage"].is_object());
  EXPECT_FALSE(chunks[chunks.size() - 2]["usage"].is_object());
}

TEST(ApiChatTest, StreamsAreNotHeldBackAndHaveNoIds) {
  const HttpReply reply = stream_reply(mini_server(), kChatPath, chat_body("Hello!"));
  EXPECT_EQ(reply.header("x-accel-buffering"), "no");
  EXPECT_EQ(reply.header("cache-control"), "no-cache");
  EXPECT_EQ(reply.body.find("\nid:"), std::string::npos);
  EXPECT_FALSE(reply.body.starts_with("id:"));
}

TEST(ApiChatTest, TextPartsAreTheTextInEveryRole) {
  const auto conversation = [](auto content) {
    Json messages = Json::array();
    for (const char* role : {"system", "user", "assistant", "user"}) {
      messages.push_back({{"role", role}, {"content", content(role)}});
    }
    return Json{{"messages", messages}};
  };
  const std::string whole =
      prompt_of(conversation([](const char* role) { return Json(std::string(role) + " says"); }));
  const std::string parts = prompt_of(conversation([](const char* role) {
    return Json::array({{{"type", "text"}, {"text", std::string(role) + " says"}}});
  }));
  EXPECT_EQ(parts, whole);
}

TEST(ApiChatTest, RolesAreThoseOfTheHostedServiceAndDeveloper) {
  for (const char* role : {"system", "user", "developer", "latest_reminder"}) {
    const Json messages = {{{"role", role}, {"content", "Hello there."}, {"name", "ann"}},
                           {{"role", "user"}, {"content", "Hello!"}}};
    mini_server().ask(kChatPath, chat_body("", {{"messages", messages}}));
  }
  // As other servers do it: a user's turn.
  const Json developer = {{{"role", "developer"}, {"content", "Be kind."}},
                          {{"role", "user"}, {"content", "Hello!"}}};
  EXPECT_THAT(prompt_of({{"messages", developer}, {"reasoning_effort", "none"}}),
              HasSubstr("<｜User｜>Be kind.\n\nHello!"));
  const Json robot = {{{"role", "robot"}, {"content", "x"}}};
  expect_refused(mini_server().post(kChatPath, chat_body("", {{"messages", robot}})), 400,
                 "messages[0].role is \"robot\"");
  expect_refused(mini_server().post(kChatPath, chat_body("", {{"messages", Json::array()}})), 400,
                 "at least one message");
}

TEST(ApiChatTest, TheLimitCountsReasoningToo) {
  const Json cut = mini_server().ask(kChatPath, chat_body("Hello!", {{"max_tokens", 3}}));
  EXPECT_EQ(cut["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(cut["usage"]["completion_tokens"], 3);
  const Json both = {{"max_tokens", 30}, {"max_completion_tokens", 2}};
  EXPECT_EQ(mini_server().ask(kChatPath, chat_body("Hello!", both))["usage"]["completion_tokens"],
            2);
  const Json thinking = {
      {"thinking", {{"type", "enabled"}}}, {"max_tokens", 5}, {"ignore_eos", true}};
  const Json thought = mini_server().ask(kChatPath, chat_body("Hello!", thinking));
  EXPECT_EQ(thought["usage"]["completion_tokens"], 5);
  EXPECT_EQ(thought["usage"]["completion_tokens_details"]["reasoning_tokens"], 5);
  EXPECT_NE(first_message(thought)["reasoning_content"], "");
  EXPECT_EQ(first_message(thought)["content"], "");
}

// Case D07: a stop string of several tokens, wherever they part.
TEST(ApiChatTest, D07AStopStringOfSeveralTokensEndsTheAnswerBeforeIt) {
  const std::string whole = "Hello! How are you today?";
  for (const std::string stop : {"How are", "o! H", "ou tod", "?"}) {
    const Json body = chat_body("Hello!", {{"stop", stop}});
    const Json answer = mini_server().ask(kChatPath, body);
    EXPECT_EQ(content_of(answer), whole.substr(0, whole.find(stop))) << stop;
    EXPECT_EQ(answer["choices"][0]["finish_reason"], "stop");
    EXPECT_EQ(content_of(streamed(mini_server(), kChatPath, body)), content_of(answer));
  }
}

TEST(ApiChatTest, SixteenStopStringsAreTakenAndNoMore) {
  std::vector<std::string> stop(16, "never said");
  stop.back() = "How";
  const Json answer = mini_server().ask(kChatPath, chat_body("Hello!", {{"stop", stop}}));
  EXPECT_EQ(content_of(answer), "Hello! ");
  stop.emplace_back("one more");
  expect_refused(mini_server().post(kChatPath, chat_body("Hello!", {{"stop", stop}})), 400,
                 "stop has 17 strings; at most 16");
}

// Case D16: every choice has its own end, and usage comes once, as the sum.
TEST(ApiChatTest, D16ThreeChoicesEndOnceEachAndUsageIsTheSum) {
  const Json body = chat_body("Tell me about the old house near the river.",
                              {{"n", 3}, {"temperature", 1.5}, {"seed", 4}});
  const Json whole = mini_server().ask(kChatPath, body);
  const HttpReply reply = stream_reply(mini_server(), kChatPath, body);
  const Json stream = Json::parse(checked(kChatPath, reply.body, {.choice_count = 3}).body.dump());
  ASSERT_EQ(whole["choices"].size(), 3U);
  std::set<std::string> texts;
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(whole["choices"][i]["index"], i);
    EXPECT_EQ(stream["choices"][i]["message"]["content"],
              whole["choices"][i]["message"]["content"]);
    texts.insert(whole["choices"][i]["message"]["content"].get<std::string>());
  }
  EXPECT_GT(texts.size(), 1U);
  EXPECT_EQ(stream["usage"]["completion_tokens"], whole["usage"]["completion_tokens"]);
  std::size_t finishes = 0;
  for (const Json& chunk : chunks_of(reply.body)) {
    finishes += chunk["choices"][0]["finish_reason"].is_null() ? 0 : 1;
  }
  EXPECT_EQ(finishes, 3U);
}

std::string joined_bytes(const Json& entries) {
  std::string bytes;
  for (const Json& entry : entries) {
    for (const Json& byte : entry["bytes"]) bytes += static_cast<char>(byte.get<int>());
  }
  return bytes;
}

// Case D15: over a curly quote and an emoji, which are several tokens each.
TEST(ApiChatTest, D15BytesOfTheLogprobsAreThoseOfTheAnswer) {
  const Json schema = {{"type", "string"}, {"enum", {"a “quote” 😀"}}};
  const Json body = chat_body(
      "Say it.",
      {{"logprobs", true},
       {"top_logprobs", 20},
       {"response_format",
        {{"type", "json_schema"}, {"json_schema", {{"name", "x"}, {"schema", schema}}}}}});
  for (const Json& answer :
       {mini_server().ask(kChatPath, body), streamed(mini_server(), kChatPath, body)}) {
    const Json& entries = answer["choices"][0]["logprobs"]["content"];
    EXPECT_THAT(content_of(answer), HasSubstr("“quote” 😀"));
    EXPECT_THAT(joined_bytes(entries), HasSubstr(content_of(answer)));
    for (const Json& entry : entries) {
      EXPECT_EQ(entry["top_logprobs"].size(), 20U);
      for (const Json& other : entry["top_logprobs"]) EXPECT_TRUE(other["bytes"].is_array());
      EXPECT_LE(entry["logprob"].get<double>(), 0.0);
    }
  }
}

TEST(ApiChatTest, LogprobsKeepReasoningApart) {
  const Json more = {{"logprobs", true},
                     {"thinking", {{"type", "enabled"}}},
                     {"max_tokens", 4},
                     {"ignore_eos", true}};
  const Json logprobs =
      mini_server().ask(kChatPath, chat_body("Hello!", more))["choices"][0]["logprobs"];
  EXPECT_TRUE(logprobs["content"].is_null());
  ASSERT_EQ(logprobs["reasoning_content"].size(), 4U);
  EXPECT_TRUE(logprobs["reasoning_content"][0]["top_logprobs"].is_array());
  expect_refused(mini_server().post(kChatPath, chat_body("x", {{"top_logprobs", 2}})), 400,
                 "logprobs must be true");
  const Json many = {{"logprobs", true}, {"top_logprobs", 21}};
  expect_refused(mini_server().post(kChatPath, chat_body("x", many)), 400, "top_logprobs is 21");
}

TEST(ApiChatTest, AnUnfinishedAnswerIsContinued) {
  const Json messages = {{{"role", "user"}, {"content", "Hello!"}},
                         {{"role", "assistant"}, {"content", "Hello! How"}, {"prefix", true}}};
  const Json body = chat_body("", {{"messages", messages}});
  EXPECT_EQ(content_of(mini_server().ask("/beta/chat/completions", body)), " are you today?");
  Json wrong = body;
  std::swap(wrong["messages"][0], wrong["messages"][1]);
  EXPECT_EQ(mini_server().post("/beta/chat/completions", wrong).status, 400);
}

TEST(ApiChatTest, UnknownFieldsAreTakenAndWrongTypesAreNot) {
  const Json more = {{"store", false}, {"x_unknown", {{"a", 1}}}, {"logit_bias", nullptr}};
  EXPECT_EQ(content_of(mini_server().ask(kChatPath, chat_body("Hello!", more))),
            "Hello! How are you today?");
  for (const Json& wrong : {Json{{"max_tokens", "many"}}, Json{{"stream", "yes"}},
                            Json{{"stop", 7}}, Json{{"tools", "f"}}, Json{{"messages", "Hello!"}},
                            Json{{"temperature", "hot"}}, Json{{"thinking", true}}}) {
    expect_refused(mini_server().post(kChatPath, chat_body("Hello!", wrong)), 400,
                   wrong.begin().key());
  }
}

TEST(ApiChatTest, EscapedPairsOfSurrogatesAreOneCharacter) {
  const std::string body =
      R"({"messages":[{"role":"user","content":"\ud83d\ude00"}],"reasoning_effort":"none"})";
  const HttpReply reply = mini_server().post_text("/v1/chat/completions/render", body);
  EXPECT_EQ(reply.status, 200);
  EXPECT_THAT(reply.body, HasSubstr("😀"));
}

}  // namespace
}  // namespace locket::server
