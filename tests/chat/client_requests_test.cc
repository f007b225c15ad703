// Requests of real clients: all are accepted, and a session's second request begins with the prompt
// of the first, so that what was read of it is found again.
#include <gtest/gtest.h>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "chat/markup.h"
#include "tests/chat/dialect_rows.h"

namespace locket::chat {
namespace {

RenderedPrompt prompt_of_client(const ClientRequest& client) {
  return rendered(parser_of_path(client.path), client.body);
}

// The segments before the header of the answer, which is the assistant token and what follows it.
std::vector<Segment> without_header(const RenderedPrompt& prompt) {
  std::vector<Segment> segments = prompt.segments;
  while (!segments.empty() && segments.back().text != kAssistantToken) segments.pop_back();
  if (!segments.empty()) segments.pop_back();
  return segments;
}

void expect_continues(const std::string& client) {
  SCOPED_TRACE(client);
  const std::vector<Segment> first =
      without_header(prompt_of_client(client_request(client + "_turn1")));
  std::vector<Segment> second = prompt_of_client(client_request(client + "_turn2")).segments;
  ASSERT_GT(first.size(), 5U);
  ASSERT_GT(second.size(), first.size());
  second.resize(first.size());
  EXPECT_TRUE(first == second);
}

TEST(ClientRequestsTest, EveryRequestIsAcceptedByItsEndpoint) {
  std::size_t accepted = 0;
  for (const ClientRequest& client : all_client_requests()) {
    SCOPED_TRACE(client.name);
    EXPECT_EQ(refusal(parser_of_path(client.path), client.body.dump()), "");
    ++accepted;
  }
  EXPECT_EQ(accepted, 23U);
}

TEST(ClientRequestsTest, TheSecondTurnOfASessionBeginsWithTheFirst) {
  for (const std::string client : {"claude_code", "codex", "dsh"}) expect_continues(client);
}

TEST(ClientRequestsTest, TheHeaderOfTheFirstTurnStandsInTheSecondToo) {
  // With tools the old reasoning is kept, so that even the answer's header is found again.
  for (const std::string client : {"claude_code", "codex", "dsh"}) {
    const std::string first =
        join_segments(prompt_of_client(client_request(client + "_turn1")).segments);
    const std::string second =
        join_segments(prompt_of_client(client_request(client + "_turn2")).segments);
    EXPECT_TRUE(second.starts_with(first)) << client;
  }
}

TEST(ClientRequestsTest, SessionsOfOneUserShareTheirMemory) {
  ClientRequest client = client_request("claude_code_turn1");
  const Result<ChatRequest> first = parse_messages_request(client.body.dump());
  OrderedJson user = OrderedJson::parse(client.body["metadata"]["user_id"].get<std::string>());
  ASSERT_TRUE(user.contains("session_id"));
  user["session_id"] = "another";
  client.body["metadata"]["user_id"] = user.dump();
  const Result<ChatRequest> second = parse_messages_request(client.body.dump());
  EXPECT_NE(first->user_id, "");
  EXPECT_EQ(first->user_id, second->user_id);
  user["device_id"] = "another";
  client.body["metadata"]["user_id"] = user.dump();
  EXPECT_NE(parse_messages_request(client.body.dump())->user_id, first->user_id);
}

TEST(ClientRequestsTest, AnAgentsLogIsNoPartOfThePromptNorNamed) {
  ClientRequest client = client_request("dsh_turn2");
  const RenderedPrompt with_log = prompt_of_client(client);
  ASSERT_TRUE(client.body.contains("dsh_session_log"));
  EXPECT_TRUE(parse_messages_request(client.body.dump())->unknown_fields.empty());
  client.body.erase("dsh_session_log");
  client.body.erase("dsh_plugin_packages");
  EXPECT_TRUE(with_log.segments == prompt_of_client(client).segments);
}

void erase_cache_control(OrderedJson& value) {
  if (value.is_object()) value.erase("cache_control");
  if (!value.is_structured()) return;
  for (auto& item : value) erase_cache_control(item);
}

TEST(ClientRequestsTest, MovingCacheControlChangesNothing) {
  ClientRequest client = client_request("claude_code_turn1");
  const RenderedPrompt before = prompt_of_client(client);
  erase_cache_control(client.body);
  client.body["messages"][0]["content"][0]["cache_control"]["type"] = "ephemeral";
  EXPECT_TRUE(before.segments == prompt_of_client(client).segments);
}

TEST(ClientRequestsTest, ABillingHeaderIsNoPartOfThePrompt) {
  ClientRequest client = client_request("claude_code_turn1");
  const RenderedPrompt before = prompt_of_client(client);
  EXPECT_EQ(join_segments(before.segments).find("x-anthropic-billing-header"), std::string::npos);
  client.body["system"][0]["text"] = "x-anthropic-billing-header: cc_version=9; cch=0a1b2;";
  EXPECT_TRUE(before.segments == prompt_of_client(client).segments);
}

TEST(ClientRequestsTest, ASystemMessageReadsTheSameAsAListAndAsAString) {
  ClientRequest client = client_request("claude_code_turn1");
  const RenderedPrompt before = prompt_of_client(client);
  OrderedJson& content = client.body["messages"][1]["content"];
  ASSERT_TRUE(content.is_array());
  const std::string text = content[0]["text"];
  content = text;
  EXPECT_TRUE(before.segments == prompt_of_client(client).segments);
}

TEST(ClientRequestsTest, AReferenceIsResolvedOrNamed) {
  class OneItem final : public IssuedItems {
   public:
    std::optional<IssuedItem> find(std::string_view id) const override {
      if (id != "rs_70092f45ef2d45adb06e031cdb39fc65") return std::nullopt;
      return IssuedItem{IssuedItem::Kind::kReasoning, "I look it up."};
    }
  };
  ClientRequest client = client_request("ai_sdk_openai_responses_turn2");
  const Result<ChatRequest> found = parse_responses_request(client.body.dump(), OneItem());
  ASSERT_TRUE(found.has_value()) << found.error().message;
  EXPECT_NE(join_segments(render_segments(*found).segments).find("<think>I look it up.</think>"),
            std::string::npos);
  // An unknown thought is left out; an unknown message is not lost silently.
  EXPECT_EQ(refusal(&parse_responses, client.body.dump()), "");
  client.body["input"][1]["id"] = "msg_1";
  const std::string message = refusal(&parse_responses, client.body.dump());
  EXPECT_NE(message.find("input[1].id is \"msg_1\""), std::string::npos) << message;
  EXPECT_NE(message.find("\"store\": false"), std::string::npos) << message;
}

TEST(ClientRequestsTest, AClientThatWantsAnObjectGetsACall) {
  const ClientRequest client = client_request("ai_sdk_anthropic_object");
  const Result<ChatRequest> request = parse_messages_request(client.body.dump());
  ASSERT_TRUE(request.has_value());
  EXPECT_EQ(request->thinking, ThinkingMode::kChat);
  EXPECT_EQ(render_segments(*request).parser.start, ReplyStart::kCalls);
}

TEST(ClientRequestsTest, NamespacedToolsAreFlattenedAndRemembered) {
  const ClientRequest client = client_request("codex_turn1");
  const Result<ChatRequest> request = parse_responses(client.body.dump());
  ASSERT_TRUE(request.has_value());
  EXPECT_EQ(request->tools.size(), 12U);
  ASSERT_EQ(request->namespaces.size(), 5U);
  EXPECT_EQ(request->namespaces[0].flat, "multi_agent_v1::close_agent");
  EXPECT_EQ(request->namespaces[0].name_space, "multi_agent_v1");
  EXPECT_EQ(request->namespaces[0].name, "close_agent");
}

}  // namespace
}  // namespace locket::chat
