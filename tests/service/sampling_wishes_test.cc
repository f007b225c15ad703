// How the sampling values of a request and the defaults go together.
#include <algorithm>
#include <set>

#include "tests/service/completion_cases.h"

namespace locket::service {
namespace {

constexpr const char* kStatement = "Hello!";
constexpr double kHot = 1.5;

std::string answer_to(const chat::ChatRequest& request, const CompletionDefaults& defaults = {}) {
  return completed(mini(), request, defaults).reply.content;
}

chat::ChatRequest hot_request(std::uint64_t seed) {
  chat::ChatRequest request = ask(kStatement);
  request.sampling.temperature = kHot;
  request.sampling.seed = seed;
  request.max_tokens = 24;
  return request;
}

const std::string& greedy_answer() {
  static const std::string answer = answer_to(ask(kStatement));
  return answer;
}

TEST(SamplingWishesTest, TheSameSeedGivesTheSameText) {
  const std::string first = answer_to(hot_request(7));
  for (int again = 0; again < 3; ++again) EXPECT_EQ(answer_to(hot_request(7)), first);
}

TEST(SamplingWishesTest, OtherSeedsGiveOtherTexts) {
  std::set<std::string> texts;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    chat::ChatRequest request = hot_request(seed);
    request.ignore_eos = true;
    texts.insert(answer_to(request));
  }
  EXPECT_GE(texts.size(), 6U);
}

TEST(SamplingWishesTest, DefaultsApplyWhereTheRequestSaysNothing) {
  const CompletionDefaults defaults = {.temperature = kHot, .seed = 7, .max_tokens = 24};
  EXPECT_EQ(answer_to(ask(kStatement), defaults), answer_to(hot_request(7)));
  EXPECT_NE(answer_to(ask(kStatement), defaults), greedy_answer());
}

TEST(SamplingWishesTest, TheRequestOverridesTheDefaults) {
  const CompletionDefaults hot = {.temperature = kHot, .seed = 7, .max_tokens = 24};
  using Change = void (*)(chat::SamplingWishes&);
  const std::vector<std::pair<const char*, Change>> greedy_wishes = {
      {"temperature", [](chat::SamplingWishes& wishes) { wishes.temperature = 0.0; }},
      {"top_k", [](chat::SamplingWishes& wishes) { wishes.top_k = 1; }},
      {"top_p", [](chat::SamplingWishes& wishes) { wishes.top_p = 0.0; }},
      {"min_p", [](chat::SamplingWishes& wishes) { wishes.min_p = 1.0; }}};
  for (const auto& [name, change] : greedy_wishes) {
    chat::ChatRequest request = ask(kStatement);
    change(request.sampling);
    EXPECT_EQ(answer_to(request, hot), greedy_answer()) << name;
  }
  chat::ChatRequest other_seed = ask(kStatement);
  other_seed.sampling.seed = 8;
  EXPECT_EQ(answer_to(other_seed, hot), answer_to(hot_request(8)));
  EXPECT_NE(answer_to(other_seed, hot), answer_to(hot_request(7)));
}

TEST(SamplingWishesTest, TheRequestLiftsDefaultsThatNarrowTheChoice) {
  for (const CompletionDefaults& narrow :
       {CompletionDefaults{.top_k = 1}, CompletionDefaults{.top_p = 0.0},
        CompletionDefaults{.min_p = 1.0}}) {
    chat::ChatRequest request = hot_request(7);
    EXPECT_EQ(answer_to(request, narrow), greedy_answer());
    request.sampling.top_k = 0;
    request.sampling.top_p = 1.0;
    request.sampling.min_p = 0.0;
    EXPECT_EQ(answer_to(request, narrow), answer_to(hot_request(7)));
  }
}

TEST(SamplingWishesTest, TheRequestsLimitOfTokensCounts) {
  chat::ChatRequest request = ask(kStatement);
  request.max_tokens = 2;
  EXPECT_EQ(completed(mini(), request, {.max_tokens = 5}).token_ids.size(), 2U);
  request.max_tokens = std::nullopt;
  EXPECT_EQ(completed(mini(), request, {.max_tokens = 3}).token_ids.size(), 3U);
}

TEST(SamplingWishesTest, BiasAndPenaltiesReachTheSampler) {
  const Completion greedy = completed(mini(), ask(kStatement));
  chat::ChatRequest banned = ask(kStatement);
  banned.sampling.logit_bias = {{.token = greedy.token_ids.front(), .bias = -100.0}};
  const Completion without = completed(mini(), banned);
  EXPECT_EQ(std::ranges::count(without.token_ids, greedy.token_ids.front()), 0);

  // Without a penalty a bias of 100 says the same token again and again.
  const engine::TokenId token = token_of(mini(), "Q").value();
  chat::ChatRequest stuck = ask(kStatement);
  stuck.sampling.logit_bias = {{.token = token, .bias = 100.0}};
  stuck.max_tokens = 6;
  EXPECT_EQ(answer_to(stuck), "QQQQQQ");
  using Change = void (*)(chat::SamplingWishes&);
  const std::vector<std::pair<const char*, Change>> penalties = {
      {"frequency", [](chat::SamplingWishes& wishes) { wishes.frequency_penalty = 300.0; }},
      {"presence", [](chat::SamplingWishes& wishes) { wishes.presence_penalty = 300.0; }},
      {"repetition", [](chat::SamplingWishes& wishes) { wishes.repetition_penalty = 900.0; }}};
  for (const auto& [name, change] : penalties) {
    chat::ChatRequest freed = stuck;
    change(freed.sampling);
    const Completion answer = completed(mini(), freed);
    EXPECT_EQ(std::ranges::count(answer.token_ids, token), 1) << name;
  }
}

TEST(SamplingWishesTest, RefusesValuesOutOfRangeBeforeAnyWork) {
  chat::ChatRequest request = ask(kStatement);
  request.sampling.top_p = 1.5;
  Error error = refused(mini(), request);
  EXPECT_EQ(error.code, ErrorCode::kBadRequest);
  EXPECT_NE(error.message.find("top_p is 1.5"), std::string::npos) << error.message;

  request = ask(kStatement);
  request.sampling.logit_bias = {{.token = 1536, .bias = 1.0}};
  error = refused(mini(), request);
  EXPECT_EQ(error.code, ErrorCode::kBadRequest);
  EXPECT_NE(error.message.find("token 1536"), std::string::npos) << error.message;
}

}  // namespace
}  // namespace locket::service
