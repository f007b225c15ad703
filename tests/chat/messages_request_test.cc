#include "chat/messages_request.h"

#include <gtest/gtest.h>
#include <string>
#include <string_view>
#include <vector>

#include "tests/chat/dialect_rows.h"

namespace locket::chat {
namespace {

std::string with_messages(std::string_view messages) {
  return R"({"thinking": {"type": "disabled"}, "messages": [)" + std::string(messages) + "]}";
}

std::string with_fields(std::string_view fields) {
  return R"({"messages": [{"role": "user", "content": "q"}], )" + std::string(fields) + "}";
}

ChatRequest accepted(const std::string& body) {
  Result<ChatRequest> request = parse_messages_request(body);
  EXPECT_TRUE(request.has_value()) << (request ? "" : request.error().message);
  return request.value_or(ChatRequest{});
}

std::string refused(const std::string& body) { return refusal(&parse_messages_request, body); }

std::string prompt(const std::string& body) { return prompt_text(&parse_messages_request, body); }

constexpr std::string_view kCall =
    R"({"role": "assistant", "content": [{"type": "tool_use", "id": "k", "name": "f", "input": {}}]})";
constexpr std::string_view kTool = R"({"name": "f", "input_schema": {"type": "object"}})";

TEST(MessagesRequestTest, ReadsItsFields) {
  const ChatRequest request = accepted(with_fields(
      R"("model": "m", "max_tokens": 7, "temperature": 0.5, "stream": true, "top_k": 40,
         "stop_sequences": ["END", " "], "thinking": {"type": "enabled", "budget_tokens": 1024},
         "output_config": {"effort": "max"}, "cache_salt": "s")"));
  EXPECT_EQ(request.model, "m");
  EXPECT_EQ(request.max_tokens, 7);
  EXPECT_EQ(request.stop, (std::vector<std::string>{"END", " "}));
  EXPECT_FALSE(request.sampling.top_k.has_value());
  EXPECT_TRUE(request.is_stream && request.wants_stream_usage);
  EXPECT_EQ(request.effort, 100);
  EXPECT_EQ(request.cache_salt, "s");
}

TEST(MessagesRequestTest, TakesNoNoticeOfWhatOnlyTheHostedServiceKeeps) {
  const ChatRequest request = accepted(with_fields(
      R"("context_management": {"edits": []}, "container": 1, "mcp_servers": [], "zzz": {},
         "service_tier": "auto", "thinking": {"type": "adaptive", "display": "omitted"},
         "dsh_session_log": {"events": ["secret"]}, "dsh_plugin_packages": 7)"));
  EXPECT_EQ(request.thinking, ThinkingMode::kThinking);
  EXPECT_EQ(request.unknown_fields, (std::vector<std::string>{"zzz"}));
}

TEST(MessagesRequestTest, NamesTheFieldTheValueAndWhatWouldBeRight) {
  EXPECT_EQ(refused("{}"), "messages is missing; it must be a list of messages");
  EXPECT_EQ(refused(R"({"messages": []})"),
            "messages is a list; it must be a list of at least one message");
  EXPECT_EQ(refused(with_messages(R"({"role": "tool", "content": "x"})")),
            "messages[0].role is \"tool\"; it must be \"user\", \"assistant\" or \"system\"");
  EXPECT_EQ(refused(with_messages(R"({"role": "user", "content": 7})")),
            "messages[0].content is 7; it must be a string or a list of blocks");
  EXPECT_EQ(refused(with_messages(R"({"role": "user", "content": ["x"]})")),
            "messages[0].content[0] is \"x\"; it must be an object with a type");
  EXPECT_EQ(refused(with_messages(R"({"role": "user", "content": [{"type": "sound"}]})")),
            "messages[0].content[0].type is \"sound\"; it must be \"text\" or \"image\"");
  EXPECT_EQ(refused(with_fields(R"("system": [{"type": "image"}])")),
            "system[0].type is \"image\"; it must be \"text\"");
  EXPECT_EQ(refused(with_fields(R"("output_config": {"effort": "much"})")),
            "output_config.effort is \"much\"; it must be one of none minimal low medium high "
            "xhigh max ultra, or an integer from 1 to 100");
  EXPECT_EQ(refused(with_fields(R"("output_config": {"format": {"type": "text"}})")),
            "output_config.format.type is \"text\"; it must be \"json_schema\"");
  EXPECT_EQ(refused(with_fields(R"("tool_choice": {"type": "some"})")),
            "tool_choice.type is \"some\"; it must be \"auto\", \"any\", \"tool\" or \"none\"");
  EXPECT_EQ(refused(with_fields(R"("metadata": 3)")), "metadata is 3; it must be an object");
}

TEST(MessagesRequestTest, SaysWhichBlocksAreNotSupported) {
  for (const std::string_view type : {"document", "redacted_thinking", "search_result"}) {
    const Result<ChatRequest> request = parse_messages_request(with_messages(
        R"({"role": "user", "content": [{"type": ")" + std::string(type) + R"("}]})"));
    ASSERT_FALSE(request.has_value());
    EXPECT_EQ(request.error().code, ErrorCode::kUnsupported);
    EXPECT_NE(request.error().message.find(type), std::string::npos);
  }
}

TEST(MessagesRequestTest, AStringAndAListOfBlocksAreTheSameSystemText) {
  const auto body = [](std::string_view content) {
    return R"({"system": )" + std::string(content) +
           R"(, "messages": [{"role": "user", "content": "q"}, {"role": "system", "content": )" +
           std::string(content) + "}]}";
  };
  EXPECT_EQ(prompt(body(R"("be brief")")), prompt(body(R"([{"type": "text", "text": "be brief",
                                                      "cache_control": {"type": "ephemeral"}}])")));
}

TEST(MessagesRequestTest, TakesWhatChangesOutOfTheSystemsTextOnly) {
  const auto body = [](std::string_view first, std::string_view user, std::string_view later) {
    return R"({"thinking": {"type": "disabled"}, "system": [{"type": "text", "text": ")" +
           std::string(first) + R"("}, {"type": "text", "text": "S"}],
           "messages": [{"role": "user", "content": ")" +
           std::string(user) + R"("}, {"role": "system", "content": ")" + std::string(later) +
           R"("}]})";
  };
  constexpr std::string_view kHeader = "x-anthropic-billing-header: v=1; cch=0a1b2;";
  constexpr std::string_view kCount = "<total_tokens>123 tokens left</total_tokens>";
  EXPECT_EQ(prompt(body(kHeader, "q", kCount)),
            "<｜begin▁of▁sentence｜><｜System｜>S<｜User｜>q<｜Assistant｜></think>");
  EXPECT_NE(prompt(body("T", kHeader, "x")).find(kHeader), std::string::npos);
  EXPECT_NE(prompt(body("T", kCount, "x")).find(kCount), std::string::npos);
}

TEST(MessagesRequestTest, ResultsMustFollowTheirCallsAtOnce) {
  const auto answer = [](std::string_view content) {
    return with_messages(R"({"role": "user", "content": "go"}, )" + std::string(kCall) +
                         R"(, {"role": "user", "content": [)" + std::string(content) + "]}");
  };
  constexpr std::string_view kResult = R"({"type": "tool_result", "tool_use_id": "k"})";
  EXPECT_EQ(refused(answer(kResult)), "");
  EXPECT_EQ(refused(answer(std::string(kResult) + R"(, {"type": "text", "text": "and?"})")), "");
  EXPECT_EQ(refused(answer(R"({"type": "tool_result", "tool_use_id": "z"})")),
            "messages[2].content[0]: unexpected `tool_use_id` found in `tool_result` blocks: z. "
            "Each `tool_result` block must have a corresponding `tool_use` block in the previous "
            "message.");
  EXPECT_NE(refused(answer(std::string(kResult) + ", " + std::string(kResult))), "");
  EXPECT_NE(refused(answer(R"({"type": "text", "text": "first"}, )" + std::string(kResult))), "");
  // A call at the very end waits for its result too.
  EXPECT_NE(refused(with_messages(kCall)).find("`tool_result` blocks immediately after: k"),
            std::string::npos);
  // What a client says to the model between a call and its result is no answer.
  EXPECT_EQ(refused(with_messages(std::string(kCall) + R"(, {"role": "system", "content": "s"},
                 {"role": "user", "content": [)" +
                                  std::string(kResult) + "]}")),
            "");
}

TEST(MessagesRequestTest, IdsOfCallsAreUnique) {
  const std::string turn = std::string(kCall) +
                           R"(, {"role": "user", "content": [{"type": "tool_result",
                                 "tool_use_id": "k", "content": "x"}]})";
  EXPECT_EQ(refused(with_messages(turn)), "");
  EXPECT_EQ(refused(with_messages(turn + ", " + turn)),
            "messages.2: `tool_use` ids must be unique: k");
}

TEST(MessagesRequestTest, AResultMayHoldNothingTextPicturesOrAReference) {
  const auto body = [](std::string_view content) {
    return R"({"thinking": {"type": "disabled"}, "tools": [)" + std::string(kTool) +
           R"(, {"name": "g", "description": "d", "input_schema": {"type": "object"},
                 "defer_loading": true}], "messages": [)" +
           std::string(kCall) + R"(, {"role": "user", "content": [{"type": "tool_result",
             "tool_use_id": "k", "content": )" +
           std::string(content) + "}]}]}";
  };
  const auto result = [&](std::string_view content) {
    const std::string text = prompt(body(content));
    const std::size_t start = text.find("<tool_result>");
    return text.substr(start, text.find("</tool_result>") - start);
  };
  EXPECT_EQ(result("null"), "<tool_result>");
  EXPECT_EQ(result(R"([{"type": "image", "source": {"type": "url", "url": "https://h/x"}}])"),
            "<tool_result><｜deepseek_image｜>");
  EXPECT_EQ(result(R"([{"type": "tool_reference", "tool_name": "g"}])"),
            R"(<tool_result>{"name": "g", "description": "d", "parameters": {"type": "object"}})");
  EXPECT_EQ(result(R"([{"type": "tool_reference", "tool_name": "h"}])"), "<tool_result>h");
}

TEST(MessagesRequestTest, SkipsToolsThatAServiceRuns) {
  const ChatRequest request = accepted(with_fields(
      R"("tools": [{"type": "web_search_20250305", "name": "web_search", "max_uses": 5},
                   {"type": "custom", "name": "f", "input_schema": {"type": "object"}}])"));
  ASSERT_EQ(request.tools.size(), 1U);
  EXPECT_EQ(request.tools[0].name, "f");
  EXPECT_EQ(request.tools[0].description, "");
  EXPECT_EQ(refused(with_fields(R"("tools": [{"type": "bash_20250124", "name": "bash"}])")),
            "tools[0].type is \"bash_20250124\"; it must be \"custom\", with an input_schema");
  EXPECT_EQ(refused(with_messages(R"({"role": "assistant", "content": [
                {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},
                {"type": "web_search_tool_result", "tool_use_id": "s", "content": []},
                {"type": "text", "text": "a"}]})")),
            "");
}

TEST(MessagesRequestTest, AForcedCallGoesBeforeThinkingUnlessThatWasSwitchedOn) {
  const auto request = [](std::string_view choice, std::string_view thinking) {
    return with_fields(R"("tools": [)" + std::string(kTool) + R"(], "tool_choice": )" +
                       std::string(choice) + R"(, "thinking": )" + std::string(thinking));
  };
  constexpr std::string_view kAny = R"({"type": "any"})";
  constexpr std::string_view kNamed = R"({"type": "tool", "name": "f"})";
  constexpr std::string_view kOn = R"({"type": "enabled"})";
  constexpr std::string_view kAdaptive = R"({"type": "adaptive"})";
  for (const std::string_view choice : {kAny, kNamed}) {
    for (const std::string_view thinking : {std::string_view("null"), kAdaptive}) {
      const ChatRequest forced = accepted(request(choice, thinking));
      EXPECT_TRUE(has_forced_call(forced));
      EXPECT_EQ(forced.thinking, ThinkingMode::kChat);
    }
  }
  EXPECT_EQ(accepted(request(kAny, kOn)).tool_choice.kind, ToolChoice::Kind::kAuto);
  EXPECT_EQ(accepted(request(kAny, kOn)).thinking, ThinkingMode::kThinking);
  EXPECT_NE(refused(request(kNamed, kOn)), "");
  EXPECT_NE(refused(with_fields(R"("tool_choice": {"type": "any"})")), "");
  EXPECT_NE(refused(request(R"({"type": "tool", "name": "x"})", "null")), "");
}

TEST(MessagesRequestTest, UserIdsOfAnyFormAreTaken) {
  const auto user = [](std::string_view value) {
    return accepted(with_fields(R"("metadata": {"user_id": )" + std::string(value) + "}")).user_id;
  };
  EXPECT_EQ(user(R"("{\"session_id\":\"s\",\"device_id\":\"d\",\"account_uuid\":\"\"}")"),
            R"({"account_uuid": "", "device_id": "d"})");
  EXPECT_EQ(user(R"("{\"device_id\":\"d\",\"account_uuid\":\"\",\"session_id\":\"t\"}")"),
            R"({"account_uuid": "", "device_id": "d"})");
  EXPECT_EQ(user(R"("user_1_account__session_2")"), "user_1_account_");
  EXPECT_EQ(user(R"("a b@c")"), "a b@c");
  EXPECT_EQ(user("null"), "");
  EXPECT_EQ(user("17"), "");
}

TEST(MessagesRequestTest, ReadsAFormat) {
  const ChatRequest request = accepted(with_fields(
      R"("output_config": {"format": {"type": "json_schema", "schema": {"type": "object"}}})"));
  EXPECT_EQ(request.response_format.kind, ResponseFormat::Kind::kJsonSchema);
  EXPECT_EQ(request.response_format.schema, R"({"type": "object"})");
}

}  // namespace
}  // namespace locket::chat
