// What a request may ask for: context, memory budget, pictures; and being stopped by the caller.
#include <limits>
#include <stop_token>

#include "chat/render_v41.h"
#include "tests/service/completion_cases.h"

namespace locket::service {
namespace {

using chat::FinishReason;
using chat::ReplyEvent;

constexpr std::size_t kOddContext = 4096;  // max_position_embeddings of odd

std::size_t prompt_tokens(const LoadedModel& model, const chat::ChatRequest& request) {
  return chat::render_v41(request, model.tokenizer()).value().ids.size();
}

// A message whose prompt has exactly `count` tokens: letters that no merge joins.
chat::ChatRequest ask_with_tokens(const LoadedModel& model, std::size_t count) {
  const std::size_t frame = prompt_tokens(model, ask(""));
  std::string text;
  for (std::size_t i = frame; i < count; ++i) text += i % 2 == 0 ? "~" : "^";
  chat::ChatRequest request = ask(text);
  EXPECT_EQ(prompt_tokens(model, request), count);
  return request;
}

TEST(ContextLimitTest, RefusesWhatDoesNotFitBeforeAnyWork) {
  chat::ChatRequest request = ask("Hello!");
  const std::size_t prompt = prompt_tokens(odd(), request);
  request.max_tokens = static_cast<std::int64_t>(kOddContext - prompt + 1);
  const Error error = refused(odd(), request);
  EXPECT_EQ(error.code, ErrorCode::kContextTooLong);
  for (const std::size_t number :
       {prompt, kOddContext, static_cast<std::size_t>(*request.max_tokens)}) {
    EXPECT_NE(error.message.find(std::to_string(number)), std::string::npos) << error.message;
  }
}

TEST(ContextLimitTest, RefusesAPromptThatFillsTheContext) {
  for (const std::size_t count : {kOddContext, kOddContext + 1, 2 * kOddContext}) {
    EXPECT_EQ(refused(odd(), ask_with_tokens(odd(), count)).code, ErrorCode::kContextTooLong);
  }
}

TEST(ContextLimitTest, TheHugestLimitOfTokensIsRefusedToo) {
  chat::ChatRequest request = ask("Hello!");
  request.max_tokens = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(refused(odd(), request).code, ErrorCode::kContextTooLong);
}

TEST(ContextLimitTest, WithoutALimitOfTokensTheAnswerEndsWithTheContext) {
  chat::ChatRequest request = ask_with_tokens(odd(), kOddContext - 3);
  request.ignore_eos = true;
  const Completion answer = completed(odd(), request);
  EXPECT_EQ(answer.prompt_tokens, kOddContext - 3);
  EXPECT_EQ(answer.token_ids.size(), 3U);
  EXPECT_EQ(answer.reply.finish_reason, FinishReason::kLength);
}

// odd with memory for `pages` pages of 128 tokens.
LoadedModel odd_with_pages(std::uint64_t pages) {
  const std::uint64_t page_bytes = odd().engine().pool().page_bytes();
  return load(tiny_folder("odd"), {.pool_budget_bytes = pages * page_bytes});
}

TEST(MemoryBudgetTest, RefusesAnAnswerThatMayNotFitBeforeAnyWork) {
  const LoadedModel model = odd_with_pages(1);
  chat::ChatRequest request = ask("Hello!");
  request.ignore_eos = true;
  // The last token of an answer needs no room.
  const auto most = static_cast<std::int64_t>(129 - prompt_tokens(model, request));
  request.max_tokens = most + 1;
  EXPECT_EQ(refused(model, request).code, ErrorCode::kOverBudget);
  request.max_tokens = most;
  EXPECT_EQ(completed(model, request).token_ids.size(), static_cast<std::size_t>(most));
}

TEST(MemoryBudgetTest, RefusesAPromptThatDoesNotFitBeforeAnyWork) {
  EXPECT_EQ(refused(odd_with_pages(1), ask_with_tokens(odd(), 129)).code, ErrorCode::kOverBudget);
  const LoadedModel tiny = load(tiny_folder("odd"), {.pool_budget_bytes = 1});
  EXPECT_EQ(refused(tiny, ask("Hello!")).code, ErrorCode::kOverBudget);
}

TEST(MemoryBudgetTest, WithoutALimitOfTokensTheAnswerEndsWithTheMemory) {
  const LoadedModel model = odd_with_pages(1);
  chat::ChatRequest request = ask("Hello!");
  request.ignore_eos = true;
  const Completion answer = completed(model, request);
  EXPECT_EQ(answer.reply.finish_reason, FinishReason::kLength);
  // The last token was drawn from the 128 that fit, and is not in the memory itself.
  EXPECT_EQ(answer.prompt_tokens + answer.token_ids.size(), 129U);
}

TEST(CompletionLimitsTest, RefusesPictures) {
  chat::ChatRequest request = ask("What is this?");
  request.messages[0].content.push_back(
      {chat::ContentPart::Kind::kImage, {}, {"data:image/png;base64,AAAA", "auto"}});
  const Error error = refused(mini(), request);
  EXPECT_EQ(error.code, ErrorCode::kUnsupported);
  EXPECT_NE(error.message.find("1 image"), std::string::npos) << error.message;
}

TEST(CancellationTest, StopsBetweenSlicesOfThePrompt) {
  const chat::ChatRequest request = ask_with_tokens(odd(), 1200);
  std::stop_source source;
  std::vector<std::size_t> read;
  const Result<Completion> completion =
      complete(odd(), request, {},
               {.on_event = [](const ReplyEvent&) { ADD_FAILURE() << "no answer was begun"; },
                .on_prompt =
                    [&](std::size_t done, std::size_t) {
                      read.push_back(done);
                      source.request_stop();
                    },
                .stop = source.get_token()});
  ASSERT_FALSE(completion.has_value());
  EXPECT_EQ(completion.error().code, ErrorCode::kCancelled);
  ASSERT_EQ(read.size(), 1U);
  EXPECT_NE(completion.error().message.find(std::to_string(read[0]) + " of 1200"),
            std::string::npos)
      << completion.error().message;
  EXPECT_EQ(odd().engine().pool().used_bytes(), 0U);
}

TEST(CancellationTest, DoesNothingForARequestThatIsStoppedAlready) {
  std::stop_source source;
  source.request_stop();
  const Result<Completion> completion = complete(
      mini(), ask("Hello!"), {},
      {.on_prompt = [](std::size_t, std::size_t) { ADD_FAILURE(); }, .stop = source.get_token()});
  ASSERT_FALSE(completion.has_value());
  EXPECT_EQ(completion.error().code, ErrorCode::kCancelled);
}

TEST(CancellationTest, KeepsWhatWasSaidBeforeTheStop) {
  const Completion whole = completed(mini(), ask("My cat is called Milo."));
  std::stop_source source;
  std::vector<ReplyEvent> events;
  const Completion partial = completed(mini(), ask("My cat is called Milo."), {},
                                       {.on_event =
                                            [&](const ReplyEvent& event) {
                                              events.push_back(event);
                                              if (events.size() == 3) source.request_stop();
                                            },
                                        .stop = source.get_token()});
  EXPECT_TRUE(partial.is_cancelled);
  EXPECT_FALSE(whole.is_cancelled);
  EXPECT_LT(partial.token_ids.size(), whole.token_ids.size());
  EXPECT_FALSE(partial.reply.content.empty());
  EXPECT_TRUE(whole.reply.content.starts_with(partial.reply.content)) << partial.reply.content;
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(events.back().kind, ReplyEvent::Kind::kFinish);
}

}  // namespace
}  // namespace locket::service
