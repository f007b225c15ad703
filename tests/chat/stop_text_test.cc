// Stop strings: where they end an answer, and what becomes of their text.
#include <gtest/gtest.h>
#include <string>
#include <string_view>
#include <vector>

#include "tests/chat/chat_rows.h"
#include "tests/support/sampled_output.h"

namespace locket::chat {
namespace {

constexpr ParserStart kChat = {ReplyStart::kContent, true, false};
constexpr ParserStart kThinking = {ReplyStart::kReasoning, true, false};
constexpr ParserStart kContinued = {ReplyStart::kContentContinued, false, false};
constexpr ParserStart kJson = {ReplyStart::kContent, false, true};

struct Parsed {
  std::string content;
  std::string streamed;  // the content's deltas joined
  bool is_finished = false;
};

// The pieces of `text` between `cuts`, in order.
Parsed parse(ReplyParser parser, std::string_view text, std::vector<std::size_t> cuts) {
  Parsed parsed;
  const auto take = [&parsed](const std::vector<ReplyEvent>& events) {
    for (const ReplyEvent& event : events) {
      if (event.kind == ReplyEvent::Kind::kContent) parsed.streamed += event.text;
    }
  };
  cuts.push_back(text.size());
  std::size_t begin = 0;
  for (const std::size_t cut : cuts) {
    take(parser.push(text.substr(begin, cut - begin)));
    begin = cut;
  }
  parsed.is_finished = parser.is_finished();
  take(parser.finish(FinishReason::kLength));
  parsed.content = parser.reply().content;
  return parsed;
}

struct StopCase {
  ParserStart start;
  std::string text;
  std::vector<std::string> stop;
  std::string dropped;  // content under kDrop
  std::string kept;     // under kKeep
};

std::vector<StopCase> stop_cases() {
  return {
      {kChat, "abEND and more", {"x", "END"}, "ab", "abEND"},
      {kChat, "END", {"END"}, "", "END"},
      {kChat, "a\n\nb", {"\n\n"}, "a", "a\n\n"},
      {kChat, "a\n\n\n", {"\n\n\n"}, "a", "a\n\n\n"},
      // Tried before leading newlines are dropped.
      {kChat, "\n\nb", {"\n\n"}, "", "\n\n"},
      {kChat, "\n\na\nSTOP", {"\nSTOP"}, "a", "a\nSTOP"},
      {kChat, "a\nSTOP", {"STOP"}, "a\n", "a\nSTOP"},
      {kChat, "grüße 😀 da", {"😀"}, "grüße ", "grüße 😀"},
      {kChat, "aXXY", {"XY", "XXY"}, "aX", "aXXY"},
      {kChat, "abcXYdef", {"def", "XY"}, "abc", "abcXY"},
      {kContinued, "\na.b", {"."}, "\na", "\na."},
      {kThinking, "r. END</think>a. END", {"END"}, "a. ", "a. END"},
      {kJson, R"({"a": "b. END"})", {"END"}, R"({"a": "b. )", R"({"a": "b. END)"},
      {kJson, "Here: {\"a\": 1}\n}", {"}"}, " {\"a\": 1", " {\"a\": 1}"},
      {kChat, "no end", {"END"}, "no end", "no end"},
  };
}

void expect_of_every_cut(const StopCase& row, StopText stop_text) {
  const std::string& expected = stop_text == StopText::kDrop ? row.dropped : row.kept;
  for (std::size_t first = 0; first <= row.text.size(); ++first) {
    for (std::size_t second = first; second <= row.text.size(); ++second) {
      const Parsed parsed =
          parse(ReplyParser(row.start, row.stop, stop_text), row.text, {first, second});
      ASSERT_EQ(parsed.content, expected) << row.text << " cut at " << first << ", " << second;
      ASSERT_EQ(parsed.streamed, expected) << row.text;
      ASSERT_EQ(parsed.is_finished, row.dropped != row.kept) << row.text;
    }
  }
}

TEST(StopTextTest, IsDroppedOrKeptHoweverTheTextWasCut) {
  for (const StopCase& row : stop_cases()) {
    expect_of_every_cut(row, StopText::kDrop);
    expect_of_every_cut(row, StopText::kKeep);
  }
}

TEST(StopTextTest, IsDroppedUnlessAskedFor) {
  ReplyParser parser(kChat, {"END"});
  parser.push("abENDc");
  parser.finish(FinishReason::kStop);
  EXPECT_EQ(parser.reply().content, "ab");
  EXPECT_EQ(parser.reply().stop_index, 0U);
}

TEST(StopTextTest, KeptTextIsNotRepeatedWhenTheOutputEnds) {
  ReplyParser parser(kChat, {"END"}, StopText::kKeep);
  std::string streamed;
  for (const ReplyEvent& event : parser.push("abEND")) streamed += event.text;
  for (const ReplyEvent& event : parser.finish(FinishReason::kStop)) streamed += event.text;
  EXPECT_EQ(streamed, "abEND");
  EXPECT_EQ(parser.reply().stop_index, 0U);
  EXPECT_EQ(parser.reply().finish_reason, FinishReason::kStop);
}

TEST(StopTextTest, D07AStopStringOfSeveralTokensEndsTheAnswer) {
  const tokenizer::Tokenizer& tokenizer = test_support::small_tokenizer();
  const std::string text = "A B C D E F G H I J K L M N O P Q R S T";
  for (const std::vector<tokenizer::TokenId>& ids :
       {tokenizer.encode_text(text), test_support::sampled_ids(tokenizer, text)}) {
    ReplyParser parser(kChat, {"O P Q"});
    std::size_t used = 0;
    while (used < ids.size() && !parser.is_finished()) {
      parser.push(tokenizer.decode_bytes(std::span(ids).subspan(used, 1)));
      ++used;
    }
    EXPECT_LT(used, ids.size()) << "ends before the text does";
    EXPECT_GT(tokenizer.encode_text("O P Q").size(), 1U);
    parser.finish(FinishReason::kLength);
    EXPECT_EQ(parser.reply().content, "A B C D E F G H I J K L M N ");
    EXPECT_EQ(parser.reply().finish_reason, FinishReason::kStop);
  }
}

}  // namespace
}  // namespace locket::chat
