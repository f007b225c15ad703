#include "service/completion.h"

#include <algorithm>
#include <set>

#include "tests/service/completion_cases.h"

namespace locket::service {
namespace {

using chat::FinishReason;
using chat::ReplyEvent;

constexpr const char* kStatement = "My cat is called Milo.";

const Completion& plain_answer() {
  static const Completion answer = completed(mini(), ask(kStatement));
  return answer;
}

TEST(CompletionTest, EndsAtTheEndToken) {
  const Completion& answer = plain_answer();
  EXPECT_EQ(answer.reply.content, "Milo, I will remember that.");
  EXPECT_EQ(answer.reply.finish_reason, FinishReason::kStop);
  EXPECT_EQ(answer.reply.stop_index, std::nullopt);
  EXPECT_FALSE(answer.is_cancelled);
  EXPECT_EQ(mini().tokenizer().decode_bytes(answer.token_ids), answer.reply.content);
}

TEST(CompletionTest, GivesItsPagesBack) {
  completed(mini(), ask(kStatement));
  EXPECT_EQ(mini().engine().pool().used_bytes(), 0U);
}

TEST(CompletionTest, EndsAtTheLimitOfTokens) {
  const Completion& whole = plain_answer();
  for (std::size_t limit = 1; limit < whole.token_ids.size(); ++limit) {
    chat::ChatRequest request = ask(kStatement);
    request.max_tokens = static_cast<std::int64_t>(limit);
    const Completion cut = completed(mini(), request);
    EXPECT_EQ(cut.reply.finish_reason, FinishReason::kLength);
    EXPECT_EQ(cut.token_ids, std::vector(whole.token_ids.begin(),
                                         whole.token_ids.begin() + request.max_tokens.value()));
    EXPECT_TRUE(whole.reply.content.starts_with(cut.reply.content)) << cut.reply.content;
  }
}

TEST(CompletionTest, GoesOnBehindTheEndTokenIfAsked) {
  chat::ChatRequest request = ask(kStatement);
  request.ignore_eos = true;
  request.max_tokens = 40;
  const Completion answer = completed(mini(), request);
  EXPECT_EQ(answer.token_ids.size(), 40U);
  EXPECT_EQ(answer.reply.finish_reason, FinishReason::kLength);
  const std::size_t length = plain_answer().token_ids.size();
  EXPECT_EQ(answer.token_ids[length], mini().engine().eos_token());
  EXPECT_TRUE(answer.reply.content.starts_with(plain_answer().reply.content + eos_text(mini())))
      << answer.reply.content;
}

// Five letters from every place of the answer: most of them lie across a border of tokens.
TEST(CompletionTest, EndsBeforeAStopStringWhereverTokensPart) {
  const std::string whole = plain_answer().reply.content;
  ASSERT_LT(plain_answer().token_ids.size(), whole.size() / 2);
  constexpr std::size_t kLength = 5;
  for (std::size_t at = 0; at + kLength <= whole.size(); ++at) {
    chat::ChatRequest request = ask(kStatement);
    request.stop = {"not in the answer", whole.substr(at, kLength)};
    std::string streamed;
    const Completion answer =
        completed(mini(), request, {},
                  {.on_event = [&streamed](const ReplyEvent& event) { streamed += event.text; }});
    EXPECT_EQ(answer.reply.content, whole.substr(0, whole.find(request.stop[1])));
    EXPECT_EQ(streamed, answer.reply.content);
    EXPECT_EQ(answer.reply.finish_reason, FinishReason::kStop);
    EXPECT_EQ(answer.reply.stop_index, 1U);
  }
}

TEST(CompletionTest, GeneratesNothingBehindAStopString) {
  chat::ChatRequest request = ask(kStatement);
  request.stop = {"I will"};
  const Completion answer = completed(mini(), request);
  EXPECT_EQ(answer.reply.content, "Milo, ");
  const std::string text = mini().tokenizer().decode_bytes(answer.token_ids);
  EXPECT_NE(text.find("I will"), std::string::npos) << text;
  const std::string before = mini().tokenizer().decode_bytes(
      std::span(answer.token_ids).first(answer.token_ids.size() - 1));
  EXPECT_EQ(before.find("I will"), std::string::npos) << before;
}

TEST(CompletionTest, StreamsExactlyTheReply) {
  std::string content;
  std::vector<ReplyEvent> others;
  std::size_t pieces = 0;
  const Completion answer =
      completed(mini(), ask(kStatement), {}, {.on_event = [&](const ReplyEvent& event) {
                  if (event.kind != ReplyEvent::Kind::kContent) return others.push_back(event);
                  content += event.text;
                  ++pieces;
                }});
  EXPECT_EQ(content, answer.reply.content);
  EXPECT_GT(pieces, 3U) << "the text must come while it is made";
  ASSERT_EQ(others.size(), 1U);
  EXPECT_EQ(others[0].kind, ReplyEvent::Kind::kFinish);
  EXPECT_EQ(others[0].finish_reason, answer.reply.finish_reason);
}

TEST(CompletionTest, StreamsReasoningApartFromContent) {
  chat::ChatRequest request = ask(kStatement);
  request.thinking = chat::ThinkingMode::kThinking;
  request.max_tokens = 24;
  std::string content;
  std::string reasoning;
  const Completion answer =
      completed(mini(), request, {}, {.on_event = [&](const ReplyEvent& event) {
                  if (event.kind == ReplyEvent::Kind::kContent) content += event.text;
                  if (event.kind == ReplyEvent::Kind::kReasoning) reasoning += event.text;
                }});
  EXPECT_EQ(content, answer.reply.content);
  EXPECT_EQ(reasoning, answer.reply.reasoning.value_or("none"));
  EXPECT_FALSE(reasoning.empty());
}

TEST(CompletionTest, TellsHowMuchOfThePromptIsRead) {
  std::string text = kStatement;
  for (int i = 0; i < 200; ++i) text += " The farmer painted the old house.";
  chat::ChatRequest request = ask(text);
  request.max_tokens = 1;
  std::vector<std::size_t> read;
  std::set<std::size_t> totals;
  const Completion answer =
      completed(mini(), request, {}, {.on_prompt = [&](std::size_t done, std::size_t total) {
                  read.push_back(done);
                  totals.insert(total);
                }});
  EXPECT_GT(read.size(), 1U);
  EXPECT_TRUE(std::ranges::is_sorted(read));
  EXPECT_EQ(read.back(), answer.prompt_tokens);
  EXPECT_EQ(totals, std::set{answer.prompt_tokens});
}

// Forces tokens one after the other: each has a larger logit than the ones behind it, and the
// repetition penalty takes it back once it is said.
chat::ChatRequest force(const LoadedModel& model, const std::vector<std::string>& pieces) {
  chat::ChatRequest request = ask("Say it.");
  request.sampling.repetition_penalty = 1000.0;
  double bias = 900.0;
  for (const std::string& piece : pieces) {
    const auto token = token_of(model, piece);
    if (!token) throw std::runtime_error("the vocabulary has no token for a byte");
    request.sampling.logit_bias.push_back({.token = *token, .bias = bias});
    bias -= 100.0;
  }
  request.max_tokens = static_cast<std::int64_t>(pieces.size());
  return request;
}

std::vector<std::string> streamed_pieces(const LoadedModel& model,
                                         const chat::ChatRequest& request) {
  std::vector<std::string> pieces;
  const Completion answer =
      completed(model, request, {}, {.on_event = [&](const ReplyEvent& event) {
                  if (event.kind == ReplyEvent::Kind::kContent) pieces.push_back(event.text);
                }});
  EXPECT_EQ(answer.reply.finish_reason, FinishReason::kLength);
  std::string joined;
  for (const std::string& piece : pieces) joined += piece;
  EXPECT_EQ(joined, answer.reply.content);
  return pieces;
}

TEST(CompletionTest, StreamsWholeCharacters) {
  EXPECT_EQ(streamed_pieces(odd(), force(odd(), {"a", "\xF0", "\x9F", "\x98", "\x80", "b"})),
            (std::vector<std::string>{"a", "😀", "b"}));
  EXPECT_EQ(streamed_pieces(odd(), force(odd(), {"\xE4", "\xB8", "\xAD"})),
            std::vector<std::string>{"中"});
}

TEST(CompletionTest, RepairsBrokenCharactersWithoutWaiting) {
  EXPECT_EQ(streamed_pieces(odd(), force(odd(), {"\xFF", "a", "b"})),
            (std::vector<std::string>{"\uFFFD", "a", "b"}));
  EXPECT_EQ(streamed_pieces(odd(), force(odd(), {"a", "\xF0", "\x9F"})),
            (std::vector<std::string>{"a", "\uFFFD"}));
}

}  // namespace
}  // namespace locket::service
