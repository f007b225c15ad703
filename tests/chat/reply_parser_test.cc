// What the parser makes of model output, mechanism by mechanism.
#include "chat/reply_parser.h"

#include <gtest/gtest.h>
#include <string>
#include <string_view>
#include <vector>

#include "tests/chat/chat_rows.h"

namespace locket::chat {
namespace {

constexpr ParserStart kThinking = {ReplyStart::kReasoning, true, false};
constexpr ParserStart kChat = {ReplyStart::kContent, true, false};
constexpr ParserStart kChatWithoutTools = {ReplyStart::kContent, false, false};
constexpr ParserStart kJson = {ReplyStart::kContent, true, true};

std::string parameter(std::string_view name, std::string_view is_string, std::string_view value) {
  return "<｜DSML｜ parameter name=\"" + std::string(name) + "\" string=\"" +
         std::string(is_string) + "\">" + std::string(value) + "</｜DSML｜ parameter>\n";
}

std::string invoke(std::string_view name, std::string_view parameters) {
  return "<｜DSML｜ invoke name=\"" + std::string(name) + "\">\n" + std::string(parameters) +
         "</｜DSML｜ invoke>\n";
}

std::string block(std::string_view calls) {
  return "\n\n<｜DSML｜ calls>\n" + std::string(calls) + "</｜DSML｜ calls>";
}

std::vector<ReplyCall> calls_of(const ParserStart& start, std::string_view text) {
  return parse_whole(start, text).tool_calls;
}

std::string content_of(const ParserStart& start, std::string_view text,
                       std::vector<std::string> stop = {}) {
  return parse_whole(start, text, FinishReason::kStop, std::move(stop)).content;
}

TEST(ReplyParserTest, SplitsReasoningFromContent) {
  const Reply reply = parse_whole(kThinking, "\n\nr\n\nmore\n</think>\n\na\n");
  EXPECT_EQ(reply.reasoning, "r\n\nmore");
  EXPECT_EQ(reply.content, "a\n");
  EXPECT_EQ(reply.finish_reason, FinishReason::kStop);
}

TEST(ReplyParserTest, ReasoningIsAbsentWhereTheModelWasNotAskedToThink) {
  EXPECT_FALSE(parse_whole(kChat, "a").reasoning.has_value());
  EXPECT_EQ(parse_whole({ReplyStart::kContentContinued, false, false}, "\na").reasoning, "");
  EXPECT_EQ(parse_whole({ReplyStart::kContentContinued, false, false}, "\na").content, "\na");
}

TEST(ReplyParserTest, WritesArgumentsAsTheyComeIn) {
  ReplyParser parser(kChat);
  std::vector<std::string> deltas;
  for (const char byte :
       block(invoke("f", parameter("s", "true", "a\"b\n") + parameter("n", "false", "[1, 2]")))) {
    for (const ReplyEvent& event : parser.push(std::string_view(&byte, 1))) {
      if (event.kind == ReplyEvent::Kind::kCallArguments) deltas.push_back(event.text);
    }
  }
  EXPECT_GT(deltas.size(), 8U);
  EXPECT_EQ(deltas.front(), "{\"s\": \"");
  parser.finish(FinishReason::kStop);
  EXPECT_EQ(parser.reply().tool_calls,
            (std::vector<ReplyCall>{{"f", R"({"s": "a\"b\n", "n": [1, 2]})"}}));
  EXPECT_EQ(parser.reply().finish_reason, FinishReason::kToolCalls);
}

TEST(ReplyParserTest, HoldsBackOnlyWhatMayBeAMark) {
  ReplyParser parser(kChat, {"END"});
  EXPECT_EQ(parser.push("a <").front().text, "a ");
  EXPECT_EQ(parser.push("b>\n").front().text, "<b>");
  // The newline may stand before a block, EN may become END.
  EXPECT_TRUE(parser.push("EN").empty());
  EXPECT_EQ(parser.push("x").front().text, "\nENx");
}

TEST(ReplyParserTest, SaysWhenNothingMoreCanMatter) {
  ReplyParser stopped(kChat, {"x", "END"});
  stopped.push("abEND and more");
  EXPECT_TRUE(stopped.is_finished());
  EXPECT_EQ(stopped.finish(FinishReason::kLength).back().finish_reason, FinishReason::kStop);
  EXPECT_EQ(stopped.reply().stop_index, 1U);
  ReplyParser called(kChat);
  called.push(block(invoke("f", "")));
  EXPECT_TRUE(called.is_finished());
  EXPECT_TRUE(called.push("more").empty());
}

TEST(ReplyParserTest, EventsHoldWholeCharactersOnly) {
  ReplyParser parser(kChat);
  EXPECT_TRUE(parser.push("\xF0\x9F").empty());
  EXPECT_EQ(parser.push("\x98\x80!").front().text, "😀!");
  EXPECT_TRUE(parser.push("\xE2\x82").empty());
  const std::vector<ReplyEvent> last = parser.finish(FinishReason::kLength);
  EXPECT_EQ(last.front().text, "\uFFFD");
  EXPECT_EQ(parser.reply().content, "😀!\uFFFD");
}

TEST(ReplyParserTest, ABlockOfTheGenerationBeforeIsUnderstood) {
  EXPECT_EQ(
      calls_of(kChat,
               "<｜DSML｜tool_calls><｜DSML｜invoke name=\"f\"><｜DSML｜parameter name=\"x\" "
               "string=\"false\">1</｜DSML｜parameter></｜DSML｜invoke></｜DSML｜tool_calls>"),
      (std::vector<ReplyCall>{{"f", R"({"x": 1})"}}));
}

TEST(ReplyParserTest, NamesWithSpacesAreWhole) {
  EXPECT_EQ(calls_of(kChat, block(invoke("f", parameter("my key", "true", "v")))),
            (std::vector<ReplyCall>{{"f", R"({"my key": "v"})"}}));
}

TEST(ReplyParserTest, ATagThatClosesTheCallAlsoClosesTheValue) {
  const std::string open =
      "<｜DSML｜ invoke name=\"f\">\n<｜DSML｜ parameter name=\"x\" "
      "string=\"true\">v";
  EXPECT_EQ(calls_of(kChat, block(open + "</｜DSML｜ invoke>\n" + invoke("g", ""))),
            (std::vector<ReplyCall>{{"f", R"({"x": "v"})"}, {"g", "{}"}}));
  EXPECT_EQ(calls_of(kChat, block(open)), (std::vector<ReplyCall>{{"f", R"({"x": "v"})"}}));
}

TEST(ReplyParserTest, AMalformedCallIsDroppedAndTheOthersStay) {
  for (const std::string_view broken :
       {"<｜DSML｜ parameter name=\"x\">1</｜DSML｜ parameter>\n",
        "<parameter name=\"x\">1</｜DSML｜ parameter>\n",
        "<｜DSML｜ parameter name=\"x\" string=\"yes\">1</｜DSML｜ parameter>\n",
        "<｜DSML｜ parameter string=\"true\" name=\"x\">1</｜DSML｜ parameter>\n",
        "<｜DSML｜ parameter name='x' string=\"true\">1</｜DSML｜ parameter>\n",
        "<｜DSML｜ parameter name=\"x\" string=\"true\"</｜DSML｜ parameter>\n",
        "<｜DSML｜ parameter name=\"x\"\n<｜DSML｜ parameter name=\"y\" string=\"true\">1\n"}) {
    SCOPED_TRACE(broken);
    const Reply reply = parse_whole(kChat, block(invoke("f", broken) + invoke("g", "")));
    EXPECT_EQ(reply.tool_calls, (std::vector<ReplyCall>{{"g", "{}"}}));
    EXPECT_EQ(reply.broken_calls, 1U);
    const Reply alone = parse_whole(kChat, block(invoke("f", broken)));
    EXPECT_TRUE(alone.tool_calls.empty());
    EXPECT_EQ(alone.content, "");
    EXPECT_EQ(alone.finish_reason, FinishReason::kStop);
  }
}

TEST(ReplyParserTest, ACallThatIsBrokenFromTheStartIsNeverAnnounced) {
  ReplyParser parser(kChat);
  const std::vector<ReplyEvent> events =
      parser.push(block(invoke("f", "<｜DSML｜ parameter name=\"x\">1</｜DSML｜ parameter>\n")));
  EXPECT_TRUE(events.empty());
}

TEST(ReplyParserTest, ABrokenNameDropsTheCall) {
  EXPECT_TRUE(calls_of(kChat, block("<｜DSML｜ invoke name=\"f>\n" + parameter("x", "true", "v") +
                                    "</｜DSML｜ invoke>\n"))
                  .empty());
}

TEST(ReplyParserTest, WithoutToolsABlockLeavesNoTraceInContent) {
  EXPECT_EQ(content_of(kChatWithoutTools, "a" + block(invoke("f", "")) + "b"), "ab");
  EXPECT_EQ(content_of(kChatWithoutTools, "a" + invoke("f", "") + "b"), "a\nb");
  EXPECT_TRUE(calls_of(kChatWithoutTools, block(invoke("f", ""))).empty());
}

TEST(ReplyParserTest, WithoutToolsReasoningIsLeftAsItIs) {
  const Reply reply = parse_whole({ReplyStart::kReasoning, false, false},
                                  "a <｜DSML｜ b </｜DSML｜ invoke> c</think>d");
  EXPECT_EQ(reply.reasoning, "a <｜DSML｜ b </｜DSML｜ invoke> c");
  EXPECT_EQ(reply.content, "d");
}

TEST(ReplyParserTest, StopStringsWinAgainstMarksThatEndWithThem) {
  EXPECT_EQ(content_of(kChat, "a\n\n<｜DSML｜ calls>", {"<｜DSML｜"}), "a\n\n");
  EXPECT_EQ(content_of(kChat, "a</think>b", {"</think>"}), "a");
}

TEST(ReplyParserTest, StopStringsCountInAnswersOnly) {
  const Reply reply = parse_whole(kThinking, "aENDb</think>cENDd", FinishReason::kStop, {"END"});
  EXPECT_EQ(reply.reasoning, "aENDb");
  EXPECT_EQ(reply.content, "c");
}

TEST(ReplyParserTest, JsonModeStripsWhatIsAroundTheValue) {
  EXPECT_EQ(content_of(kJson, "Here:\n```json\n{\"a\": 1}\n```\nDone."), " {\"a\": 1} ");
  EXPECT_EQ(content_of(kJson, "```json\r\n[1]\n```"), "[1]");
  EXPECT_EQ(content_of(kJson, "nothing"), " ");
  EXPECT_EQ(content_of(kJson, "\n{\"a\": 1}\n"), "{\"a\": 1}\n");
}

TEST(ReplyParserTest, JsonModeKeepsMarksInsideTheValue) {
  EXPECT_EQ(content_of(kJson, R"({"a": "</think> <｜DSML｜ calls> </｜DSML｜ invoke>"})"),
            R"({"a": "</think> <｜DSML｜ calls> </｜DSML｜ invoke>"})");
  EXPECT_EQ(content_of(kJson, R"({"a": "}\"<｜DSML｜ calls>"})"),
            R"({"a": "}\"<｜DSML｜ calls>"})");
}

TEST(ReplyParserTest, JsonModeDeliversACallBehindTheValue) {
  const Reply reply = parse_whole(kJson, "{\"a\": [1]}" + block(invoke("f", "")));
  EXPECT_EQ(reply.content, "{\"a\": [1]}");
  EXPECT_EQ(reply.tool_calls, (std::vector<ReplyCall>{{"f", "{}"}}));
  EXPECT_EQ(reply.finish_reason, FinishReason::kToolCalls);
}

TEST(ReplyParserTest, JsonModeStopsInsideTheValueOnly) {
  EXPECT_EQ(content_of(kJson, "END {\"a\": \"xENDy\"}", {"END"}), " {\"a\": \"x");
}

TEST(ReplyParserTest, LengthStaysLengthWithWholeCalls) {
  const Reply reply = parse_whole(kChat, block(invoke("f", "")) + " more", FinishReason::kLength);
  EXPECT_EQ(reply.tool_calls.size(), 1U);
  EXPECT_EQ(reply.finish_reason, FinishReason::kLength);
}

}  // namespace
}  // namespace locket::chat
