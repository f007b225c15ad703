// The rules of the prompt format, one by one.
#include "chat/render_v41.h"

#include <gtest/gtest.h>
#include <string>
#include <string_view>

#include "chat/markup.h"
#include "tests/chat/chat_rows.h"

namespace locket::chat {
namespace {

std::string chat_prompt(std::string_view messages, std::string_view fields = "") {
  return prompt_of(R"({"thinking": {"type": "disabled"}, )" + std::string(fields) +
                   R"("messages": [)" + std::string(messages) + "]}");
}

std::string thinking_prompt(std::string_view messages, std::string_view fields = "") {
  const std::string prompt =
      prompt_of(R"({"thinking": {"type": "enabled"}, )" + std::string(fields) + R"("messages": [)" +
                std::string(messages) + "]}");
  const std::size_t begin = prompt.find("reasoning)\n\n");
  EXPECT_NE(begin, std::string::npos) << prompt;
  return prompt.substr(begin + 12);
}

constexpr std::string_view kTool = R"("tools": [{"function": {"name": "f"}}], )";

TEST(RenderTest, AHeaderStandsBeforeEveryAssistantMessageAndAtTheEnd) {
  EXPECT_EQ(chat_prompt(R"({"role": "assistant", "content": "a"},
                {"role": "assistant", "content": "b"})"),
            "<｜begin▁of▁sentence｜><｜Assistant｜></think>a<｜end▁of▁sentence｜><｜Assistant｜>"
            "</think>b<｜end▁of▁sentence｜><｜Assistant｜></think>");
}

TEST(RenderTest, OnlyTheFirstOfSeveralRemindersStays) {
  EXPECT_EQ(chat_prompt(R"({"role": "latest_reminder", "content": "one"},
                {"role": "latest_reminder", "content": "two"}, {"role": "user", "content": "q"},
                {"role": "latest_reminder", "content": "three"})"),
            "<｜begin▁of▁sentence｜><｜latest_reminder｜>one<｜User｜>q<｜latest_reminder｜>three"
            "<｜Assistant｜></think>");
}

TEST(RenderTest, ToolsMakeASystemTurnOfTheirOwn) {
  const std::string prompt = chat_prompt(R"({"role": "latest_reminder", "content": "r"},
      {"role": "system", "content": "late"}, {"role": "user", "content": "q"})",
                                         kTool);
  EXPECT_TRUE(prompt.starts_with("<｜begin▁of▁sentence｜><｜System｜>\n\n## Tools\n\n")) << prompt;
  EXPECT_NE(prompt.find("invoke tool calls.\n<｜latest_reminder｜>r<｜System｜>late<｜User｜>q"),
            std::string::npos)
      << prompt;
}

TEST(RenderTest, AnEmptyFirstSystemMessageLeavesNoTrace) {
  constexpr std::string_view kMessages =
      R"({"role": "system", "content": ""}, {"role": "user", "content": "q"},
         {"role": "system", "content": ""})";
  EXPECT_EQ(chat_prompt(kMessages),
            "<｜begin▁of▁sentence｜><｜User｜>q<｜System｜><｜Assistant｜></think>");
  EXPECT_EQ(thinking_prompt(kMessages), "<｜User｜>q<｜System｜><｜Assistant｜><think>");
}

TEST(RenderTest, ReasoningIsKeptWithToolsOnly) {
  constexpr std::string_view kMessages =
      R"({"role": "user", "content": "q"},
         {"role": "assistant", "content": "a", "reasoning_content": "r"},
         {"role": "user", "content": "q2"})";
  EXPECT_EQ(
      thinking_prompt(kMessages),
      "<｜User｜>q<｜Assistant｜></think>a<｜end▁of▁sentence｜><｜User｜>q2<｜Assistant｜><think>");
  const std::string kept = thinking_prompt(kMessages, kTool);
  EXPECT_NE(kept.find("<｜Assistant｜><think>r</think>a<｜end▁of▁sentence｜>"), std::string::npos);
  const std::string hidden =
      thinking_prompt(kMessages, std::string(kTool) + R"("tool_choice": "none", )");
  EXPECT_EQ(hidden, thinking_prompt(kMessages));
}

TEST(RenderTest, ATaskOfAnEarlierTurnStandsBeforeItsAnswer) {
  EXPECT_EQ(chat_prompt(R"({"role": "user", "content": "q", "task": "title"},
                {"role": "assistant", "content": "A title"}, {"role": "user", "content": "q2"})"),
            "<｜begin▁of▁sentence｜><｜User｜>q<｜title｜>A title<｜end▁of▁sentence｜><｜User｜>q2"
            "<｜Assistant｜></think>");
}

TEST(RenderTest, NothingMergesIntoATurnWithATask) {
  EXPECT_EQ(chat_prompt(R"({"role": "user", "content": "a"},
                {"role": "user", "content": "b", "task": "query"},
                {"role": "user", "content": "c"})"),
            "<｜begin▁of▁sentence｜><｜User｜>a\n\nb<｜User｜>c<｜Assistant｜></think>");
}

TEST(RenderTest, ReasoningIsNotWrittenBehindATask) {
  const std::string prompt = thinking_prompt(
      R"({"role": "user", "content": "q", "task": "title"},
         {"role": "assistant", "content": "A", "reasoning_content": "r"},
         {"role": "user", "content": "q2"})",
      kTool);
  EXPECT_NE(prompt.find("<｜User｜>q<｜title｜>A<｜end▁of▁sentence｜>"), std::string::npos)
      << prompt;
}

TEST(RenderTest, ImagesAreListedInTheOrderOfThePrompt) {
  const auto part = [](std::string_view name) {
    return R"([{"type": "image_url", "image_url": {"url": "https://h/)" + std::string(name) +
           R"(", "detail": "low"}}])";
  };
  const std::string request =
      R"({"messages": [{"role": "assistant", "tool_calls": [
          {"id": "1", "function": {"name": "f"}}, {"id": "2", "function": {"name": "f"}}]},
          {"role": "tool", "tool_call_id": "2", "content": )" +
      part("two") + R"(}, {"role": "tool", "tool_call_id": "1", "content": )" + part("one") +
      R"(}, {"role": "user", "content": )" + part("three") + "}]}";
  const Result<ChatRequest> parsed = parse_chat_request(request);
  ASSERT_TRUE(parsed.has_value()) << parsed.error().message;
  const RenderedPrompt prompt = render_segments(*parsed);
  ASSERT_EQ(prompt.images.size(), 3U);
  EXPECT_EQ(prompt.images[0].url, "https://h/one");
  EXPECT_EQ(prompt.images[1].url, "https://h/two");
  EXPECT_EQ(prompt.images[2].url, "https://h/three");
  EXPECT_EQ(prompt.images[2].detail, "low");
}

TEST(RenderTest, ResultsWithoutIdsAreTakenInOrder) {
  const std::string prompt = chat_prompt(
      R"({"role": "user", "content": "q"},
         {"role": "assistant", "tool_calls": [{"function": {"name": "f"}},
           {"function": {"name": "g"}}]},
         {"role": "tool", "content": "1"}, {"role": "tool", "content": "2"})");
  EXPECT_NE(prompt.find("<tool_result>1</tool_result>\n\n<tool_result>2</tool_result>"),
            std::string::npos);
}

TEST(RenderTest, NeighbouringPlainTextIsOneSegment) {
  const Result<ChatRequest> request = parse_chat_request(
      R"({"thinking": {"type": "disabled"}, "messages": [
          {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
          {"role": "user", "content": "c"}]})");
  const RenderedPrompt prompt = render_segments(request.value());
  const std::vector<Segment> expected = {{Segment::Kind::kControl, std::string(kBeginOfSentence)},
                                         {Segment::Kind::kControl, std::string(kUserToken)},
                                         {Segment::Kind::kPlain, "a\n\nb\n\nc"},
                                         {Segment::Kind::kControl, std::string(kAssistantToken)},
                                         {Segment::Kind::kControl, std::string(kThinkClose)}};
  EXPECT_EQ(prompt.segments, expected);
}

TEST(RenderTest, NamesAControlTokenThatTheTokenizerLacks) {
  std::string json = test_support::read_text_file("small_tokenizer.json");
  const std::string token(kUserToken);
  for (std::size_t at = json.find(token); at != std::string::npos; at = json.find(token)) {
    json.replace(at, token.size(), "<｜Guest｜>");
  }
  const Result<tokenizer::Tokenizer> tokenizer = tokenizer::Tokenizer::parse(json, "changed");
  ASSERT_TRUE(tokenizer.has_value()) << tokenizer.error().message;
  const Result<ChatRequest> request =
      parse_chat_request(R"({"messages": [{"role": "user", "content": "q"}]})");
  const Result<RenderedPrompt> prompt = render_v41(request.value(), *tokenizer);
  ASSERT_FALSE(prompt.has_value());
  EXPECT_EQ(prompt.error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(prompt.error().message,
            "the tokenizer has no control token <｜User｜>; the prompt needs one of that name "
            "among its added tokens");
}

TEST(RenderTest, TakesTheOtherSpellingOfTheImageToken) {
  std::string json = test_support::read_text_file("small_tokenizer.json");
  const std::string token(kImageToken);
  json.replace(json.find(token), token.size(), kImageTokenAlias);
  const Result<tokenizer::Tokenizer> tokenizer = tokenizer::Tokenizer::parse(json, "changed");
  ASSERT_TRUE(tokenizer.has_value()) << tokenizer.error().message;
  const std::vector<Segment> segments = {{Segment::Kind::kControl, token}};
  const auto ids = encode_segments(segments, *tokenizer);
  ASSERT_TRUE(ids.has_value()) << ids.error().message;
  EXPECT_EQ(*ids, std::vector{tokenizer->find_added_token(kImageTokenAlias).value()});
}

// What other conversations begin with, too.
std::string system_part(std::string_view request) {
  const RenderedPrompt prompt = render_segments(parse_chat_request(request).value());
  return join_segments(std::span(prompt.segments).first(prompt.system_segments));
}

TEST(RenderTest, KnowsWhereInstructionsAndToolsEnd) {
  const std::string chat = R"({"thinking": {"type": "disabled"}, )";
  EXPECT_EQ(system_part(chat + R"("messages": [{"role": "user", "content": "q"}]})"),
            "<｜begin▁of▁sentence｜>");
  EXPECT_EQ(system_part(chat + R"("messages": [{"role": "system", "content": "s"},
                {"role": "system", "content": "t"}, {"role": "user", "content": "q"},
                {"role": "system", "content": "late"}]})"),
            "<｜begin▁of▁sentence｜><｜System｜>s<｜System｜>t");
  EXPECT_EQ(system_part(chat + R"("messages": [{"role": "system", "content": "s"}]})"),
            "<｜begin▁of▁sentence｜><｜System｜>s");
  EXPECT_EQ(system_part(chat + R"("messages": [{"role": "system", "content": "s"},
                {"role": "assistant", "content": "a"}]})"),
            "<｜begin▁of▁sentence｜><｜System｜>s");
  EXPECT_EQ(system_part(chat + R"("messages": [{"role": "system", "content": "s"},
                {"role": "latest_reminder", "content": "r"}]})"),
            "<｜begin▁of▁sentence｜><｜System｜>s");
  const std::string tools =
      system_part(chat + std::string(kTool) + R"("messages": [{"role": "user", "content": "q"}]})");
  EXPECT_TRUE(tools.ends_with("invoke tool calls.\n")) << tools;
  const std::string thinking = system_part(R"({"messages": [{"role": "user", "content": "q"}]})");
  EXPECT_TRUE(thinking.ends_with("the more thorough the reasoning)\n\n")) << thinking;
}

TEST(RenderTest, CountsTheIdsOfInstructions) {
  const tokenizer::Tokenizer& tokenizer = test_support::small_tokenizer();
  const auto render = [&](const std::string& question) {
    return render_v41(parse_chat_request(R"({"messages": [{"role": "system", "content": "Be kind."},
                          {"role": "user", "content": ")" +
                                         question + R"("}]})")
                          .value(),
                      tokenizer)
        .value();
  };
  const RenderedPrompt one = render("one");
  const RenderedPrompt two = render("two");
  ASSERT_EQ(one.system_ids, two.system_ids);
  const auto parting = std::ranges::mismatch(one.ids, two.ids).in1 - one.ids.begin();
  EXPECT_EQ(static_cast<std::size_t>(parting), one.system_ids + 1) << "the user token is the same";
  EXPECT_EQ(one.ids, encode_segments(one.segments, tokenizer).value());
}

}  // namespace
}  // namespace locket::chat
