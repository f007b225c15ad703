#include "chat/responses_request.h"

#include <gtest/gtest.h>
#include <string>
#include <string_view>

#include "tests/chat/dialect_rows.h"

namespace locket::chat {
namespace {

std::string with_input(std::string_view items) {
  return R"({"reasoning": {"effort": "none"}, "input": [)" + std::string(items) + "]}";
}

std::string with_fields(std::string_view fields) {
  return R"({"input": "q", )" + std::string(fields) + "}";
}

ChatRequest accepted(const std::string& body) {
  Result<ChatRequest> request = parse_responses(body);
  EXPECT_TRUE(request.has_value()) << (request ? "" : request.error().message);
  return request.value_or(ChatRequest{});
}

std::string refused(const std::string& body) { return refusal(&parse_responses, body); }

constexpr std::string_view kCall =
    R"({"type": "function_call", "call_id": "k", "name": "f", "arguments": "{}"})";
constexpr std::string_view kOutput =
    R"({"type": "function_call_output", "call_id": "k", "output": "x"})";

TEST(ResponsesRequestTest, ReadsItsFields) {
  const ChatRequest request = accepted(with_fields(
      R"("model": "m", "max_output_tokens": 7, "temperature": 0.5, "stream": true, "user": "u-1",
         "reasoning": {"effort": "low", "summary": "auto"}, "cache_salt": "s/1=",
         "text": {"format": {"type": "text"}, "verbosity": "low"})"));
  EXPECT_EQ(request.model, "m");
  EXPECT_EQ(request.max_tokens, 7);
  EXPECT_EQ(request.sampling.temperature, 0.5);
  EXPECT_TRUE(request.is_stream && request.wants_stream_usage);
  EXPECT_EQ(request.user_id, "u-1");
  EXPECT_EQ(request.cache_salt, "s/1=");
  EXPECT_EQ(request.effort, 50);
  EXPECT_EQ(request.thinking, ThinkingMode::kThinking);
}

TEST(ResponsesRequestTest, TakesNoNoticeOfWhatOnlyTheHostedServiceKeeps) {
  const ChatRequest request = accepted(with_fields(
      R"("previous_response_id": "r", "conversation": {}, "store": true, "background": false,
         "metadata": {"a": 1}, "include": ["x"], "prompt": 3, "truncation": "auto", "n": 7,
         "service_tier": "flex", "safety_identifier": [], "prompt_cache_key": "k", "stop": [1],
         "prompt_cache_retention": "24h", "context_management": {}, "max_tool_calls": "many",
         "stream_options": {"include_obfuscation": false}, "parallel_tool_calls": false,
         "client_metadata": {"b": {}}, "reasoning": {"summary": "auto"})"));
  EXPECT_EQ(request.n, 1);
  EXPECT_EQ(request.effort, kDefaultEffort);
  EXPECT_EQ(request.unknown_fields, (std::vector<std::string>{"n", "stop"}));
}

TEST(ResponsesRequestTest, NamesTheFieldTheValueAndWhatWouldBeRight) {
  EXPECT_EQ(refused("[]"), "the body is a list; it must be an object");
  EXPECT_EQ(refused("{}"), "input is missing; it must be a string or a list of items");
  EXPECT_EQ(refused(with_fields(R"("instructions": 7)")), "instructions is 7; it must be a string");
  EXPECT_EQ(refused(with_fields(R"("max_output_tokens": 0)")),
            "max_output_tokens is 0; it must be an integer from 1 to 9223372036854775807");
  EXPECT_EQ(refused(with_fields(R"("reasoning": {"effort": "much"})")),
            "reasoning.effort is \"much\"; it must be one of none minimal low medium high xhigh "
            "max ultra, or an integer from 1 to 100");
  EXPECT_EQ(refused(with_fields(R"("user": "a b")")),
            "user is \"a b\"; it must be 1 to 512 letters, digits, '_' or '-'");
  EXPECT_EQ(refused(with_input(R"({"role": "tool", "content": "x"})")),
            "input[0].role is \"tool\"; it must be \"user\", \"assistant\", \"system\" or "
            "\"developer\"");
  EXPECT_EQ(refused(with_input("3")), "input[0] is 3; it must be an object");
  EXPECT_EQ(refused(with_input(R"({"role": "user", "content": [{"type": "input_audio"}]})")),
            "input[0].content[0].type is \"input_audio\"; it must be \"input_text\", "
            "\"output_text\", \"refusal\" or \"input_image\"");
}

TEST(ResponsesRequestTest, JoinsTheItemsOfOneAssistantTurn) {
  const ChatRequest request = accepted(with_input(
      R"({"role": "user", "content": "q"},
         {"type": "reasoning", "summary": [{"type": "summary_text", "text": "no"}],
          "content": [{"type": "reasoning_text", "text": "r1"}]},
         {"type": "reasoning", "content": [{"type": "reasoning_text", "text": "r2"}]},
         {"type": "message", "role": "assistant", "content": "a"}, )" +
      std::string(kCall) + R"(, {"type": "web_search_call", "id": "w"}, )" + std::string(kOutput) +
      R"(, {"type": "reasoning", "content": [{"type": "reasoning_text", "text": "r3"}]},
         {"role": "assistant", "content": [{"type": "output_text", "text": "b"},
                                           {"type": "refusal", "refusal": "c"}]})"));
  ASSERT_EQ(request.messages.size(), 4U);
  EXPECT_EQ(request.messages[1].reasoning, "r1\n\nr2");
  EXPECT_EQ(request.messages[1].content.size(), 1U);
  EXPECT_EQ(request.messages[1].tool_calls.size(), 1U);
  EXPECT_EQ(request.messages[2].role, Role::kTool);
  EXPECT_EQ(request.messages[3].reasoning, "r3");
  EXPECT_EQ(request.messages[3].content.size(), 2U);
}

TEST(ResponsesRequestTest, KeepsTwoFinishedTextsApart) {
  const ChatRequest request = accepted(with_input(
      R"({"role": "assistant", "content": "a"}, {"role": "assistant", "content": "b"})"));
  EXPECT_EQ(request.messages.size(), 2U);
}

TEST(ResponsesRequestTest, ChecksTheIdsOfCalls) {
  const std::string call(kCall);
  const std::string output(kOutput);
  EXPECT_EQ(refused(with_input(call + ", " + call + ", " + output)),
            "input[1].call_id is \"k\"; it must be an id that no other call has");
  EXPECT_EQ(refused(with_input(output)),
            "input[0].call_id is \"k\"; it must be the id of an earlier call without an output; "
            "send the whole conversation, with the item that made the call");
  EXPECT_NE(refused(with_input(call + ", " + output + ", " + output)), "");
  EXPECT_NE(refused(with_input(R"({"type": "function_call", "call_id": "", "name": "f"})")), "");
  EXPECT_EQ(refused(with_input(R"({"type": "function_call", "name": "f"})")),
            "input[0].call_id is missing; it must be a string");
}

// Case D33: an interrupted turn names the call; results in another order work.
TEST(ResponsesRequestTest, D33NamesTheCallThatHasNoOutput) {
  const std::string message = refused(with_input(
      R"({"role": "user", "content": "q"}, )" + std::string(kCall) +
      R"(, {"type": "function_call", "call_id": "z", "name": "f", "arguments": "{}"}, )" +
      std::string(kOutput) + R"(, {"role": "user", "content": "go on"})"));
  EXPECT_EQ(message,
            "input[2] is the call \"z\", which has no output; send an item function_call_output "
            "with this call_id");
}

TEST(ResponsesRequestTest, RefusesPicturesWithTheKnownWords) {
  const auto content = [](std::string_view role, std::string_view part) {
    return with_input(R"({"role": ")" + std::string(role) + R"(", "content": [)" +
                      std::string(part) + "]}");
  };
  EXPECT_EQ(refused(content("user", R"({"type": "input_image"})")),
            "input[0].content[0]: input_image must have image_url or file_id");
  EXPECT_EQ(
      refused(content("user", R"({"type": "input_image", "image_url": "u", "file_id": "f"})")),
      "input[0].content[0]: input_image cannot have both image_url and file_id");
  const Result<ChatRequest> file =
      parse_responses(content("user", R"({"type": "input_file", "file_id": "f"})"));
  EXPECT_EQ(file.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(refused(content("assistant", R"({"type": "input_image", "image_url": "https://h/x"})"))
                .find("input[0].content[0] is an image"),
            std::string::npos);
  EXPECT_EQ(accepted(content("developer", R"({"type": "input_image", "image_url": "https://h/x",
                                              "detail": "low"})"))
                .messages[0]
                .content[0]
                .image.detail,
            "low");
}

TEST(ResponsesRequestTest, ReadsThePatchToolAsAFunctionOfOneText) {
  const ChatRequest request = accepted(
      R"({"input": [{"role": "user", "content": "q"},
                    {"type": "custom_tool_call", "call_id": "p", "name": "apply_patch",
                     "input": "*** Begin\n\"x\""},
                    {"type": "custom_tool_call_output", "call_id": "p", "output": "done"}],
          "tools": [{"type": "custom", "name": "apply_patch", "description": "d",
                     "format": {"type": "grammar"}}]})");
  EXPECT_TRUE(request.has_patch_tool);
  ASSERT_EQ(request.tools.size(), 1U);
  EXPECT_EQ(request.messages[1].tool_calls[0].arguments, R"({"input": "*** Begin\n\"x\""})");
  EXPECT_NE(join_segments(render_segments(request).segments)
                .find("parameter name=\"input\" string=\"true\">*** Begin\n\"x\"</"),
            std::string::npos);
  EXPECT_NE(refused(with_fields(R"("tools": [{"type": "custom", "name": "sing"}])")), "");
}

TEST(ResponsesRequestTest, SkipsToolsThatAServiceRuns) {
  const ChatRequest request = accepted(with_fields(
      R"("tools": [{"type": "web_search", "external_web_access": true}, {"type": "mcp"},
                   {"type": "code_interpreter", "container": {}}], "tool_choice": "auto")"));
  EXPECT_TRUE(request.tools.empty());
}

TEST(ResponsesRequestTest, RefusesConflictingToolNames) {
  const auto tools = [](std::string_view list) {
    return with_fields(R"("tools": [)" + std::string(list) + "]");
  };
  EXPECT_NE(
      refused(tools(R"({"type": "function", "name": "f"}, {"type": "function", "name": "f"})")),
      "");
  EXPECT_NE(refused(tools(R"({"type": "namespace", "name": "n", "tools": [
                              {"type": "namespace", "name": "m", "tools": []}]})")),
            "");
  EXPECT_NE(refused(tools(R"({"type": "function", "name": "a::b"})")), "");
  EXPECT_EQ(accepted(tools(R"({"type": "function", "name": ")" + std::string(128, 'a') + R"("})"))
                .tools.size(),
            1U);
  EXPECT_NE(refused(tools(R"({"type": "function", "name": ")" + std::string(129, 'a') + R"("})")),
            "");
}

TEST(ResponsesRequestTest, ReadsTheFormsOfToolChoice) {
  const auto choice = [](std::string_view value) {
    return accepted(with_fields(
        R"("tools": [{"type": "function", "name": "f"}, {"type": "function", "name": "g"},
                     {"type": "namespace", "name": "n", "tools": [{"name": "h"}]}],
           "tool_choice": )" +
        std::string(value)));
  };
  EXPECT_EQ(choice("null").tool_choice.kind, ToolChoice::Kind::kAuto);
  EXPECT_EQ(choice(R"("required")").tool_choice.kind, ToolChoice::Kind::kRequired);
  EXPECT_EQ(choice(R"("required")").thinking, ThinkingMode::kChat);
  EXPECT_EQ(choice(R"({"type": "function", "name": "g"})").tool_choice.name, "g");
  EXPECT_EQ(choice(R"({"type": "function", "name": "h", "namespace": "n"})").tool_choice.name,
            "n::h");
  EXPECT_EQ(choice(R"({"type": "web_search"})").tool_choice.kind, ToolChoice::Kind::kAuto);
  const ChatRequest allowed = choice(R"({"type": "allowed_tools", "mode": "required",
                                         "tools": [{"type": "function", "name": "g"}]})");
  EXPECT_EQ(allowed.tool_choice.kind, ToolChoice::Kind::kRequired);
  ASSERT_EQ(allowed.tools.size(), 1U);
  EXPECT_EQ(allowed.tools[0].name, "g");
  EXPECT_NE(refused(with_fields(R"("tool_choice": {"type": "function", "name": "x"})")), "");
}

TEST(ResponsesRequestTest, NormalisesAStrictFormat) {
  const ChatRequest request = accepted(with_fields(
      R"("text": {"format": {"type": "json_schema", "name": "n", "strict": true,
         "schema": {"title": "t", "type": "object", "properties": {"x": {"type": "string"}}}}})"));
  EXPECT_EQ(request.response_format.kind, ResponseFormat::Kind::kJsonSchema);
  EXPECT_EQ(request.response_format.schema.find("title"), std::string::npos);
  EXPECT_NE(refused(with_fields(R"("text": {"format": {"type": "json_schema"}})")), "");
}

TEST(ResponsesRequestTest, EmptyInstructionsAreNoMessage) {
  EXPECT_EQ(accepted(with_fields(R"("instructions": "")")).messages.size(), 1U);
  EXPECT_EQ(accepted(with_fields(R"("instructions": null)")).messages.size(), 1U);
  EXPECT_NE(refused(with_input(R"({"type": "computer_call"})")), "");
}

}  // namespace
}  // namespace locket::chat
