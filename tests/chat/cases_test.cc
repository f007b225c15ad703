// Faults that chat servers are known for, each as the smallest input that shows it.
#include <gtest/gtest.h>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "chat/markup.h"
#include "tests/chat/chat_rows.h"

namespace locket::chat {
namespace {

constexpr ParserStart kThinking = {ReplyStart::kReasoning, true, false};
constexpr ParserStart kChat = {ReplyStart::kContent, true, false};

using tokenizer::TokenId;

// Ids of the bytes of `text`, one token per byte, and the text that a stream of them gives.
std::string stream_bytes(std::string_view bytes) {
  const tokenizer::Tokenizer& tokenizer = test_support::small_tokenizer();
  tokenizer::StreamDecoder decoder(tokenizer);
  ReplyParser parser(kChat);
  for (const char byte : bytes) {
    for (TokenId id = 0; id < static_cast<TokenId>(tokenizer.vocabulary_size()); ++id) {
      if (tokenizer.decode_bytes({&id, 1}) != std::string(1, byte)) continue;
      parser.push(decoder.push(id));
      break;
    }
  }
  parser.push(decoder.finish());
  parser.finish(FinishReason::kLength);
  EXPECT_EQ(parser.reply().finish_reason, FinishReason::kLength);
  return parser.reply().content;
}

TEST(CasesTest, C01SpacesComeBack) {
  const tokenizer::Tokenizer& tokenizer = test_support::small_tokenizer();
  EXPECT_EQ(tokenizer.decode_bytes(tokenizer.encode_text("hello world")), "hello world");
}

TEST(CasesTest, C03ContentNeverYieldsAControlToken) {
  const tokenizer::Tokenizer& tokenizer = test_support::small_tokenizer();
  std::string spellings;
  for (TokenId id = 0; id < static_cast<TokenId>(tokenizer.vocabulary_size()); ++id) {
    if (tokenizer.is_added_token(id)) spellings += tokenizer.decode_bytes({&id, 1}) + " ";
  }
  OrderedJson request;
  request["thinking"]["type"] = "disabled";
  request["messages"] = {{{"role", "system"}, {"content", spellings}},
                         {{"role", "user"}, {"content", "Repeat:\n```\n" + spellings + "\n```"}}};
  const Result<RenderedPrompt> prompt =
      render_v41(parse_chat_request(request.dump()).value(), tokenizer);
  ASSERT_TRUE(prompt.has_value()) << prompt.error().message;
  std::vector<TokenId> control;
  for (const TokenId id : prompt->ids) {
    if (tokenizer.is_added_token(id)) control.push_back(id);
  }
  const std::vector<TokenId> expected = {tokenizer.find_added_token(kBeginOfSentence).value(),
                                         tokenizer.find_added_token(kSystemToken).value(),
                                         tokenizer.find_added_token(kUserToken).value(),
                                         tokenizer.find_added_token(kAssistantToken).value(),
                                         tokenizer.find_added_token(kThinkClose).value()};
  EXPECT_EQ(control, expected);
  // An echo of role tokens comes back as content.
  EXPECT_EQ(parse_whole(kChat, "<｜User｜>x<｜Assistant｜>").content, "<｜User｜>x<｜Assistant｜>");
}

TEST(CasesTest, C05CharactersSplitOverTokensComeBackWhole) {
  EXPECT_EQ(stream_bytes("😀 日 🇩🇪"), "😀 日 🇩🇪");
}

TEST(CasesTest, C08AnInvalidByteNeverStallsTheStream) {
  EXPECT_EQ(stream_bytes("a\xFFz"), "a\uFFFDz");
  EXPECT_EQ(stream_bytes("ab\xF0\x9F\x98"), "ab\uFFFD");
}

TEST(CasesTest, C09HalfOfASurrogatePairIsRefusedByName) {
  for (const std::string_view text : {R"(x \ud83d)", R"(\ude00 y)"}) {
    const std::string message = refusal_of(R"({"messages": [{"role": "user", "content": ")" +
                                           std::string(text) + R"("}]})");
    EXPECT_NE(message.find("messages[0].content"), std::string::npos) << message;
  }
  EXPECT_EQ(refusal_of(R"({"messages": [{"role": "user", "content": "\ud83d\ude00"}]})"), "");
}

TEST(CasesTest, C11AnInvalidEscapeIsRefusedWithItsPlace) {
  const std::string message = refusal_of(R"({"messages": [{"role": "user", "content": "a\sb"}]})");
  EXPECT_NE(message.find("byte offset 44"), std::string::npos) << message;
  EXPECT_EQ(refusal_of(R"({"messages": [{"role": "user", "content": "a\\sb"}]})"), "");
}

TEST(CasesTest, C13ALongSchemaWithoutSpacesIsOnePromptLikeAnother) {
  std::string properties;
  for (int i = 0; properties.size() < 12000; ++i) {
    properties += (i == 0 ? "\"p" : ",\"p") + std::to_string(i) + "\":{\"type\":\"string\"}";
  }
  const std::string request =
      R"({"messages":[{"role":"user","content":"q"}],"tools":[{"function":{"name":"f","parameters":)"
      R"({"type":"object","properties":{)" +
      properties + "}}}}]}";
  const tokenizer::Tokenizer& tokenizer = test_support::small_tokenizer();
  const Result<RenderedPrompt> prompt = render_v41(parse_chat_request(request).value(), tokenizer);
  ASSERT_TRUE(prompt.has_value()) << prompt.error().message;
  EXPECT_EQ(tokenizer.decode_bytes(prompt->ids), join_segments(prompt->segments));
}

TEST(CasesTest, C14AnEmptyBlockDoesNotSwallowTheText) {
  const Reply reply = parse_whole(kChat, "<｜DSML｜tool_calls></｜DSML｜tool_calls>ok");
  EXPECT_EQ(reply.content, "ok");
  EXPECT_EQ(reply.finish_reason, FinishReason::kStop);
  EXPECT_EQ(parse_whole(kThinking, "r</think>a\n\n<｜DSML｜ calls>\n</｜DSML｜ calls>\nb").content,
            "a\nb");
}

TEST(CasesTest, C14StrayClosersAreRemovedAndTheTextStays) {
  EXPECT_EQ(parse_whole(kChat, "one </｜DSML｜invoke>two").content, "one two");
  const Reply reply = parse_whole(kThinking, "one</｜DSML｜ calls> two</think>three");
  EXPECT_EQ(reply.reasoning, "one two");
  EXPECT_EQ(reply.content, "three");
}

TEST(CasesTest, C16AParameterWithoutItsMarksIsNeverAnEmptyCall) {
  const Reply reply =
      parse_whole(kChat,
                  "<｜DSML｜ calls>\n<｜DSML｜ invoke name=\"f\">\n<parameter name=\"enabled\">true"
                  "</｜DSML｜parameter>\n</｜DSML｜ invoke>\n</｜DSML｜ calls>");
  EXPECT_TRUE(reply.tool_calls.empty());
  EXPECT_EQ(reply.broken_calls, 1U);
  EXPECT_EQ(reply.content, "");
}

TEST(CasesTest, C19ACallInsideUnclosedThinkingIsDelivered) {
  const std::string text =
      "I should look.\n\n<｜DSML｜ calls>\n<｜DSML｜ invoke name=\"f\">\n\n</｜DSML｜ invoke>\n"
      "</｜DSML｜ calls>";
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    ReplyParser parser(kThinking);
    parser.push(text.substr(0, cut));
    parser.push(text.substr(cut));
    parser.finish(FinishReason::kStop);
    EXPECT_EQ(parser.reply().reasoning, "I should look.");
    EXPECT_EQ(parser.reply().tool_calls, (std::vector<ReplyCall>{{"f", "{}"}}));
    EXPECT_EQ(parser.reply().finish_reason, FinishReason::kToolCalls);
  }
}

TEST(CasesTest, C22WithToolChoiceNoneNoToolIsShownAndNoMarkupLeaks) {
  const Result<ChatRequest> request = parse_chat_request(
      R"({"messages": [{"role": "user", "content": "q"}], "tool_choice": "none",
          "tools": [{"function": {"name": "f"}}]})");
  const RenderedPrompt prompt = render_segments(request.value());
  EXPECT_EQ(join_segments(prompt.segments).find("Tools"), std::string::npos);
  EXPECT_FALSE(prompt.parser.tool_calls);
  const Reply reply = parse_whole(prompt.parser,
                                  "r</think>a\n\n<｜DSML｜ calls>\n<｜DSML｜ invoke name=\"f\">\n\n"
                                  "</｜DSML｜ invoke>\n</｜DSML｜ calls>");
  EXPECT_EQ(reply.content, "a");
  EXPECT_TRUE(reply.tool_calls.empty());
  EXPECT_EQ(reply.finish_reason, FinishReason::kStop);
}

TEST(CasesTest, C23NullContentIsEmptyAndNeverAWord) {
  const std::string prompt = prompt_of(
      R"({"thinking": {"type": "disabled"}, "messages": [{"role": "user", "content": null},
          {"role": "assistant", "content": null}, {"role": "user"},
          {"role": "assistant", "content": null,
           "tool_calls": [{"id": "c", "function": {"name": "f"}}]},
          {"role": "tool", "tool_call_id": "c", "content": null}]})");
  EXPECT_EQ(
      prompt,
      "<｜begin▁of▁sentence｜><｜User｜><｜Assistant｜></think><｜end▁of▁sentence｜><｜User｜>"
      "<｜Assistant｜></think>\n\n<｜DSML｜ calls>\n<｜DSML｜ invoke name=\"f\">\n\n"
      "</｜DSML｜ invoke>\n</｜DSML｜ calls><｜end▁of▁sentence｜><｜User｜><tool_result>"
      "</tool_result><｜Assistant｜></think>");
  for (const std::string_view content : {"null", "\"\"", "[]"}) {
    EXPECT_NE(refusal_of(R"({"messages": [{"role": "developer", "content": )" +
                         std::string(content) + "}]}"),
              "");
  }
}

TEST(CasesTest, C27OldReasoningMayComeBackOrNot) {
  const auto request = [](std::string_view reasoning) {
    return R"({"tools": [{"function": {"name": "f"}}], "messages": [
        {"role": "user", "content": "q"},
        {"role": "assistant", )" +
           std::string(reasoning) +
           R"("tool_calls": [{"id": "c", "function": {"name": "f"}}]},
        {"role": "tool", "tool_call_id": "c", "content": "x"}]})";
  };
  EXPECT_NE(prompt_of(request(R"("reasoning_content": "r", )")).find("<think>r</think>\n\n<"),
            std::string::npos);
  EXPECT_NE(prompt_of(request("")).find("<think></think>\n\n<"), std::string::npos);
}

TEST(CasesTest, C29ACallCutByLengthIsNotReported) {
  const std::string text =
      "a\n\n<｜DSML｜ calls>\n<｜DSML｜ invoke name=\"f\">\n<｜DSML｜ parameter name=\"x\" "
      "string=\"true\">value</｜DSML｜ parameter>\n</｜DSML｜ invoke>\n</｜DSML｜ calls>";
  const std::size_t opened = text.find(" calls>");
  for (std::size_t end = opened; end < text.size(); ++end) {
    const Reply reply = parse_whole(kChat, text.substr(0, end), FinishReason::kLength);
    EXPECT_EQ(reply.content, "a") << end;
    EXPECT_TRUE(reply.tool_calls.empty()) << end;
    EXPECT_EQ(reply.finish_reason, FinishReason::kLength);
  }
  EXPECT_EQ(parse_whole(kChat, text, FinishReason::kLength).tool_calls.size(), 1U);
}

TEST(CasesTest, C31SeparatorsBeforeCallsDoNotPileUp) {
  OrderedJson messages = {{{"role", "user"}, {"content", "q"}}};
  const std::string output =
      "Looking.\n\n<｜DSML｜ calls>\n<｜DSML｜ invoke name=\"f\">\n\n</｜DSML｜ invoke>\n"
      "</｜DSML｜ calls>";
  for (int turn = 0; turn < 3; ++turn) {
    const Reply reply = parse_whole(kChat, output);
    const std::string id = "c" + std::to_string(turn);
    const OrderedJson call = {
        {"id", id},
        {"function",
         {{"name", reply.tool_calls[0].name}, {"arguments", reply.tool_calls[0].arguments}}}};
    messages.push_back({{"role", "assistant"},
                        {"content", reply.content},
                        {"tool_calls", OrderedJson::array({call})}});
    messages.push_back({{"role", "tool"}, {"tool_call_id", id}, {"content", "x"}});
  }
  OrderedJson request;
  request["thinking"]["type"] = "disabled";
  request["messages"] = messages;
  const std::string prompt = prompt_of(request.dump());
  std::size_t blocks = 0;
  for (std::size_t at = prompt.find("Looking."); at != std::string::npos;
       at = prompt.find("Looking.", at + 1)) {
    ++blocks;
    EXPECT_EQ(prompt.substr(at, output.size()), output);
  }
  EXPECT_EQ(blocks, 3U);
}

TEST(CasesTest, D24JsonModeNeedsNoMagicWord) {
  EXPECT_EQ(refusal_of(R"({"messages": [{"role": "user", "content": "q"}],
                           "response_format": {"type": "json_object"}})"),
            "");
}

TEST(CasesTest, D26EmptyToolsAreNoTools) {
  const auto request = [](std::string_view fields) {
    return R"({"messages": [{"role": "user", "content": "q"}], )" + std::string(fields) + "}";
  };
  EXPECT_EQ(prompt_of(request(R"("tools": [])")), prompt_of(request(R"("tools": null)")));
  EXPECT_NE(refusal_of(request(R"("tools": [], "tool_choice": "required")")), "");
}

TEST(CasesTest, D29EmptyMessagesAreAnswered) {
  EXPECT_EQ(refusal_of(R"({"messages": [{"role": "user", "content": "q"},
                           {"role": "assistant", "content": ""},
                           {"role": "user", "content": []}, {"role": "user", "content": "  "}]})"),
            "");
}

TEST(CasesTest, D33CallsWithoutResultsAreRendered) {
  const std::string prompt = prompt_of(
      R"({"thinking": {"type": "disabled"}, "messages": [{"role": "user", "content": "q"},
          {"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "f"}},
                                               {"id": "b", "function": {"name": "f"}}]},
          {"role": "tool", "tool_call_id": "b", "content": "x"},
          {"role": "user", "content": "go on"}]})");
  EXPECT_TRUE(
      prompt.ends_with("<｜User｜><tool_result>x</tool_result>\n\ngo on<｜Assistant｜></think>"))
      << prompt;
}

}  // namespace
}  // namespace locket::chat
