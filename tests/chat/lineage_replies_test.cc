// Answers of the generations before V4.1: how they are read, and what a constraint lets them write.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "chat/render_prompt.h"
#include "chat/reply_parser.h"
#include "tests/chat/constraint_rows.h"

namespace locket::chat {
namespace {

using nlohmann::json;
using test_support::small_tokenizer;

std::string described(const Reply& reply) {
  json out = {{"reasoning", reply.reasoning ? json(*reply.reasoning) : json(nullptr)},
              {"content", reply.content},
              {"finish", finish_reason_name(reply.finish_reason)},
              {"calls", json::array()}};
  for (const ReplyCall& call : reply.tool_calls)
    out["calls"].push_back({call.name, call.arguments});
  return out.dump();
}

Reply parsed(const ParserStart& start, std::string_view text, std::size_t piece_bytes) {
  ReplyParser parser(start);
  for (std::size_t at = 0; at < text.size(); at += piece_bytes) {
    parser.push(text.substr(at, piece_bytes));
  }
  parser.finish(FinishReason::kStop);
  return parser.reply();
}

// The same however the text is cut.
Reply parsed(const ParserStart& start, std::string_view text) {
  const Reply whole = parsed(start, text, std::string_view::npos / 2);
  for (std::size_t piece_bytes = 1; piece_bytes < 8; ++piece_bytes) {
    EXPECT_EQ(described(parsed(start, text, piece_bytes)), described(whole)) << piece_bytes;
  }
  return whole;
}

ParserStart start_of(const ChatRequest& request, ChatFormat format) {
  const Result<RenderedPrompt> prompt = render_segments(request, format);
  EXPECT_TRUE(prompt.has_value()) << (prompt ? "" : prompt.error().message);
  return prompt ? prompt->parser : ParserStart{};
}

std::string call_block(std::string_view block) {
  return "<｜DSML｜" + std::string(block) +
         ">\n<｜DSML｜invoke name=\"tide\">\n<｜DSML｜parameter name=\"harbour\" string=\"true\">"
         "Emden \"old\"</｜DSML｜parameter>\n<｜DSML｜parameter name=\"days\" string=\"false\">2"
         "</｜DSML｜parameter>\n</｜DSML｜invoke>\n<｜DSML｜invoke name=\"lamp\">\n\n"
         "</｜DSML｜invoke>\n</｜DSML｜" +
         std::string(block) + ">";
}

TEST(LineageRepliesTest, CallsAreReadInTheMarkupOfTheirGeneration) {
  for (const auto& [markup, block] :
       {std::pair{Markup::kV32, "function_calls"}, std::pair{Markup::kV4, "tool_calls"}}) {
    const ParserStart start = {
        .start = ReplyStart::kReasoning, .tool_calls = true, .markup = markup};
    const Reply reply = parsed(start, "I look.</think>Wait.\n\n" + call_block(block));
    EXPECT_EQ(reply.reasoning, "I look.");
    EXPECT_EQ(reply.content, "Wait.");
    EXPECT_EQ(reply.finish_reason, FinishReason::kToolCalls);
    ASSERT_EQ(reply.tool_calls.size(), 2U);
    EXPECT_EQ(reply.tool_calls[0].name, "tide");
    EXPECT_EQ(reply.tool_calls[0].arguments, R"({"harbour": "Emden \"old\"", "days": 2})");
    EXPECT_EQ(reply.tool_calls[1].name, "lamp");
    EXPECT_EQ(reply.tool_calls[1].arguments, "{}");
  }
}

TEST(LineageRepliesTest, AStrayClosingTagLeavesNoTrace) {
  const ParserStart start = {.tool_calls = true, .markup = Markup::kV32};
  EXPECT_EQ(parsed(start, "a</｜DSML｜function_calls>b").content, "ab");
}

TEST(LineageRepliesTest, TheSpaceBehindAssistantBelongsToTheFormat) {
  const ParserStart start = {.has_lead_space = true};
  EXPECT_EQ(parsed(start, " Hello there").content, "Hello there");
  EXPECT_EQ(parsed(start, "  indented").content, " indented");
  EXPECT_EQ(parsed(start, "Hello").content, "Hello");
  EXPECT_EQ(parsed(start, " ").content, "");
  EXPECT_EQ(parsed({}, " Hello").content, " Hello");
}

TEST(LineageRepliesTest, AThoughtOfR1LosesTheNewlinesOfItsFormat) {
  const ChatRequest request = chat_request();
  const Reply reply = parsed(start_of(request, ChatFormat::kR1), "Well.\n</think>\n\nYes.");
  EXPECT_EQ(reply.reasoning, "Well.");
  EXPECT_EQ(reply.content, "Yes.");
}

constexpr std::string_view kParameters =
    R"({"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer",)"
    R"("minimum":1,"maximum":9}},"required":["city","days"],"additionalProperties":false})";

TEST(LineageRepliesTest, ForcedCallsKeepToSchemaAndMarkup) {
  for (const auto& [format, block] : {std::pair{ChatFormat::kV32, "</｜DSML｜function_calls>"},
                                      std::pair{ChatFormat::kV4, "</｜DSML｜tool_calls>"}}) {
    const ChatRequest request = call_request(std::string(kParameters), ToolChoice::Kind::kRequired);
    const ParserStart start = start_of(request, format);
    ASSERT_EQ(start.start, ReplyStart::kCalls);
    const auto grammar = ConstraintGrammar::compile(request, start);
    ASSERT_TRUE(grammar.has_value()) << grammar.error().message;
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      RandomWriter writer(small_tokenizer(), seed);
      const std::optional<std::string> text = writer.write(*grammar);
      ASSERT_TRUE(text.has_value());
      EXPECT_TRUE(text->ends_with(block)) << *text;
      EXPECT_TRUE(text->starts_with("<｜DSML｜invoke name=\"f\">\n")) << *text;
      const Reply reply = parsed(start, *text, 1000);
      ASSERT_FALSE(reply.tool_calls.empty()) << *text;
      const json arguments = json::parse(reply.tool_calls[0].arguments, nullptr, false);
      ASSERT_TRUE(arguments.is_object()) << *text;
      EXPECT_TRUE(arguments["city"].is_string());
      EXPECT_GE(arguments["days"], 1);
      EXPECT_LE(arguments["days"], 9);
    }
  }
}

TEST(LineageRepliesTest, JsonIsBoundInEveryFormat) {
  ChatRequest request = chat_request();
  request.response_format = {ResponseFormat::Kind::kJsonSchema,
                             R"({"type": "object", "properties": {"n": {"type": "integer"}},
                                 "required": ["n"], "additionalProperties": false})"};
  for (int value = 0; value < static_cast<int>(ChatFormat::kCount); ++value) {
    const auto format = static_cast<ChatFormat>(value);
    const ParserStart start = start_of(request, format);
    const auto grammar = ConstraintGrammar::compile(request, start);
    ASSERT_TRUE(grammar.has_value()) << grammar.error().message;
    std::size_t whole = 0;
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      RandomWriter writer(small_tokenizer(), seed);
      const std::optional<std::string> text = writer.write(*grammar);
      if (!text) continue;  // a thought without end
      ++whole;
      const json answer = json::parse(parsed(start, *text, 1000).content, nullptr, false);
      EXPECT_TRUE(answer.is_object() && answer["n"].is_number())
          << chat_format_name(format) << ": " << *text;
    }
    EXPECT_GT(whole, 0U) << chat_format_name(format);
  }
}

TEST(LineageRepliesTest, JsonMayStandBehindTheSpaceOfTheFormat) {
  ChatRequest request = chat_request();
  request.response_format.kind = ResponseFormat::Kind::kJsonObject;
  const ParserStart start = start_of(request, ChatFormat::kV1);
  ASSERT_TRUE(start.has_lead_space);
  const auto made = compile_answer(request, start);
  ASSERT_TRUE(made.has_value() && made->has_value());
  for (const std::string_view text : {" {}", "{}", " \n{}"}) {
    AutomatonWalk walk((*made)->automaton);
    SpotId spot = walk.start();
    for (const char byte : text) {
      if (spot != kNowhere) spot = walk.step(spot, static_cast<unsigned char>(byte));
    }
    EXPECT_NE(spot, kNowhere) << '"' << text << '"';
  }
}

}  // namespace
}  // namespace locket::chat
