// The small model that ships against the answers of the Python reference that trained it: a fact in
// the first of about a hundred messages, the question in the last one.
#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "chat/render_v41.h"
#include "tests/service/completion_cases.h"

namespace locket::service {
namespace {

constexpr const char* kNotKnown = "I don't know that yet.";
// Answers may part where rounding decides: where the best two logits lie closer than this.
constexpr float kNearTie = 0.05F;

struct RecallCase {
  chat::ChatRequest request;
  std::string expected;  // the right answer
  std::string bounded;   // the reference's answers
  std::string full;
};

std::vector<RecallCase> read_cases(const std::string& list) {
  const auto file = nlohmann::json::parse(read_whole_file(mini_folder() / "recall.json").value());
  std::vector<RecallCase> cases;
  for (const auto& entry : file.at(list)) {
    RecallCase recall = {.request = {},
                         .expected = entry.at("expected"),
                         .bounded = entry.at("bounded"),
                         .full = entry.at("full")};
    recall.request.thinking = chat::ThinkingMode::kChat;
    for (const auto& message : entry.at("messages")) {
      const auto role = message.at("role") == "user" ? chat::Role::kUser : chat::Role::kAssistant;
      recall.request.messages.push_back(chat::text_message(role, message.at("content")));
    }
    cases.push_back(std::move(recall));
  }
  return cases;
}

// How far the best logit lies above the second where `ours` and the stored answer part.
float gap_where_answers_part(const LoadedModel& model, const chat::ChatRequest& request,
                             const std::vector<engine::TokenId>& ours, const std::string& stored) {
  const auto prompt = chat::render_v41(request, model.tokenizer()).value();
  std::vector<engine::TokenId> theirs = model.tokenizer().encode_text(stored);
  theirs.push_back(model.engine().eos_token());
  engine::Session session = model.engine().make_session();
  EXPECT_TRUE(session.prefill(prompt.ids).has_value());
  for (std::size_t i = 0; i < std::min(ours.size(), theirs.size()) && ours[i] == theirs[i]; ++i) {
    EXPECT_TRUE(session.append(theirs[i]).has_value());
  }
  std::vector<float> logits(session.logits().begin(), session.logits().end());
  std::ranges::nth_element(logits, logits.begin() + 1, std::greater<>());
  return logits[0] - logits[1];
}

struct Score {
  std::size_t as_stored = 0;
  std::size_t right = 0;
};

Score check_answers(const LoadedModel& model, const std::vector<RecallCase>& cases,
                    std::string RecallCase::*stored) {
  Score score;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Completion answer = completed(model, cases[i].request);
    const std::string& text = answer.reply.content;
    score.right += text == cases[i].expected ? 1 : 0;
    if (text == cases[i].*stored) {
      ++score.as_stored;
      continue;
    }
    const float gap =
        gap_where_answers_part(model, cases[i].request, answer.token_ids, cases[i].*stored);
    EXPECT_LT(gap, kNearTie) << "conversation " << i << ": \"" << text
                             << "\", the reference says \"" << cases[i].*stored << '"';
  }
  std::cout << score.as_stored << " of " << cases.size() << " answers equal the reference's, "
            << score.right << " are right\n";
  return score;
}

TEST(RecallTest, AnswersAsTheReferenceDoes) {
  const std::vector<RecallCase> cases = read_cases("recall");
  ASSERT_EQ(cases.size(), 50U);
  const Score score = check_answers(mini(), cases, &RecallCase::bounded);
  EXPECT_GE(score.as_stored, 48U);
  EXPECT_GE(score.right, 46U);
}

TEST(RecallTest, DoesNotKnowWhatItWasNotTold) {
  const std::vector<RecallCase> cases = read_cases("controls");
  ASSERT_EQ(cases.size(), 20U);
  for (const RecallCase& control : cases) EXPECT_EQ(control.bounded, kNotKnown);
  const Score score = check_answers(mini(), cases, &RecallCase::bounded);
  EXPECT_EQ(score.as_stored, 20U);
}

TEST(RecallTest, AnswersAsTheReferenceDoesWhenTheDecoderSeesTheWholePrompt) {
  const LoadedModel model = load(mini_folder(), {.replay = engine::ReplayMode::kFull});
  std::vector<RecallCase> cases = read_cases("recall");
  cases.resize(5);
  EXPECT_GE(check_answers(model, cases, &RecallCase::full).as_stored, 4U);
}

TEST(RecallTest, RemembersAsManyInModeFast) {
  const LoadedModel fast = load(mini_folder(), {.numerics = {.mode = model::NumericsMode::kFast}});
  std::vector<RecallCase> cases = read_cases("recall");
  cases.resize(12);
  std::size_t right = 0;
  std::size_t right_in_reference = 0;
  for (const RecallCase& recall : cases) {
    right += completed(fast, recall.request).reply.content == recall.expected ? 1 : 0;
    right_in_reference += completed(mini(), recall.request).reply.content == recall.expected;
  }
  std::cout << right << " of " << cases.size() << " are right in mode fast, " << right_in_reference
            << " in mode reference\n";
  EXPECT_GE(right + 1, right_in_reference);
  EXPECT_GE(right, 10U);
}

// The measure of the comparison itself: an answer that the model does not want is no near tie.
TEST(RecallTest, FindsAWideGapWhereAnotherAnswerWouldBegin) {
  const chat::ChatRequest request = ask("My cat is called Milo.");
  const Completion answer = completed(mini(), request);
  EXPECT_GT(gap_where_answers_part(mini(), request, answer.token_ids, "Milo, I will forget that."),
            1.0F);
}

}  // namespace
}  // namespace locket::service
