// What is remembered between requests: the same answers with less work, across requests, restarts
// and ends that came early.
#include <algorithm>
#include <stop_token>

#include "chat/render_v41.h"
#include "tests/service/completion_cases.h"
#include "tests/support/checkpoint_files.h"

namespace locket::service {
namespace {

using chat::ChatRequest;
using chat::Role;
using engine::TokenId;
using test_support::TempFolder;

constexpr std::size_t kGroup = 2;  // hits are whole groups of this many tokens

std::vector<TokenId> prompt_ids(const LoadedModel& model, const ChatRequest& request) {
  return chat::render_v41(request, model.tokenizer()).value().ids;
}

std::size_t common_length(const std::vector<TokenId>& a, const std::vector<TokenId>& b) {
  return static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

// About six tokens a sentence.
std::string long_text(std::size_t sentences) {
  std::string text;
  for (std::size_t i = 0; i < sentences; ++i) text += "The farmer painted the old house. ";
  return text;
}

ChatRequest long_question() {
  ChatRequest request = ask("My cat is called Milo. " + long_text(300));
  request.max_tokens = 24;
  request.ignore_eos = true;
  return request;
}

LoadedModel remembering_mini(const std::filesystem::path& directory = {}) {
  engine::EngineOptions options;
  options.memory.directory = directory;
  return load_remembering(mini_folder(), options);
}

// The tokens that a request left in the memory: the last one was never fed.
std::vector<TokenId> fed_tokens(const LoadedModel& model, const ChatRequest& request,
                                const Completion& answer) {
  std::vector<TokenId> tokens = prompt_ids(model, request);
  tokens.insert(tokens.end(), answer.token_ids.begin(), answer.token_ids.end() - 1);
  return tokens;
}

void expect_no_hit(const Completion& completion) {
  EXPECT_EQ(completion.memory.hit_tokens, 0U);
  EXPECT_EQ(completion.memory.replayed_tokens, 0U);
}

// Case B01.
TEST(MemoryTest, TheSamePromptThreeTimesGivesTheSameText) {
  const LoadedModel model = remembering_mini();
  const ChatRequest request = long_question();
  const Completion first = completed(model, request);
  expect_no_hit(first);
  EXPECT_EQ(first.token_ids, completed(mini(), request).token_ids);
  for (int time = 2; time <= 3; ++time) {
    const Completion again = completed(model, request);
    EXPECT_EQ(again.token_ids, first.token_ids) << time;
    EXPECT_EQ(again.reply.content, first.reply.content) << time;
    EXPECT_GE(again.memory.hit_tokens + 256, again.prompt_tokens) << time;
    EXPECT_EQ(again.memory.disk_tokens, 0U);
  }
}

// Case B27.
TEST(MemoryTest, ARestartedProgramGoesOnFromDisk) {
  const TempFolder folder;
  const ChatRequest request = long_question();
  Completion first;
  {
    const LoadedModel model = remembering_mini(folder / "memory");
    first = completed(model, request);
    expect_no_hit(first);
  }
  const LoadedModel model = remembering_mini(folder / "memory");
  const Completion again = completed(model, request);
  EXPECT_EQ(again.token_ids, first.token_ids);
  EXPECT_GE(again.memory.hit_tokens + 256, again.prompt_tokens);
  EXPECT_EQ(again.memory.disk_tokens, again.memory.hit_tokens);
  EXPECT_GT(again.memory.restore_seconds, 0.0);
  EXPECT_EQ(again.memory.retries, 0U);
  const Completion third = completed(model, request);
  EXPECT_EQ(third.token_ids, first.token_ids);
  EXPECT_EQ(third.memory.disk_tokens, 0U) << "what came from disk is in memory now";
}

// Case B31, and the end of a stored unit of api.md 10.2.
TEST(MemoryTest, ATurnWithoutItsOldReasoningHitsUpToWhereTheTextsPart) {
  const LoadedModel model = remembering_mini();
  ChatRequest request = ask(long_text(100));
  request.messages.insert(request.messages.begin(),
                          chat::text_message(Role::kSystem, long_text(200)));
  request.thinking = chat::ThinkingMode::kThinking;
  request.max_tokens = 40;
  request.ignore_eos = true;
  const Completion first = completed(model, request);
  ASSERT_FALSE(first.reply.reasoning.value_or("").empty());
  const std::vector<TokenId> kept = fed_tokens(model, request, first);

  request.messages.push_back(chat::text_message(Role::kAssistant, "Yes."));
  request.messages.push_back(chat::text_message(Role::kUser, "And then?"));
  const std::vector<TokenId> ids = prompt_ids(model, request);
  const std::size_t parting = common_length(kept, ids);
  // Up to the token that opens or closes the reasoning: the last of the first prompt.
  EXPECT_EQ(parting, first.prompt_tokens - 1);
  const Completion second = completed(model, request);
  EXPECT_EQ(second.memory.hit_tokens, parting / kGroup * kGroup);
  EXPECT_LT(second.memory.replayed_tokens, 256U) << "its rings were stored near the end";
  EXPECT_EQ(second.token_ids, completed(mini(), request).token_ids);
}

TEST(MemoryTest, ATurnWithItsOldReasoningHitsPastTheEndOfThePrompt) {
  const LoadedModel model = remembering_mini();
  ChatRequest request = ask(long_text(100));
  request.thinking = chat::ThinkingMode::kThinking;
  request.old_reasoning = chat::OldReasoning::kKeepAlways;
  request.max_tokens = 40;
  request.ignore_eos = true;
  const Completion first = completed(model, request);
  const std::vector<TokenId> kept = fed_tokens(model, request, first);
  chat::Message answer = chat::text_message(Role::kAssistant, "");
  answer.reasoning = first.reply.reasoning.value_or("");
  request.messages.push_back(answer);
  request.messages.push_back(chat::text_message(Role::kUser, "And then?"));
  const std::size_t parting = common_length(kept, prompt_ids(model, request));
  EXPECT_GT(parting, first.prompt_tokens);
  EXPECT_EQ(completed(model, request).memory.hit_tokens, parting / kGroup * kGroup);
}

// A reasoning that is switched on in the middle of a conversation changes its first line.
TEST(MemoryTest, TurningThinkingOnOrOffHitsUpToWhereTheTextsPart) {
  const LoadedModel model = remembering_mini();
  ChatRequest request = long_question();
  const Completion plain = completed(model, request);
  std::vector<TokenId> kept = fed_tokens(model, request, plain);
  request.thinking = chat::ThinkingMode::kThinking;
  std::size_t parting = common_length(kept, prompt_ids(model, request));
  EXPECT_EQ(completed(model, request).memory.hit_tokens, parting / kGroup * kGroup);
  request.thinking = chat::ThinkingMode::kChat;
  const Completion again = completed(model, request);
  EXPECT_EQ(again.token_ids, plain.token_ids);
  EXPECT_GE(again.memory.hit_tokens + 256, again.prompt_tokens);
}

TEST(MemoryTest, AnotherConversationSharesTheSystemPrompt) {
  const LoadedModel model = remembering_mini();
  ChatRequest request = ask("My cat is called Milo. " + long_text(100));
  request.messages.insert(request.messages.begin(),
                          chat::text_message(Role::kSystem, long_text(200)));
  request.max_tokens = 8;
  completed(model, request);
  const chat::RenderedPrompt prompt = chat::render_v41(request, model.tokenizer()).value();
  ASSERT_GT(prompt.system_ids, 1000U);
  request.messages[1] = chat::text_message(Role::kUser, "Hello! " + long_text(30));
  const Completion other = completed(model, request);
  EXPECT_GE(other.memory.hit_tokens, prompt.system_ids);
  EXPECT_LT(other.memory.replayed_tokens, 128U) << "rings inside the system prompt were stored";
  EXPECT_EQ(other.token_ids, completed(mini(), request).token_ids);
}

TEST(MemoryTest, APromptThatWasStoppedHalfWayIsRememberedUpToThere) {
  const TempFolder folder;
  const ChatRequest request = long_question();
  std::size_t read = 0;
  {
    const LoadedModel model = remembering_mini(folder / "memory");
    std::stop_source source;
    const auto stopped = complete(model, request, {},
                                  {.on_prompt =
                                       [&](std::size_t done, std::size_t) {
                                         read = done;
                                         if (done > 600) source.request_stop();
                                       },
                                   .stop = source.get_token()});
    ASSERT_FALSE(stopped.has_value());
    EXPECT_EQ(stopped.error().code, ErrorCode::kCancelled);
  }
  const LoadedModel model = remembering_mini(folder / "memory");
  const Completion whole = completed(model, request);
  EXPECT_EQ(whole.memory.hit_tokens, read / kGroup * kGroup);
  EXPECT_EQ(whole.memory.disk_tokens, whole.memory.hit_tokens);
  EXPECT_EQ(whole.token_ids, completed(mini(), request).token_ids);
}

TEST(MemoryTest, AnAnswerThatWasStoppedIsRemembered) {
  const LoadedModel model = remembering_mini();
  const ChatRequest request = long_question();
  std::stop_source source;
  const Completion partial =
      completed(model, request, {},
                {.on_event = [&](const chat::ReplyEvent&) { source.request_stop(); },
                 .stop = source.get_token()});
  EXPECT_TRUE(partial.is_cancelled);
  const Completion whole = completed(model, request);
  EXPECT_GE(whole.memory.hit_tokens + 256, whole.prompt_tokens);
  EXPECT_EQ(whole.token_ids, completed(mini(), request).token_ids);
}

TEST(MemoryTest, WhatCanNeverFitEvictsNothing) {
  const std::uint64_t page_bytes = mini().engine().pool().page_bytes();
  engine::EngineOptions options;
  options.pool_budget_bytes = (std::uint64_t{32} << 20) / page_bytes * page_bytes;
  const LoadedModel model = load_remembering(mini_folder(), options);
  const ChatRequest request = long_question();
  completed(model, request);
  ChatRequest huge = request;
  huge.max_tokens = 500'000;
  const auto refused = complete(model, huge, {}, {});
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kOverBudget);
  EXPECT_GE(completed(model, request).memory.hit_tokens + 256, prompt_ids(model, request).size());
}

TEST(MemoryTest, AModelThatForgetsComputesEverything) {
  const ChatRequest request = ask("My cat is called Milo.");
  for (int time = 0; time < 2; ++time) expect_no_hit(completed(mini(), request));
  EXPECT_EQ(mini().engine().pool().used_bytes(), 0U);
}

}  // namespace
}  // namespace locket::service
