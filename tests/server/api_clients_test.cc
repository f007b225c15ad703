// Requests of real clients, as recorded: every one is answered, and the turns of a session find
// each other. Long texts are cut, so that a small model reads them in moments; the structure is as
// it was sent.
#include <algorithm>
#include <filesystem>

#include "base/log.h"
#include "tests/server/api_fixture.h"

namespace locket::server {
namespace {

constexpr std::size_t kLongest = 60;

// Cuts what is prose: the same text always to the same.
void cut_texts(Json& value, const std::string& name = "") {
  if (value.is_string() && (name == "text" || name == "content" || name == "description" ||
                            name == "system" || name == "output" || name == "instructions" ||
                            name == "thinking" || name == "reasoning_content")) {
    std::string text = value.get<std::string>();
    std::size_t end = std::min(text.size(), kLongest);
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) ++end;
    value = text.substr(0, end);
  }
  if (value.is_object()) {
    for (auto& [key, member] : value.items()) cut_texts(member, key);
  } else if (value.is_array()) {
    for (Json& item : value) cut_texts(item, name);
  }
}

struct Recorded {
  std::string path;
  Json body;
};

Recorded recorded(const std::string& name, std::size_t tokens = 4) {
  Json request = recorded_request(name);
  Recorded out = {request["path"], request["body"]};
  cut_texts(out.body);
  const bool is_responses = out.path.find("/responses") != std::string::npos;
  out.body.erase("max_completion_tokens");
  out.body[is_responses ? "max_output_tokens" : "max_tokens"] = tokens;
  out.body["temperature"] = 0;
  return out;
}

Json answer_of(const ApiServer& server, const Recorded& request) {
  Json body = request.body;
  body["stream"] = false;
  return server.ask(request.path, body);
}

TEST(ApiClientsTest, EveryRecordedRequestIsAnsweredToItsEnd) {
  std::size_t asked = 0;
  const auto folder = std::filesystem::path(LOCKET_TEST_DATA) / "clients";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".json") continue;
    SCOPED_TRACE(entry.path().stem().string());
    const Recorded request = recorded(entry.path().stem().string());
    const HttpReply reply = mini_server().post(request.path, request.body);
    ASSERT_EQ(reply.status, 200) << reply.body;
    EXPECT_TRUE(reply.is_complete);
    if (request.body.value("stream", false)) {
      const Json options = request.body.value("stream_options", Json::object());
      const bool wants_usage = options.value("include_usage", false);
      EXPECT_TRUE(checked(request.path, reply.body, {.wants_usage = wants_usage}).error.is_null());
    } else {
      EXPECT_TRUE(Json::parse(reply.body).contains("usage"));
    }
    ++asked;
  }
  EXPECT_EQ(asked, 23U);
}

TEST(ApiClientsTest, TheSecondTurnOfASessionFindsTheFirst) {
  for (const std::string client : {"claude_code", "dsh", "codex"}) {
    ApiServer server;
    server.ready();
    const PromptUse first = prompt_use(answer_of(server, recorded(client + "_turn1")));
    const PromptUse second = prompt_use(answer_of(server, recorded(client + "_turn2")));
    EXPECT_EQ(first.hits, 0U) << client;
    EXPECT_GT(second.tokens, first.tokens) << client;
    // Up to the header of the answer: the two tokens behind the last common message.
    EXPECT_GE(second.hits + 3, first.tokens) << client;
  }
}

TEST(ApiClientsTest, SessionsOfOneUserShareTheirMemory) {
  ApiServer server;
  server.ready();
  Recorded request = recorded("claude_code_turn1");
  answer_of(server, request);
  Json user = Json::parse(request.body["metadata"]["user_id"].get<std::string>());
  ASSERT_TRUE(user.contains("session_id"));
  user["session_id"] = "another";
  request.body["metadata"]["user_id"] = user.dump();
  const PromptUse shared = prompt_use(answer_of(server, request));
  EXPECT_GE(shared.hits + 1, shared.tokens);
  user["device_id"] = "another";
  request.body["metadata"]["user_id"] = user.dump();
  EXPECT_EQ(prompt_use(answer_of(server, request)).hits, 0U);
}

TEST(ApiClientsTest, AnAgentsLogIsNoPartOfThePromptNorOfAnyLog) {
  const std::filesystem::path file =
      std::filesystem::path(::testing::TempDir()) / "api_clients_log.jsonl";
  std::filesystem::remove(file);
  set_log_style(LogStyle::kJson);
  ASSERT_TRUE(log_to_file(file));
  ApiSetup setup = {.options = quiet_options()};
  setup.options.logs_requests = true;
  ApiServer server(setup);
  server.ready();
  Recorded request = recorded("dsh_turn2");
  ASSERT_TRUE(request.body.contains("dsh_session_log"));
  request.body["dsh_session_log"]["marker"] = "zebra-in-the-log";
  const PromptUse with_log = prompt_use(answer_of(server, request));
  request.body.erase("dsh_session_log");
  request.body.erase("dsh_plugin_packages");
  EXPECT_EQ(prompt_use(answer_of(server, request)).tokens, with_log.tokens);
  std::ifstream in(file);
  const std::string log((std::istreambuf_iterator<char>(in)), {});
  EXPECT_THAT(log, HasSubstr("\"event\":\"request\""));
  EXPECT_EQ(log.find("zebra"), std::string::npos);
  EXPECT_EQ(log.find("dsh_"), std::string::npos);
  set_log_style(LogStyle::kText);
}

TEST(ApiClientsTest, AReferencedThoughtIsPutBackAndAnUnknownMessageIsNamed) {
  Recorded request = recorded("ai_sdk_openai_responses_turn2");
  const auto reference =
      std::find_if(request.body["input"].begin(), request.body["input"].end(),
                   [](const Json& item) { return item.value("type", "") == "item_reference"; });
  ASSERT_NE(reference, request.body["input"].end());
  const std::size_t unknown = prompt_use(answer_of(mini_server(), request)).tokens;
  Json thinking = responses_body("My cat is called Milo.", {{"reasoning", Json::object()}});
  const Json said = mini_server().ask(kResponsesPath, thinking);
  ASSERT_EQ(said["output"][0]["type"], "reasoning");
  (*reference)["id"] = said["output"][0]["id"];
  EXPECT_GT(prompt_use(answer_of(mini_server(), request)).tokens, unknown);
  (*reference)["id"] = "msg_of_nobody";
  expect_refused(mini_server().post(request.path, request.body), 400, "\"msg_of_nobody\"");
}

TEST(ApiClientsTest, AClientThatWantsAnObjectGetsACall) {
  Recorded request = recorded("ai_sdk_anthropic_object", 400);
  // A model that was never taught calls would not end a free text.
  for (auto& [name, property] : request.body["tools"][0]["input_schema"]["properties"].items()) {
    property["enum"] = property["type"] == "string" ? Json::array({"x"}) : Json::array({1});
  }
  const Json answer = answer_of(mini_server(), request);
  ASSERT_FALSE(answer["content"].empty());
  EXPECT_EQ(answer["content"][0]["type"], "tool_use") << answer;
  EXPECT_EQ(answer["content"][0]["name"], request.body["tools"][0]["name"]);
  EXPECT_EQ(answer["stop_reason"], "tool_use");
}

}  // namespace
}  // namespace locket::server
