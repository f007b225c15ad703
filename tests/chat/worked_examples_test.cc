// Sixteen small conversations and their exact prompts.
#include <gtest/gtest.h>
#include <string>
#include <string_view>

#include "chat/markup.h"
#include "tests/chat/chat_rows.h"

namespace locket::chat {
namespace {

// What every prompt begins with in thinking mode.
std::string effort_line(std::string_view effort) {
  return "<｜begin▁of▁sentence｜><｜System｜>Reasoning Effort: " + std::string(effort) +
         " (range 1-100, the higher the value, the more thorough the reasoning)\n\n";
}

TEST(WorkedExamplesTest, X01ChatWithSystemAndUser) {
  EXPECT_EQ(prompt_of(R"({"thinking": {"type": "disabled"}, "messages": [
                {"role": "system", "content": "S"}, {"role": "user", "content": "U"}]})"),
            "<｜begin▁of▁sentence｜><｜System｜>S<｜User｜>U<｜Assistant｜></think>");
}

TEST(WorkedExamplesTest, X02ChatWithUser) {
  EXPECT_EQ(prompt_of(R"({"thinking": {"type": "disabled"}, "messages": [
                {"role": "user", "content": "U"}]})"),
            "<｜begin▁of▁sentence｜><｜User｜>U<｜Assistant｜></think>");
}

TEST(WorkedExamplesTest, X03ThinkingWithSystemAndUser) {
  EXPECT_EQ(prompt_of(R"({"messages": [
                {"role": "system", "content": "S"}, {"role": "user", "content": "U"}]})"),
            effort_line("75") + "S<｜User｜>U<｜Assistant｜><think>");
}

TEST(WorkedExamplesTest, X04ThinkingWithAnEffortInNumbers) {
  EXPECT_EQ(prompt_of(R"({"reasoning_effort": 37, "messages": [
                {"role": "user", "content": "U"}]})"),
            effort_line("37") + "<｜User｜>U<｜Assistant｜><think>");
}

TEST(WorkedExamplesTest, X05OldReasoningIsDropped) {
  EXPECT_EQ(prompt_of(R"({"messages": [{"role": "user", "content": "q1"},
                {"role": "assistant", "content": "a1", "reasoning_content": "r1"},
                {"role": "user", "content": "q2"}]})"),
            effort_line("75") +
                "<｜User｜>q1<｜Assistant｜></think>a1<｜end▁of▁sentence｜><｜User｜>q2"
                "<｜Assistant｜><think>");
}

TEST(WorkedExamplesTest, X06OldReasoningIsKeptOnRequest) {
  EXPECT_EQ(prompt_of(R"({"chat_template_kwargs": {"drop_thinking": false}, "messages": [
                {"role": "user", "content": "q1"},
                {"role": "assistant", "content": "a1", "reasoning_content": "r1"},
                {"role": "user", "content": "q2"}]})"),
            effort_line("75") +
                "<｜User｜>q1<｜Assistant｜><think>r1</think>a1<｜end▁of▁sentence｜><｜User｜>q2"
                "<｜Assistant｜><think>");
}

TEST(WorkedExamplesTest, X07SystemBehindTheUser) {
  EXPECT_EQ(prompt_of(R"({"thinking": {"type": "disabled"}, "messages": [
                {"role": "user", "content": "q"}, {"role": "system", "content": "be brief"}]})"),
            "<｜begin▁of▁sentence｜><｜User｜>q<｜System｜>be brief<｜Assistant｜></think>");
}

TEST(WorkedExamplesTest, X08TwoUsersBecomeOneTurn) {
  EXPECT_EQ(prompt_of(R"({"reasoning_effort": "low", "messages": [
                {"role": "user", "content": "a"}, {"role": "user", "content": "b"}]})"),
            effort_line("50") + "<｜User｜>a\n\nb<｜Assistant｜><think>");
}

TEST(WorkedExamplesTest, X09PartsWithAnImage) {
  EXPECT_EQ(prompt_of(R"({"thinking": {"type": "disabled"}, "messages": [{"role": "user",
                "content": [{"type": "text", "text": "first"},
                            {"type": "image_url", "image_url": {"url": "https://h/p.png"}},
                            {"type": "text", "text": "last"}]}]})"),
            "<｜begin▁of▁sentence｜><｜User｜>first\n\n<｜deepseek_image｜>\n\nlast"
            "<｜Assistant｜></think>");
}

TEST(WorkedExamplesTest, X10ATaskStandsInPlaceOfTheHeader) {
  EXPECT_EQ(prompt_of(R"({"thinking": {"type": "disabled"}, "messages": [
                {"role": "user", "content": "q"}, {"role": "assistant", "content": "a"},
                {"role": "user", "content": "q2", "task": "title"}]})"),
            "<｜begin▁of▁sentence｜><｜User｜>q<｜Assistant｜></think>a<｜end▁of▁sentence｜>"
            "<｜User｜>q2<｜title｜>");
}

TEST(WorkedExamplesTest, X11TheTaskActionFollowsAHeader) {
  EXPECT_EQ(prompt_of(R"({"thinking": {"type": "disabled"}, "messages": [
                {"role": "user", "content": "q", "task": "action"}]})"),
            "<｜begin▁of▁sentence｜><｜User｜>q<｜Assistant｜></think><｜action｜>");
}

TEST(WorkedExamplesTest, X12AnUnfinishedAnswerHasNoEnd) {
  EXPECT_EQ(prompt_of(R"({"thinking": {"type": "disabled"}, "messages": [
                {"role": "user", "content": "q"},
                {"role": "assistant", "content": "```python\n", "prefix": true}]})"),
            "<｜begin▁of▁sentence｜><｜User｜>q<｜Assistant｜></think>```python\n");
}

TEST(WorkedExamplesTest, X13ResponseFormatHangsOnTheSystemTurn) {
  EXPECT_EQ(
      prompt_of(R"({"thinking": {"type": "disabled"},
                "response_format": {"type": "json_object"}, "messages": [
                {"role": "system", "content": "S"}, {"role": "user", "content": "U"}]})"),
      "<｜begin▁of▁sentence｜><｜System｜>S\n\n## Response Format:\n\nYou MUST strictly adhere "
      "to the following schema to reply:\n{\"type\": \"json_object\"}<｜User｜>U<｜Assistant｜>"
      "</think>");
}

TEST(WorkedExamplesTest, X14ResultsStandInTheOrderOfTheirCalls) {
  const std::string prompt = prompt_of(R"({"tools": [
        {"type": "function", "function": {"name": "f"}},
        {"type": "function", "function": {"name": "g"}}], "messages": [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": null, "reasoning_content": "r", "tool_calls": [
          {"id": "c1", "type": "function",
           "function": {"name": "f", "arguments": "{\"x\": \"a b\", \"n\": 2}"}},
          {"id": "c2", "type": "function", "function": {"name": "g", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "c2", "content": "R2"},
        {"role": "tool", "tool_call_id": "c1", "content": "R1"},
        {"role": "user", "content": "go on"}]})");
  EXPECT_EQ(prompt.substr(prompt.find("<｜User｜>")),
            "<｜User｜>q<｜Assistant｜><think>r</think>\n\n<｜DSML｜ calls>\n"
            "<｜DSML｜ invoke name=\"f\">\n"
            "<｜DSML｜ parameter name=\"x\" string=\"true\">a b</｜DSML｜ parameter>\n"
            "<｜DSML｜ parameter name=\"n\" string=\"false\">2</｜DSML｜ parameter>\n"
            "</｜DSML｜ invoke>\n<｜DSML｜ invoke name=\"g\">\n\n</｜DSML｜ invoke>\n"
            "</｜DSML｜ calls><｜end▁of▁sentence｜><｜User｜><tool_result>R1</tool_result>\n\n"
            "<tool_result>R2</tool_result>\n\ngo on<｜Assistant｜><think>");
}

TEST(WorkedExamplesTest, X15AForcedCallIsBegunByThePrompt) {
  constexpr std::string_view kRequest = R"({"thinking": {"type": "disabled"},
      "tool_choice": "required", "tools": [{"type": "function", "function": {"name": "find"}}],
      "messages": [{"role": "user", "content": "Find it"}]})";
  EXPECT_TRUE(prompt_of(kRequest).ends_with(
      "<｜User｜>Find it<｜Assistant｜></think>\n\n<｜DSML｜ calls>\n"));
  const RenderedPrompt prompt = render_segments(parse_chat_request(kRequest).value());
  EXPECT_EQ(prompt.parser.start, ReplyStart::kCalls);
}

TEST(WorkedExamplesTest, X16AnEmptyUserTextHasFourTokens) {
  constexpr std::string_view kRequest = R"({"thinking": {"type": "disabled"},
      "messages": [{"role": "user", "content": ""}]})";
  const tokenizer::Tokenizer& tokenizer = test_support::small_tokenizer();
  const Result<RenderedPrompt> prompt = render_v41(parse_chat_request(kRequest).value(), tokenizer);
  ASSERT_TRUE(prompt.has_value()) << prompt.error().message;
  EXPECT_EQ(join_segments(prompt->segments),
            "<｜begin▁of▁sentence｜><｜User｜><｜Assistant｜></think>");
  const std::vector<tokenizer::TokenId> ids = {tokenizer.find_added_token(kBeginOfSentence).value(),
                                               tokenizer.find_added_token(kUserToken).value(),
                                               tokenizer.find_added_token(kAssistantToken).value(),
                                               tokenizer.find_added_token(kThinkClose).value()};
  EXPECT_EQ(prompt->ids, ids);
}

}  // namespace
}  // namespace locket::chat
