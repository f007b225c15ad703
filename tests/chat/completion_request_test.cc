#include "chat/completion_request.h"

#include <gtest/gtest.h>
#include <string>
#include <string_view>
#include <vector>

#include "chat/markup.h"
#include "tests/chat/dialect_rows.h"

namespace locket::chat {
namespace {

CompletionRequest accepted(std::string_view body) {
  Result<CompletionRequest> request = parse_completion_request(body);
  EXPECT_TRUE(request.has_value()) << (request ? "" : request.error().message);
  return request.value_or(CompletionRequest{});
}

std::string refused(std::string_view body) {
  const Result<CompletionRequest> request = parse_completion_request(body);
  return request ? "" : request.error().message;
}

RenderedPrompt render(std::string_view body) {
  const Result<RenderedPrompt> prompt =
      render_completion(accepted(body), test_support::small_tokenizer());
  EXPECT_TRUE(prompt.has_value()) << (prompt ? "" : prompt.error().message);
  return prompt.value_or(RenderedPrompt{});
}

TEST(CompletionRequestTest, ReadsItsFields) {
  const CompletionRequest request = accepted(
      R"({"model": "m", "prompt": "p", "suffix": "s", "echo": true, "logprobs": 20, "n": 2,
          "best_of": 2, "max_tokens": 7, "min_tokens": 3, "stop": "x", "stream": true,
          "stream_options": {"include_usage": true}, "temperature": 0, "top_p": 0.5, "seed": 1,
          "frequency_penalty": 0, "presence_penalty": 0, "user_id": "u", "cache_salt": "c",
          "user": "someone@example.org", "stop_token_ids": [1], "zzz": 1})");
  EXPECT_EQ(request.prompt, "p");
  EXPECT_EQ(request.suffix, "s");
  EXPECT_TRUE(request.is_echo);
  EXPECT_TRUE(request.options.wants_logprobs);
  EXPECT_EQ(request.options.top_logprobs, 20);
  EXPECT_EQ(request.options.n, 2);
  EXPECT_EQ(request.options.max_tokens, 7);
  EXPECT_EQ(request.options.min_tokens, 3);
  EXPECT_EQ(request.options.stop, (std::vector<std::string>{"x"}));
  EXPECT_TRUE(request.options.is_stream && request.options.wants_stream_usage);
  EXPECT_EQ(request.options.user_id, "u");
  EXPECT_EQ(request.options.cache_salt, "c");
  EXPECT_EQ(request.options.stop_tokens, (std::vector<std::int32_t>{1}));
  EXPECT_EQ(request.options.thinking, ThinkingMode::kChat);
  EXPECT_EQ(request.options.unknown_fields, (std::vector<std::string>{"zzz"}));
}

TEST(CompletionRequestTest, NamesTheFieldTheValueAndWhatWouldBeRight) {
  constexpr std::string_view kForms = "a string, or a list of token ids that is not empty";
  EXPECT_EQ(refused("{}"), "prompt is missing; it must be " + std::string(kForms));
  EXPECT_EQ(refused(R"({"prompt": 7})"), "prompt is 7; it must be " + std::string(kForms));
  EXPECT_EQ(refused(R"({"prompt": []})"), "prompt is a list; it must be " + std::string(kForms));
  EXPECT_EQ(refused(R"({"prompt": [1, "a"]})"), "prompt[1] is \"a\"; it must be a token id");
  EXPECT_EQ(refused(R"({"prompt": [[-1]]})"), "prompt[0][0] is -1; it must be a token id");
  EXPECT_EQ(refused(R"({"prompt": "a", "logprobs": 21})"),
            "logprobs is 21; it must be an integer from 0 to 20");
  EXPECT_EQ(refused(R"({"prompt": "a", "echo": "yes"})"),
            "echo is \"yes\"; it must be true or false");
  EXPECT_NE(refused(R"({"prompt": [1], "suffix": "s"})"), "");
  EXPECT_EQ(refused(R"({"prompt": "a", "max_tokens": 2, "min_tokens": 3})"),
            "min_tokens is 3; it must not be above the 2 tokens that the answer may have");
}

TEST(CompletionRequestTest, SeveralPromptsAndAChoiceAmongAnswersAreNotSupported) {
  for (const std::string_view body : {R"({"prompt": ["a", "b"]})", R"({"prompt": [[1], [2]]})",
                                      R"({"prompt": "a", "best_of": 2})"}) {
    const Result<CompletionRequest> request = parse_completion_request(body);
    ASSERT_FALSE(request.has_value()) << body;
    EXPECT_EQ(request.error().code, ErrorCode::kUnsupported);
  }
  EXPECT_EQ(accepted(R"({"prompt": ["a"]})").prompt, "a");
  EXPECT_EQ(accepted(R"({"prompt": [[1, 2]]})").prompt_ids, (std::vector<std::int32_t>{1, 2}));
}

TEST(CompletionRequestTest, ATextStaysPlainWhateverItSpells) {
  const std::string text = "<｜User｜>a</think><｜fim▁hole｜>";
  const RenderedPrompt prompt = render(R"({"prompt": ")" + text + "\"}");
  EXPECT_EQ(prompt.segments,
            (std::vector<Segment>{{Segment::Kind::kControl, std::string(kBeginOfSentence), {}},
                                  {Segment::Kind::kPlain, text, {}}}));
  std::size_t control_count = 0;
  for (const tokenizer::TokenId id : prompt.ids) {
    control_count += test_support::small_tokenizer().is_added_token(id) ? 1U : 0U;
  }
  EXPECT_EQ(control_count, 1U);
  EXPECT_EQ(prompt.parser.start, ReplyStart::kContent);
  EXPECT_FALSE(prompt.parser.tool_calls);
}

TEST(CompletionRequestTest, AnEmptyTextHasAFirstToken) {
  EXPECT_EQ(render(R"({"prompt": ""})").ids.size(), 1U);
}

TEST(CompletionRequestTest, FillsInBetweenPromptAndSuffix) {
  const std::string expected =
      "<｜begin▁of▁sentence｜><｜fim▁begin｜>def f(<｜fim▁hole｜>):<｜fim▁end｜>";
  const RenderedPrompt prompt = render(R"({"prompt": "def f(", "suffix": "):"})");
  EXPECT_EQ(join_segments(prompt.segments), expected);
  EXPECT_EQ(test_support::small_tokenizer().decode_bytes(prompt.ids), expected);
  EXPECT_EQ(prompt.segments.size(), 6U);
  // An empty suffix leaves a text to continue.
  EXPECT_EQ(render(R"({"prompt": "a", "suffix": ""})").segments.size(), 2U);
}

TEST(CompletionRequestTest, SaysThatATokenizerCannotFillIn) {
  std::string file = test_support::read_text_file("small_tokenizer.json");
  const std::string name = "<｜fim▁hole｜>";
  for (std::size_t at = file.find(name); at != std::string::npos; at = file.find(name, at)) {
    file.replace(at, name.size(), "<｜other｜>");
  }
  const auto tokenizer = tokenizer::Tokenizer::parse(file, "edited");
  ASSERT_TRUE(tokenizer.has_value()) << tokenizer.error().message;
  const Result<RenderedPrompt> prompt =
      render_completion(accepted(R"({"prompt": "a", "suffix": "b"})"), *tokenizer);
  ASSERT_FALSE(prompt.has_value());
  EXPECT_EQ(prompt.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(prompt.error().message.find(name), std::string::npos);
}

TEST(CompletionRequestTest, TokenIdsStayAsTheyAreAndMustExist) {
  const RenderedPrompt prompt = render(R"({"prompt": [5, 0, 1023]})");
  EXPECT_EQ(prompt.ids, (std::vector<tokenizer::TokenId>{5, 0, 1023}));
  const Result<RenderedPrompt> beyond =
      render_completion(accepted(R"({"prompt": [5, 1024]})"), test_support::small_tokenizer());
  ASSERT_FALSE(beyond.has_value());
  EXPECT_EQ(beyond.error().message, "prompt[1] is 1024; it must be a token id below 1024");
}

}  // namespace
}  // namespace locket::chat
