// Faults that chat servers are known for, on every endpoint. Each test begins with the case's id.
#include <gtest/gtest.h>
#include <string>
#include <string_view>
#include <vector>

#include "tests/chat/dialect_rows.h"

namespace locket::chat {
namespace {

Result<ChatRequest> parse_completion(std::string_view body) {
  LOCKET_TRY(CompletionRequest request, parse_completion_request(body));
  return request.options;
}

struct Endpoint {
  Parser parser;
  std::string before;  // of a request, up to the text that the user says
  std::string field;   // the name of that text
};

const std::vector<Endpoint>& endpoints() {
  static const std::vector<Endpoint> all = {
      {&parse_chat_request, R"({"messages": [{"role": "user", "content": )", "messages[0].content"},
      {&parse_messages_request, R"({"messages": [{"role": "user", "content": )",
       "messages[0].content"},
      {&parse_responses, R"({"input": [{"role": "user", "content": )", "input[0].content"},
      {&parse_completion, R"({"prompt": )", "prompt"}};
  return all;
}

// The request that says `text`, a JSON value.
std::string saying(const Endpoint& endpoint, std::string_view text) {
  return endpoint.before + std::string(text) + (endpoint.field == "prompt" ? "}" : "}]}");
}

TEST(DialectCasesTest, C09HalfOfASurrogatePairIsRefusedByName) {
  for (const Endpoint& endpoint : endpoints()) {
    for (const std::string_view text : {R"("x \ud83d")", R"("\ude00 y")"}) {
      const Result<ChatRequest> request = endpoint.parser(saying(endpoint, text));
      ASSERT_FALSE(request.has_value());
      EXPECT_EQ(request.error().code, ErrorCode::kBadRequest);
      EXPECT_NE(request.error().message.find(endpoint.field), std::string::npos)
          << request.error().message;
    }
    EXPECT_EQ(refusal(endpoint.parser, saying(endpoint, R"("\ud83d\ude00")")), "");
  }
}

TEST(DialectCasesTest, C11AnInvalidEscapeIsRefusedWithItsPlace) {
  for (const Endpoint& endpoint : endpoints()) {
    const std::string body = saying(endpoint, R"("a\sb")");
    const std::string place = "byte offset " + std::to_string(body.find("\\s"));
    const std::string message = refusal(endpoint.parser, body);
    EXPECT_NE(message.find(place), std::string::npos) << message;
    EXPECT_EQ(refusal(endpoint.parser, saying(endpoint, R"("a\\sb")")), "");
  }
}

TEST(DialectCasesTest, C22AChoiceOfNoneShowsNoTool) {
  const std::string messages = prompt_text(
      &parse_messages_request,
      R"({"messages": [{"role": "user", "content": "q"}], "tool_choice": {"type": "none"},
          "tools": [{"name": "f", "input_schema": {"type": "object"}}]})");
  const std::string responses =
      prompt_text(&parse_responses, R"({"input": "q", "tool_choice": "none",
                                        "tools": [{"type": "function", "name": "f"}]})");
  EXPECT_EQ(messages, responses);
  EXPECT_EQ(messages.find("Tools"), std::string::npos);
}

TEST(DialectCasesTest, C23NullContentIsEmptyAndNeverAWord) {
  const std::string messages = prompt_text(&parse_messages_request,
                                           R"({"thinking": {"type": "disabled"}, "system": null,
          "messages": [{"role": "user", "content": null},
                       {"role": "assistant", "content": null},
                       {"role": "user", "content": [{"type": "text", "text": ""}]}]})");
  EXPECT_EQ(
      messages,
      "<｜begin▁of▁sentence｜><｜User｜><｜Assistant｜></think><｜end▁of▁sentence｜><｜User｜>"
      "<｜Assistant｜></think>");
  const std::string responses =
      prompt_text(&parse_responses,
                  R"({"reasoning": {"effort": "none"}, "instructions": null,
          "input": [{"role": "user", "content": null}, {"role": "assistant", "content": null},
                    {"type": "function_call", "call_id": "k", "name": "f", "arguments": null},
                    {"type": "function_call_output", "call_id": "k", "output": null}]})");
  EXPECT_EQ(responses,
            "<｜begin▁of▁sentence｜><｜User｜><｜Assistant｜></think>\n\n<｜DSML｜ calls>\n"
            "<｜DSML｜ invoke name=\"f\">\n\n</｜DSML｜ invoke>\n</｜DSML｜ calls>"
            "<｜end▁of▁sentence｜><｜User｜><tool_result></tool_result><｜Assistant｜></think>");
}

TEST(DialectCasesTest, C27OldReasoningMayComeBackOrNot) {
  const auto messages = [](std::string_view thought) {
    return prompt_text(
        &parse_messages_request,
        R"({"tools": [{"name": "f", "input_schema": {"type": "object"}}], "messages": [
            {"role": "user", "content": "q"},
            {"role": "assistant", "content": [)" +
            std::string(thought) + R"({"type": "tool_use", "id": "k", "name": "f", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "k"}]}]})");
  };
  EXPECT_NE(messages(R"({"type": "thinking", "thinking": "r", "signature": "s"}, )")
                .find("<think>r</think>\n\n<"),
            std::string::npos);
  EXPECT_NE(messages("").find("<think></think>\n\n<"), std::string::npos);
}

TEST(DialectCasesTest, D24JsonModeNeedsNoMagicWord) {
  EXPECT_EQ(
      refusal(&parse_responses, R"({"input": "q", "text": {"format": {"type": "json_object"}}})"),
      "");
}

TEST(DialectCasesTest, D26EmptyToolsAreNoTools) {
  const auto messages = [](std::string_view fields) {
    return prompt_text(
        &parse_messages_request,
        R"({"messages": [{"role": "user", "content": "q"}], )" + std::string(fields) + "}");
  };
  EXPECT_EQ(messages(R"("tools": [])"), messages(R"("tools": null)"));
  EXPECT_TRUE(messages(R"("tools": [], "tool_choice": {"type": "any"})").starts_with("refused"));
  const auto responses = [](std::string_view fields) {
    return prompt_text(&parse_responses, R"({"input": "q", )" + std::string(fields) + "}");
  };
  EXPECT_EQ(responses(R"("tools": [])"), responses(R"("tools": null)"));
  EXPECT_TRUE(responses(R"("tools": [], "tool_choice": "required")").starts_with("refused"));
}

TEST(DialectCasesTest, D29EmptyMessagesAreAnswered) {
  EXPECT_EQ(refusal(&parse_messages_request,
                    R"({"messages": [{"role": "user", "content": "q"},
                                     {"role": "assistant", "content": ""},
                                     {"role": "user", "content": []},
                                     {"role": "user", "content": "  "}]})"),
            "");
  EXPECT_EQ(refusal(&parse_responses,
                    R"({"input": [{"role": "user", "content": "q"},
                                  {"role": "assistant", "content": ""},
                                  {"role": "user", "content": []},
                                  {"role": "user", "content": "  "}]})"),
            "");
}

TEST(DialectCasesTest, D33ResultsInAnotherOrderAreSorted) {
  const std::string prompt =
      prompt_text(&parse_responses,
                  R"({"reasoning": {"effort": "none"}, "input": [{"role": "user", "content": "q"},
          {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"},
          {"type": "function_call", "call_id": "b", "name": "f", "arguments": "{}"},
          {"type": "function_call_output", "call_id": "b", "output": "2"},
          {"type": "function_call_output", "call_id": "a", "output": "1"}]})");
  EXPECT_TRUE(
      prompt.ends_with("<tool_result>1</tool_result>\n\n<tool_result>2</tool_result>"
                       "<｜Assistant｜></think>"))
      << prompt;
}

}  // namespace
}  // namespace locket::chat
