#include "engine/session.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "tests/support/tiny_models.h"

namespace locket::engine {
namespace {

using test_support::random_ids;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class SessionTest : public ::testing::Test {
 protected:
  static const model::V41Model& model() {
    return test_support::tiny_model("odd", model::NumericsMode::kReference);
  }
  static std::vector<TokenId> ids(std::size_t count) {
    return random_ids(7, count, model().config().vocabulary_size);
  }
  Session session(const SessionOptions& options = {}) {
    return {model(), pool_, workers_, options};
  }
  // Logits of the last id of a session without any difficulty.
  std::vector<float> expected_logits(const std::vector<TokenId>& all, std::size_t prompt) {
    Session fresh = session();
    EXPECT_TRUE(fresh.prefill(std::span(all).first(prompt)));
    for (std::size_t i = prompt; i < all.size(); ++i) EXPECT_TRUE(fresh.append(all[i]));
    return {fresh.logits().begin(), fresh.logits().end()};
  }

  static void expect_refused(const Status& status, ErrorCode code,
                             std::initializer_list<std::string> words) {
    ASSERT_FALSE(status);
    EXPECT_EQ(error_code_name(status.error().code), error_code_name(code));
    for (const std::string& word : words) EXPECT_THAT(status.error().message, HasSubstr(word));
  }

  static std::vector<float> logits_of(const Session& session) {
    return {session.logits().begin(), session.logits().end()};
  }

  WorkerPool workers_{1};
  cache::PagePool pool_{model().memory().layout.page_bytes(), std::uint64_t{1} << 30};
};

TEST_F(SessionTest, KeepsItsTokens) {
  Session chat = session();
  const std::vector<TokenId> all = ids(12);
  ASSERT_TRUE(chat.prefill(std::span(all).first(10)));
  EXPECT_EQ(chat.prompt_tokens(), 10U);
  EXPECT_EQ(chat.segment_start(), 3) << "the window of this model is 7";
  EXPECT_EQ(chat.logits().size(), 437U);
  ASSERT_TRUE(chat.append(all[10]));
  ASSERT_TRUE(chat.append(all[11]));
  EXPECT_EQ(chat.prompt_tokens(), 10U);
  EXPECT_EQ(chat.segment_start(), 3);
  EXPECT_TRUE(std::ranges::equal(chat.tokens(), all));
}

TEST_F(SessionTest, AnEmptyPromptIsRefused) {
  Session chat = session();
  expect_refused(chat.prefill({}), ErrorCode::kBadRequest, {"no tokens"});
  EXPECT_EQ(pool_.used_bytes(), 0U);
  const std::vector<TokenId> all = ids(9);
  ASSERT_TRUE(chat.prefill(all)) << "it may be tried again";
  EXPECT_EQ(logits_of(chat), expected_logits(all, 9));
}

TEST_F(SessionTest, UnknownIdsAreRefusedWithTheirPlace) {
  Session chat = session();
  const std::vector<TokenId> all = ids(9);
  for (const TokenId bad : {-1, 437, 2'000'000'000}) {
    std::vector<TokenId> wrong = all;
    wrong[6] = bad;
    expect_refused(chat.prefill(wrong), ErrorCode::kBadRequest,
                   {"token 6 is id " + std::to_string(bad), "0 to 436"});
  }
  EXPECT_EQ(pool_.used_bytes(), 0U);
  ASSERT_TRUE(chat.prefill(all));
  const std::vector<float> before = logits_of(chat);
  expect_refused(chat.append(437), ErrorCode::kBadRequest, {"token 9 is id 437"});
  EXPECT_EQ(logits_of(chat), before);
  EXPECT_EQ(chat.tokens().size(), 9U);
  ASSERT_TRUE(chat.append(436));
  std::vector<TokenId> longer = all;
  longer.push_back(436);
  EXPECT_EQ(logits_of(chat), expected_logits(longer, 9));
}

TEST_F(SessionTest, MoreTokensThanTheModelTakesAreRefused) {
  Session chat = session();
  const std::vector<TokenId> many(4'097, 5);
  expect_refused(chat.prefill(many), ErrorCode::kContextTooLong,
                 {"4097", "4096", "max_position_embeddings"});
  EXPECT_TRUE(chat.tokens().empty());
  EXPECT_EQ(pool_.used_bytes(), 0U);
}

TEST_F(SessionTest, AFullContextTakesNoMoreTokens) {
  Session chat = session();
  const std::vector<TokenId> full(4'096, 5);
  ASSERT_TRUE(chat.prefill(full));
  const std::vector<float> before = logits_of(chat);
  expect_refused(chat.append(5), ErrorCode::kContextTooLong, {"4097", "4096"});
  EXPECT_EQ(chat.tokens().size(), 4'096U);
  EXPECT_EQ(logits_of(chat), before);
}

TEST_F(SessionTest, APromptOverTheBudgetChangesNothing) {
  const std::size_t page = model().memory().layout.page_bytes();
  cache::PagePool small(page, 2 * page);
  Session chat(model(), small, workers_, {});
  const std::vector<TokenId> all = ids(257);
  expect_refused(chat.prefill(all), ErrorCode::kOverBudget,
                 {std::to_string(page), std::to_string(2 * page)});
  EXPECT_TRUE(chat.tokens().empty());
  EXPECT_EQ(small.used_bytes(), 0U);
  const auto fits = std::span(all).first(256);
  ASSERT_TRUE(chat.prefill(fits)) << "a shorter one is taken";
  EXPECT_EQ(logits_of(chat), expected_logits({fits.begin(), fits.end()}, 256));
}

TEST_F(SessionTest, ATokenOverTheBudgetChangesNothing) {
  const std::size_t page = model().memory().layout.page_bytes();
  cache::PagePool small(page, 2 * page);
  Session chat(model(), small, workers_, {});
  const std::vector<TokenId> all = ids(130);
  ASSERT_TRUE(chat.prefill(std::span(all).first(127)));
  const cache::PageId other = *small.acquire();
  ASSERT_TRUE(chat.append(all[127])) << "the page has room for one more";
  const std::vector<float> before = logits_of(chat);
  expect_refused(chat.append(all[128]), ErrorCode::kOverBudget, {"the budget is"});
  EXPECT_EQ(chat.tokens().size(), 128U);
  EXPECT_EQ(logits_of(chat), before);
  small.release(other);
  ASSERT_TRUE(chat.append(all[128])) << "once there is room it goes on";
  ASSERT_TRUE(chat.append(all[129]));
  EXPECT_EQ(logits_of(chat), expected_logits(all, 127));
}

TEST_F(SessionTest, StopsBetweenSlices) {
  Session chat = session({.slice_tokens = 10});
  std::stop_source stop;
  std::vector<std::size_t> seen;
  const Status status = chat.prefill(ids(35), stop.get_token(), [&](std::size_t done) {
    seen.push_back(done);
    if (done == 20) stop.request_stop();
  });
  expect_refused(status, ErrorCode::kCancelled, {"stopped after 20 of 35 prompt tokens"});
  EXPECT_THAT(seen, ElementsAre(10, 20));
}

TEST_F(SessionTest, StopsBeforeTheFirstSlice) {
  Session chat = session();
  std::stop_source stop;
  stop.request_stop();
  expect_refused(chat.prefill(ids(5), stop.get_token()), ErrorCode::kCancelled, {"0 of 5"});
  EXPECT_EQ(chat.work(), model::WorkCount{});
}

TEST_F(SessionTest, ReportsEverySlice) {
  Session chat = session({.slice_tokens = 10});
  std::vector<std::size_t> seen;
  ASSERT_TRUE(chat.prefill(ids(25), {}, [&](std::size_t done) { seen.push_back(done); }));
  EXPECT_THAT(seen, ElementsAre(10, 20, 25));
}

// Watched sessions compute logits of all positions, others of the last one only.
TEST_F(SessionTest, BeingWatchedChangesNoBit) {
  const std::vector<TokenId> all = ids(50);
  for (const ReplayMode replay : {ReplayMode::kBounded, ReplayMode::kFull}) {
    Session chat = session({.replay = replay, .slice_tokens = 13});
    ASSERT_TRUE(chat.prefill(std::span(all).first(44)));
    for (std::size_t i = 44; i < 50; ++i) ASSERT_TRUE(chat.append(all[i]));
    const test_support::RunBits watched = test_support::run_sequence(
        model(), all, {.replay = replay, .slice_tokens = 20, .prompt_tokens = 44});
    EXPECT_EQ(logits_of(chat), watched.logits.back());
  }
}

TEST_F(SessionTest, SessionsOfOnePoolDoNotTouchEachOther) {
  const std::vector<TokenId> first = ids(140);
  const std::vector<TokenId> second = random_ids(8, 140, 437);
  Session one = session();
  Session two = session();
  ASSERT_TRUE(one.prefill(std::span(first).first(126)));
  ASSERT_TRUE(two.prefill(std::span(second).first(3)));
  for (std::size_t i = 126; i < 140; ++i) ASSERT_TRUE(one.append(first[i]));
  for (std::size_t i = 3; i < 140; ++i) ASSERT_TRUE(two.append(second[i]));
  EXPECT_EQ(logits_of(one), expected_logits(first, 126));
  EXPECT_EQ(logits_of(two), expected_logits(second, 3));
}

TEST_F(SessionTest, GivesItsPagesBack) {
  {
    Session chat = session();
    ASSERT_TRUE(chat.prefill(ids(300)));
    EXPECT_EQ(pool_.used_bytes(), 3 * model().memory().layout.page_bytes());
  }
  EXPECT_EQ(pool_.used_bytes(), 0U);
}

// Prompts of 1 to 5 tokens, where groups of two begin and end, and nothing has a past.
TEST_F(SessionTest, ShortPromptsGiveFiniteLogits) {
  for (const std::string& name : test_support::tiny_names()) {
    const model::V41Model& tiny = test_support::tiny_model(name, model::NumericsMode::kReference);
    const std::vector<TokenId> all = random_ids(9, 5, tiny.config().vocabulary_size);
    std::vector<std::vector<float>> seen;
    for (std::size_t count = 1; count <= 5; ++count) {
      const test_support::RunBits bits =
          test_support::run_sequence(tiny, std::span(all).first(count), {});
      EXPECT_TRUE(
          std::ranges::all_of(bits.logits.back(), [](float x) { return std::isfinite(x); }));
      EXPECT_EQ(std::ranges::count(seen, bits.logits.back()), 0);
      seen.push_back(bits.logits.back());
    }
  }
}

TEST_F(SessionTest, AppendNeedsAFinishedPrompt) {
  Session chat = session();
  EXPECT_DEATH(static_cast<void>(chat.append(1)), "check failed");
  ASSERT_TRUE(chat.prefill(ids(3)));
  EXPECT_DEATH(static_cast<void>(chat.prefill(ids(3))), "check failed");
}

}  // namespace
}  // namespace locket::engine
