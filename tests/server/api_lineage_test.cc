// The server over small checkpoints of every earlier generation: each request is answered, or
// refused with a reason.
#include <array>
#include <map>
#include <vector>

#include "tests/server/api_fixture.h"
#include "tests/support/sanitizer.h"

namespace locket::server {
namespace {

struct LineageCase {
  const char* folder;
  bool has_tools;
  const char* header;  // what a prompt in chat mode ends with
};

std::ostream& operator<<(std::ostream& out, const LineageCase& one) { return out << one.folder; }

std::filesystem::path lineage_folder(const std::string& name) {
  return std::filesystem::path(LOCKET_TEST_DATA) / "oracle" / "lineage" / name / "checkpoint";
}

// One server for all tests of a generation.
class ApiLineageTest : public testing::TestWithParam<LineageCase> {
 protected:
  ApiServer& server() {
    std::unique_ptr<ApiServer>& server = servers_[GetParam().folder];
    if (server == nullptr) {
      ApiSetup setup = {.options = quiet_options(), .model = lineage_folder(GetParam().folder)};
      setup.engine.numerics.mode = model::NumericsMode::kWide;
      setup.engine.pool_budget_bytes = std::uint64_t{64} << 20;
      server = std::make_unique<ApiServer>(setup);
    }
    return server->ready();
  }

  // Before the program ends: libcrypto gives its memory back then, whoever still uses it.
  static void TearDownTestSuite() { servers_.clear(); }

 private:
  static inline std::map<std::string, std::unique_ptr<ApiServer>> servers_;
};

TEST_P(ApiLineageTest, EveryDialectAnswersWholeAndInPieces) {
  for (const DialectCase& dialect : all_dialects()) {
    const Json body = dialect.body("How deep is it?", {{dialect.limit, 6}});
    EXPECT_EQ(server().post(dialect.path, body).status, 200) << dialect.name;
    EXPECT_TRUE(streamed(server(), dialect.path, body).is_object()) << dialect.name;
  }
}

TEST_P(ApiLineageTest, ThePromptIsInTheFormatOfTheGeneration) {
  const Json body = chat_body("How deep is it?");
  const Json rendered = server().ask("/v1/chat/completions/render", body);
  EXPECT_THAT(
      rendered["prompt"].get<std::string>(),
      ::testing::AllOf(HasSubstr("How deep is it?"), ::testing::EndsWith(GetParam().header)));
  const std::size_t count = rendered["tokens"].size();
  EXPECT_EQ(rendered["count"], count);
  const Json usage = server().ask(kChatPath, with(body, {{"max_tokens", 1}}))["usage"];
  EXPECT_EQ(usage["prompt_tokens"], count);
  EXPECT_EQ(server().ask("/v1/messages/count_tokens", body)["input_tokens"], count);
  EXPECT_EQ(server().ask("/tokenize", body)["count"], count);
  const Json text = server().ask("/detokenize", {{"tokens", rendered["tokens"]}});
  EXPECT_EQ(text["prompt"], rendered["prompt"]);
}

TEST_P(ApiLineageTest, AnAnswerThatIsSentBackIsRemembered) {
  const Json first = chat_body(repeated("a long question ", 40), {{"max_tokens", 3}});
  const Json answer = server().ask(kChatPath, first);
  Json second = first;
  second["messages"].push_back(answer["choices"][0]["message"]);
  second["messages"].push_back({{"role", "user"}, {"content", "and?"}});
  const Json usage = server().ask(kChatPath, second)["usage"];
  EXPECT_GT(usage["prompt_cache_hit_tokens"], 0) << usage;
}

TEST_P(ApiLineageTest, JsonAndSchemasBindTheAnswer) {
  const Json schema = {{"type", "object"},
                       {"properties", {{"n", {{"type", "integer"}, {"enum", {1, 2}}}}}},
                       {"required", {"n"}},
                       {"additionalProperties", false}};
  const Json format = {{"type", "json_schema"},
                       {"json_schema", {{"name", "x"}, {"strict", true}, {"schema", schema}}}};
  // Reasoning of random words need not end.
  const bool thinks = std::string(GetParam().folder) == "v3";
  const Json answer =
      server().ask(kChatPath, chat_body("n?", {{"response_format", format}, {"max_tokens", 400}}));
  if (!thinks) {
    const Json value = Json::parse(content_of(answer), nullptr, false);
    ASSERT_TRUE(value.is_object()) << answer;
    EXPECT_TRUE(value["n"] == 1 || value["n"] == 2);
  }
  const Json loose = chat_body("n?", {{"response_format", {{"type", "json_object"}}}});
  EXPECT_EQ(server().post(kChatPath, loose).status, 200);
}

TEST_P(ApiLineageTest, ToolsAreOfferedOrRefused) {
  const Json tool = {{"type", "function"},
                     {"function",
                      {{"name", "lamp"},
                       {"strict", true},
                       {"parameters",
                        {{"type", "object"},
                         {"properties", {{"on", {{"type", "boolean"}}}}},
                         {"required", {"on"}},
                         {"additionalProperties", false}}}}}};
  const Json body = chat_body("Light!", {{"tools", {tool}}, {"max_tokens", 60}});
  const Json forced = with(body, {{"tool_choice", "required"}});
  const Json none = with(body, {{"tool_choice", "none"}});
  EXPECT_EQ(server().post(kChatPath, none).status, 200);
  if (!GetParam().has_tools) {
    expect_refused(server().post(kChatPath, body), 400, "the request offers tools");
    expect_refused(server().post(kChatPath, forced), 400, "the request offers tools");
    return;
  }
  EXPECT_EQ(server().post(kChatPath, body).status, 200);
  const Json answer = server().ask(kChatPath, with(forced, {{"max_tokens", 400}}));
  const Json& message = answer["choices"][0]["message"];
  ASSERT_FALSE(message["tool_calls"].empty()) << answer;
  EXPECT_EQ(message["tool_calls"][0]["function"]["name"], "lamp");
  Json second = body;
  second["messages"].push_back(message);
  for (const Json& call : message["tool_calls"]) {
    second["messages"].push_back(
        {{"role", "tool"}, {"tool_call_id", call["id"]}, {"content", "it is"}});
  }
  const Json usage = server().ask(kChatPath, second)["usage"];
  EXPECT_GT(usage["prompt_tokens"], answer["usage"]["prompt_tokens"]);
}

TEST_P(ApiLineageTest, WhatTheFormatCannotSayIsRefused) {
  Json body = chat_body("x", {{"max_tokens", 2}});
  body["messages"][0]["content"] = {
      {{"type", "image_url"}, {"image_url", {{"url", "data:image/png;base64,iVBORw0KGgo="}}}}};
  expect_refused(server().post(kChatPath, body), 400, "image");
  body = chat_body("x", {{"max_tokens", 2}});
  const Json reminder = {{"role", "latest_reminder"}, {"content", "r"}};
  body["messages"].insert(body["messages"].begin(), reminder);
  // The tokenizers of these checkpoints have no token for it.
  expect_refused(server().post(kChatPath, body), 400, "latest_reminder");
  expect_refused(server().post(kCompletionsPath, completion_body("a", {{"suffix", "b"}})), 400,
                 "it can only continue a text");
}

TEST_P(ApiLineageTest, SamplingAndChoicesWork) {
  const Json body = chat_body("x", {{"temperature", 1.5},
                                    {"n", 2},
                                    {"seed", 5},
                                    {"logprobs", true},
                                    {"top_logprobs", 3},
                                    {"stop", {"zzz"}},
                                    {"max_tokens", 8}});
  const Json answer = server().ask(kChatPath, body);
  ASSERT_EQ(answer["choices"].size(), 2U);
  for (const Json& choice : answer["choices"]) EXPECT_TRUE(choice["logprobs"].is_object());
  const Json echoed = server().ask(kCompletionsPath, completion_body("ab", {{"echo", true}}));
  EXPECT_THAT(echoed["choices"][0]["text"].get<std::string>(), ::testing::StartsWith("ab"));
}

TEST_P(ApiLineageTest, ThinkingIsTakenWhereverItIsAskedFor) {
  for (const char* type : {"enabled", "disabled"}) {
    const Json body = chat_body("x", {{"thinking", {{"type", type}}}, {"max_tokens", 4}});
    EXPECT_EQ(server().post(kChatPath, body).status, 200) << type;
    EXPECT_EQ(server().post(kMessagesPath, body).status, 200) << type;
  }
}

std::vector<LineageCase> lineage_cases() {
  const LineageCase v1 = {"v1", false, "\n\nAssistant:"};
  const LineageCase v4pro = {"v4pro", true, "<｜Assistant｜></think>"};
  if (test_support::runs_with_sanitizer()) return {v1, v4pro};
  return {v1,
          {"v2", false, "\n\nAssistant:"},
          {"v2lite", false, "\n\nAssistant:"},
          {"v3", false, "<｜Assistant｜><think>\n"},
          {"v32", true, "<｜Assistant｜></think>"},
          {"v4flash", true, "<｜Assistant｜></think>"},
          v4pro};
}

INSTANTIATE_TEST_SUITE_P(Generations, ApiLineageTest, testing::ValuesIn(lineage_cases()),
                         [](const auto& one) { return std::string(one.param.folder); });

}  // namespace
}  // namespace locket::server
