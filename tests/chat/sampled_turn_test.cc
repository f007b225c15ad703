// Old turns as the tokens that were sampled: where they stand in a prompt, and where they must not.
#include <gtest/gtest.h>
#include <string>
#include <string_view>
#include <vector>

#include "chat/markup.h"
#include "chat/message_text.h"
#include "chat/render_v41.h"
#include "tests/chat/chat_rows.h"
#include "tests/support/sampled_output.h"

namespace locket::chat {
namespace {

using test_support::append_ids;
using test_support::sampled_ids;
using test_support::small_tokenizer;
using tokenizer::TokenId;
using Ids = std::vector<TokenId>;

constexpr std::string_view kTools = R"("tools": [{"function": {"name": "f"}}], )";
constexpr std::string_view kOutput =
    "I look.\n\n</think>\n\n\n\n<｜DSML｜ calls>\n<｜DSML｜ invoke name=\"f\">\n</｜DSML｜ "
    "invoke>\n"
    "</｜DSML｜ calls>";

TokenId control(std::string_view spelling) {
  return small_tokenizer().find_added_token(spelling).value();
}

RenderedPrompt render(const ChatRequest& request) {
  RenderedPrompt prompt = render_v41(request, small_tokenizer()).value();
  show_sampled(prompt.segments, small_tokenizer());
  return prompt;
}

ChatRequest request_of(std::string_view fields, std::string_view messages) {
  return parse_chat_request("{" + std::string(fields) + R"("messages": [)" + std::string(messages) +
                            "]}")
      .value();
}

// One question, one answer with the call c1, its result.
constexpr std::string_view kOneRound =
    R"({"role": "user", "content": "q"},
       {"role": "assistant", "content": "", "reasoning_content": "I look.", "tool_calls":
         [{"id": "c1", "function": {"name": "f", "arguments": "{}"}}]},
       {"role": "tool", "tool_call_id": "c1", "content": "x"})";

ChatRequest one_round(std::string_view fields, ReplyStart start,
                      std::string_view output = kOutput) {
  ChatRequest request = request_of(fields, kOneRound);
  request.messages[1].sampled = sampled_ids(small_tokenizer(), output);
  request.messages[1].sampled_start = start;
  return request;
}

std::size_t sampled_segments(const RenderedPrompt& prompt) {
  std::size_t count = 0;
  for (const Segment& segment : prompt.segments) count += segment.kind == Segment::Kind::kSampled;
  return count;
}

// The text behind what the system says.
std::string turns_of(const RenderedPrompt& prompt) {
  return join_segments(std::span(prompt.segments).subspan(prompt.system_segments));
}

// Plays a conversation in which every answer but the last calls f, and checks every prompt against
// the one before it.
void play(ChatRequest request, const std::vector<std::string>& outputs) {
  Ids expected = render(request).ids;
  for (std::size_t round = 0; round < outputs.size(); ++round) {
    const RenderedPrompt prompt = render(request);
    ASSERT_EQ(prompt.ids, expected) << "round " << round << '\n' << turns_of(prompt);
    const Ids sampled = sampled_ids(small_tokenizer(), outputs[round]);
    const Reply reply =
        parse_whole(prompt.parser, small_tokenizer().decode_bytes(sampled), FinishReason::kStop);
    ASSERT_EQ(reply.tool_calls.size(), 1U);
    const std::string id = "c" + std::to_string(round);

    // The client sends back what it understood.
    Message answer = text_message(Role::kAssistant, reply.content);
    answer.tool_calls = {{id, reply.tool_calls[0].name, reply.tool_calls[0].arguments}};
    answer.sampled = sampled;
    answer.sampled_start = prompt.parser.start;
    request.messages.push_back(answer);
    Message result = text_message(Role::kTool, "it's " + id);
    result.tool_call_id = id;
    request.messages.push_back(result);

    append_ids(expected, sampled);
    append_ids(expected, {control(kEndOfSentence), control(kUserToken)});
    append_ids(expected,
               small_tokenizer().encode_text("<tool_result>it's " + id + "</tool_result>"));
    append_ids(expected, {control(kAssistantToken), prompt.parser.start == ReplyStart::kReasoning
                                                        ? control(kThinkOpen)
                                                        : control(kThinkClose)});
  }
  const RenderedPrompt prompt = render(request);
  EXPECT_EQ(prompt.ids, expected);
  // C31: one separator per call block, however often the answers were sent back.
  const std::string text = turns_of(prompt);
  std::size_t blocks = 0;
  for (std::size_t at = text.find("<｜DSML｜ calls>"); at != std::string::npos;
       at = text.find("<｜DSML｜ calls>", at + 1)) {
    ++blocks;
    EXPECT_EQ(text.substr(at - 3, 3), ".\n\n") << text;
  }
  EXPECT_EQ(blocks, outputs.size());
}

std::string calling(std::string_view before, std::string_view value) {
  return std::string(before) +
         "\n\n<｜DSML｜ calls>\n<｜DSML｜ invoke name=\"f\">\n<｜DSML｜ parameter name=\"x\" "
         "string=\"false\">" +
         std::string(value) + "</｜DSML｜ parameter>\n</｜DSML｜ invoke>\n</｜DSML｜ calls>";
}

TEST(SampledTurnTest, LaterPromptsBeginWithEarlierOnesAndWhatWasSampled) {
  const ChatRequest thinking = request_of(kTools, R"({"role": "user", "content": "q"})");
  play(thinking, {calling("I\nlook.\n</think>Let me see.", "[1,2 , 3]"),
                  calling("</think>So.", "{}"), calling("Grüße 😀</think>\n\nAnd.", "1.50")});
  const ChatRequest chat = request_of(R"("thinking": {"type": "disabled"}, )" + std::string(kTools),
                                      R"({"role": "user", "content": "q"})");
  play(chat,
       {calling("\nLet me see.", "{\"a\":1}"), calling("So.", "{}"), calling("And.", "true")});
}

TEST(SampledTurnTest, SampledTokensStandInPlaceOfReasoningContentAndCalls) {
  const RenderedPrompt prompt = render(one_round(kTools, ReplyStart::kReasoning));
  EXPECT_EQ(turns_of(prompt), "<｜User｜>q<｜Assistant｜><think>" + std::string(kOutput) +
                                  "<｜end▁of▁sentence｜><｜User｜><tool_result>x</tool_result>"
                                  "<｜Assistant｜><think>");
  EXPECT_EQ(sampled_segments(prompt), 1U);
}

TEST(SampledTurnTest, TheSameTextSampledOtherwiseGivesOtherIds) {
  const Ids replayed = render(one_round(kTools, ReplyStart::kReasoning)).ids;
  ChatRequest request = one_round(kTools, ReplyStart::kReasoning);
  request.messages[1].sampled.clear();
  EXPECT_NE(render(request).ids, replayed);
}

TEST(SampledTurnTest, AnotherHeaderThanTheSampledOneMeansRendering) {
  const auto rendered = [](ChatRequest request) {
    request.messages[1].sampled.clear();
    return render(request).ids;
  };
  // The reasoning of this turn is dropped, as no tools are shown.
  const ChatRequest hidden = one_round("", ReplyStart::kReasoning);
  EXPECT_EQ(sampled_segments(render(hidden)), 0U);
  EXPECT_EQ(render(hidden).ids, rendered(hidden));
  const ChatRequest no_longer_thinking = one_round(
      R"("thinking": {"type": "disabled"}, )" + std::string(kTools), ReplyStart::kReasoning);
  EXPECT_EQ(sampled_segments(render(no_longer_thinking)), 0U);
  const ChatRequest thinking_now = one_round(kTools, ReplyStart::kContent);
  EXPECT_EQ(sampled_segments(render(thinking_now)), 0U);
  EXPECT_EQ(render(thinking_now).ids, rendered(thinking_now));
  const ChatRequest continued = one_round(kTools, ReplyStart::kReasoningContinued);
  EXPECT_EQ(sampled_segments(render(continued)), 0U);
}

TEST(SampledTurnTest, AForcedCallIsReplayedBehindTheOpenedBlock) {
  const std::string fields = R"("thinking": {"type": "disabled"}, )" + std::string(kTools);
  const ChatRequest asking =
      request_of(fields + R"("tool_choice": "required", )", R"({"role": "user", "content": "q"})");
  const RenderedPrompt first = render(asking);
  EXPECT_EQ(first.parser.start, ReplyStart::kCalls);
  const ChatRequest request =
      one_round(fields, ReplyStart::kCalls,
                "<｜DSML｜ invoke name=\"f\">\n</｜DSML｜ invoke>\n</｜DSML｜ calls>");
  Ids expected = first.ids;
  append_ids(expected, request.messages[1].sampled);
  append_ids(expected, {control(kEndOfSentence)});
  Ids begin = render(request).ids;
  ASSERT_GT(begin.size(), expected.size());
  begin.resize(expected.size());
  EXPECT_EQ(begin, expected);
}

TEST(SampledTurnTest, ATurnBehindATaskIsReplayed) {
  ChatRequest request = request_of("", R"({"role": "user", "content": "q", "task": "title"},
                                          {"role": "assistant", "content": "a"},
                                          {"role": "user", "content": "q2"})");
  request.messages[0].task = Task::kTitle;
  request.messages[1].sampled = sampled_ids(small_tokenizer(), "</think>a");
  request.messages[1].sampled_start = ReplyStart::kReasoning;
  EXPECT_EQ(
      turns_of(render(request)),
      "<｜User｜>q<｜title｜></think>a<｜end▁of▁sentence｜><｜User｜>q2<｜Assistant｜><think>");
}

TEST(SampledTurnTest, NeighboursAreNotJoinedAcrossSampledTokens) {
  SegmentWriter writer;
  writer.add_plain("to");
  writer.add_sampled(Ids{control(kThinkClose)});
  writer.add_sampled(Ids{});
  writer.add_plain("ken");
  const std::vector<Segment> segments = writer.take();
  ASSERT_EQ(segments.size(), 4U);
  Ids expected = small_tokenizer().encode_text("to");
  append_ids(expected, {control(kThinkClose)});
  append_ids(expected, small_tokenizer().encode_text("ken"));
  EXPECT_EQ(encode_segments(segments, small_tokenizer()).value(), expected);
}

TEST(SampledTurnTest, AnIdThatTheTokenizerDoesNotHaveIsNamed) {
  for (const TokenId id : {-1, 1024}) {
    SegmentWriter writer;
    writer.add_sampled(Ids{5, id});
    const auto ids = encode_segments(writer.take(), small_tokenizer());
    ASSERT_FALSE(ids.has_value());
    EXPECT_EQ(ids.error().code, ErrorCode::kUnsupported);
    EXPECT_EQ(ids.error().message, "an old turn was sampled with the token " + std::to_string(id) +
                                       "; the tokenizer has ids from 0 to 1023");
  }
}

TEST(SampledTurnTest, SampledTokensAreShownAsWholeCharacters) {
  SegmentWriter writer;
  Ids ids = small_tokenizer().encode_text("ꙮ");
  ASSERT_GT(ids.size(), 1U);
  ids.pop_back();
  writer.add_sampled(ids);
  std::vector<Segment> segments = writer.take();
  EXPECT_EQ(join_segments(segments), "");
  show_sampled(segments, small_tokenizer());
  EXPECT_EQ(join_segments(segments), "\uFFFD");
}

}  // namespace
}  // namespace locket::chat
