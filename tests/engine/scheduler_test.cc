// Many completions on one engine: each says what it says alone, whoever joins, leaves, pauses or
// takes the memory; nobody waits for a long prompt.
#include "engine/scheduler.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/tiny_models.h"

namespace locket::engine {
namespace {

using test_support::random_ids;

constexpr std::size_t kVocabulary = 480;

struct EngineSetup {
  std::uint64_t pool_bytes = std::uint64_t{256} << 20;
  MemoryOptions::Keeps keeps = MemoryOptions::Keeps::kPrefixes;
  std::size_t threads = 2;
};

std::unique_ptr<Engine> open_engine(const EngineSetup& setup = {}) {
  const auto& model = test_support::tiny_model("micro", model::NumericsMode::kReference);
  std::vector<std::int32_t> map(static_cast<std::size_t>(model.config().vocabulary_size));
  constexpr std::size_t kClasses = 400;  // engram_compressed_vocab_size
  for (std::size_t i = 0; i < map.size(); ++i) map[i] = static_cast<std::int32_t>(i % kClasses);
  auto engine = Engine::open(test_support::tiny_checkpoint("micro"), map,
                             {.threads = setup.threads,
                              .pool_budget_bytes = setup.pool_bytes,
                              .memory = {.keeps = setup.keeps}});
  EXPECT_TRUE(engine);
  return std::move(*engine);
}

// Notes everything it is told.
class Recorder : public GenerationClient {
 public:
  void on_admitted(const MemoryUse& memory) override {
    ++admissions;
    if (admissions == 1) first_use = memory;
  }
  void on_prompt(std::size_t done, std::size_t total) override {
    EXPECT_LE(done, total);
    EXPECT_GE(done, prompt_done);
    prompt_done = done;
  }
  Verdict on_token(const GeneratedToken& token) override {
    EXPECT_FALSE(has_ended());
    tokens.push_back(token.token);
    generated.push_back(token);
    steps.push_back(scheduler != nullptr ? scheduler->counts().steps : 0);
    return tokens.size() == enough ? Verdict::kEnough : Verdict::kGoOn;
  }
  void on_end(const GenerationEnd& how) override {
    EXPECT_FALSE(has_ended()) << "told twice";
    end = how;
  }

  bool has_ended() const { return end.reason != EndReason::kCount; }

  std::size_t admissions = 0;
  MemoryUse first_use;
  std::size_t prompt_done = 0;
  std::vector<TokenId> tokens;
  std::vector<GeneratedToken> generated;
  std::vector<std::uint64_t> steps;  // in which each token came
  GenerationEnd end;
  std::size_t enough = 0;
  const Scheduler* scheduler = nullptr;
};

GenerationRequest request(std::uint32_t seed, std::size_t prompt_tokens, std::size_t max_tokens) {
  GenerationRequest wanted;
  wanted.prompt = random_ids(seed, prompt_tokens, kVocabulary);
  wanted.sampling.temperature = seed % 2 == 0 ? 0.0 : 1.0;
  wanted.seed = seed;
  wanted.max_tokens = max_tokens;
  return wanted;
}

std::vector<TokenId> alone(const GenerationRequest& wanted) {
  const auto engine = open_engine({.keeps = MemoryOptions::Keeps::kNothing, .threads = 1});
  Scheduler scheduler(*engine, {.max_running = 1});
  const auto recorder = std::make_shared<Recorder>();
  scheduler.add(wanted, recorder);
  while (scheduler.step()) {
  }
  EXPECT_TRUE(recorder->has_ended());
  EXPECT_NE(recorder->end.reason, EndReason::kFailed) << recorder->end.error.message;
  return recorder->tokens;
}

struct Crowd {
  std::vector<GenerationRequest> requests;
  std::vector<std::shared_ptr<Recorder>> recorders;

  void expect_as_alone() const {
    for (std::size_t i = 0; i < requests.size(); ++i) {
      SCOPED_TRACE(i);
      ASSERT_TRUE(recorders[i]->has_ended());
      EXPECT_EQ(recorders[i]->end.reason, EndReason::kLength) << recorders[i]->end.error.message;
      EXPECT_EQ(recorders[i]->tokens, alone(requests[i]));
    }
  }
};

Crowd make_crowd(std::uint32_t seed, std::size_t count, std::size_t longest) {
  Crowd crowd;
  std::mt19937 random(seed);
  for (std::size_t i = 0; i < count; ++i) {
    crowd.requests.push_back(
        request(seed + static_cast<std::uint32_t>(i), 1 + random() % longest, 1 + random() % 24));
    crowd.recorders.push_back(std::make_shared<Recorder>());
  }
  return crowd;
}

TEST(SchedulerTest, ACrowdSaysWhatEachSaysAlone) {
  const auto engine = open_engine();
  Scheduler scheduler(*engine, {.max_running = 5, .pacer = {.most_prompt_tokens = 100}});
  Crowd crowd = make_crowd(1000, 12, 200);
  std::size_t joined = 0;
  // They come a few at a time, while others run.
  for (int round = 0; round < 400; ++round) {
    if (round % 3 == 0 && joined < crowd.requests.size()) {
      scheduler.add(crowd.requests[joined], crowd.recorders[joined]);
      ++joined;
    }
    EXPECT_LE(scheduler.running(), 5U);
    if (!scheduler.step() && joined == crowd.requests.size()) break;
  }
  crowd.expect_as_alone();
  EXPECT_EQ(scheduler.running() + scheduler.waiting(), 0U);
}

TEST(SchedulerTest, ACrowdThatSharesABeginningSaysTheSame) {
  const auto engine = open_engine();
  Scheduler scheduler(*engine, {});
  Crowd crowd = make_crowd(2000, 8, 60);
  const std::vector<TokenId> common = random_ids(5, 300, kVocabulary);
  for (GenerationRequest& one : crowd.requests) {
    one.prompt.insert(one.prompt.begin(), common.begin(), common.end());
  }
  // The first one reads the beginning, the others find it.
  for (std::size_t i = 0; i < crowd.requests.size(); ++i) {
    scheduler.add(crowd.requests[i], crowd.recorders[i]);
    for (int step = 0; step < 4; ++step) scheduler.step();
  }
  while (scheduler.step()) {
  }
  crowd.expect_as_alone();
  EXPECT_GE(crowd.recorders.back()->first_use.hit_tokens, 256U);
  EXPECT_GT(scheduler.counts().hit_tokens, 7 * 200U);
}

// Room for some of the pages only: the youngest give theirs up and go on later.
TEST(SchedulerTest, PreemptedCompletionsGoOnWithTheSameBits) {
  const auto probe = open_engine();
  const std::size_t page = probe->model().layout().page_bytes();
  const auto engine = open_engine({.pool_bytes = 9 * page});
  Scheduler scheduler(*engine, {.max_running = 8});
  Crowd crowd;
  for (std::uint32_t i = 0; i < 6; ++i) {
    crowd.requests.push_back(request(3000 + i, 100 + 10 * i, 160));
    crowd.recorders.push_back(std::make_shared<Recorder>());
    scheduler.add(crowd.requests.back(), crowd.recorders.back());
  }
  int steps = 0;
  while (scheduler.step()) ASSERT_LT(++steps, 20'000);
  crowd.expect_as_alone();
  EXPECT_GT(scheduler.counts().preemptions, 0U);
}

TEST(SchedulerTest, WhatCanNeverFitFailsAtOnceAndTheOthersGoOn) {
  const auto probe = open_engine();
  const auto engine = open_engine({.pool_bytes = 3 * probe->model().layout().page_bytes()});
  Scheduler scheduler(*engine, {});
  Crowd crowd;
  crowd.requests = {request(4000, 100, 5)};
  crowd.recorders = {std::make_shared<Recorder>()};
  const auto large = std::make_shared<Recorder>();
  scheduler.add(crowd.requests[0], crowd.recorders[0]);
  scheduler.step();
  scheduler.add(request(4001, 2'000, 5), large);
  scheduler.step();
  EXPECT_EQ(large->end.reason, EndReason::kFailed);
  EXPECT_EQ(large->end.error.code, ErrorCode::kOverBudget);
  while (scheduler.step()) {
  }
  crowd.expect_as_alone();
}

// An answer that outgrows the memory ends there, when nobody else can give way.
TEST(SchedulerTest, TheOnlyCompletionEndsWhereTheMemoryEnds) {
  const auto probe = open_engine();
  const auto engine = open_engine({.pool_bytes = 2 * probe->model().layout().page_bytes()});
  Scheduler scheduler(*engine, {});
  const auto recorder = std::make_shared<Recorder>();
  scheduler.add(request(4100, 120, 1'000), recorder);
  int steps = 0;
  while (scheduler.step()) ASSERT_LT(++steps, 2'000);
  EXPECT_EQ(recorder->end.reason, EndReason::kLength);
  EXPECT_GE(recorder->tokens.size(), 5U);
  EXPECT_LT(recorder->tokens.size(), 300U);
}

TEST(SchedulerTest, ALongPromptDoesNotStopTheOthers) {
  const auto engine = open_engine();
  Scheduler scheduler(*engine, {.pacer = {.most_prompt_tokens = 64, .most_stretch = 0}});
  const auto talker = std::make_shared<Recorder>();
  const auto reader = std::make_shared<Recorder>();
  talker->scheduler = &scheduler;
  scheduler.add(request(5000, 10, 40), talker);
  while (talker->tokens.empty()) ASSERT_TRUE(scheduler.step());
  scheduler.add(request(5001, 3'500, 1), reader);
  while (!talker->has_ended()) ASSERT_TRUE(scheduler.step());
  EXPECT_FALSE(reader->has_ended());
  EXPECT_GT(reader->prompt_done, 0U) << "both go on";
  for (std::size_t i = 1; i < talker->steps.size(); ++i) {
    EXPECT_EQ(talker->steps[i], talker->steps[i - 1] + 1) << "a token in every step";
  }
  while (scheduler.step()) {
  }
  EXPECT_EQ(reader->tokens.size(), 1U);
}

TEST(SchedulerTest, ShortPromptsOvertakeALongOne) {
  const auto engine = open_engine();
  Scheduler scheduler(*engine, {.pacer = {.most_prompt_tokens = 128, .most_stretch = 0}});
  const auto longer = std::make_shared<Recorder>();
  const auto shorter = std::make_shared<Recorder>();
  scheduler.add(request(5100, 3'000, 1), longer);
  scheduler.step();
  scheduler.add(request(5101, 60, 1), shorter);
  for (int step = 0; step < 3; ++step) scheduler.step();
  EXPECT_TRUE(shorter->has_ended());
  EXPECT_FALSE(longer->has_ended());
}

TEST(SchedulerTest, CancelledCompletionsLeaveInEveryStage) {
  const auto engine = open_engine();
  Scheduler scheduler(*engine,
                      {.max_running = 2, .pacer = {.most_prompt_tokens = 64, .most_stretch = 0}});
  const auto generating = std::make_shared<Recorder>();
  const auto reading = std::make_shared<Recorder>();
  const auto waiting = std::make_shared<Recorder>();
  const auto staying = std::make_shared<Recorder>();
  const Scheduler::Id first = scheduler.add(request(6000, 10, 500), generating);
  while (generating->tokens.empty()) scheduler.step();
  const GenerationRequest long_one = request(6001, 1'000, 5);
  const Scheduler::Id second = scheduler.add(long_one, reading);
  const Scheduler::Id third = scheduler.add(request(6002, 10, 5), waiting);
  for (int step = 0; step < 6; ++step) scheduler.step();
  ASSERT_GT(reading->prompt_done, 256U);
  ASSERT_EQ(scheduler.waiting(), 1U);
  scheduler.add(request(6003, 10, 5), staying);
  for (const Scheduler::Id id : {first, second, third}) scheduler.cancel(id);
  scheduler.cancel(999);
  scheduler.step();
  for (const auto& recorder : {generating, reading, waiting}) {
    EXPECT_EQ(recorder->end.reason, EndReason::kCancelled);
  }
  while (scheduler.step()) {
  }
  EXPECT_EQ(staying->tokens, alone(request(6003, 10, 5)));
  // What was read of the long prompt is there for the next try.
  const auto again = std::make_shared<Recorder>();
  scheduler.add(long_one, again);
  scheduler.step();
  EXPECT_GE(again->first_use.hit_tokens, 256U);
}

TEST(SchedulerTest, APausedCompletionWaitsAndGoesOnUnchanged) {
  const auto engine = open_engine();
  Scheduler scheduler(*engine, {});
  Crowd crowd;
  for (std::uint32_t i = 0; i < 2; ++i) {
    crowd.requests.push_back(request(7000 + i, 50, 20));
    crowd.recorders.push_back(std::make_shared<Recorder>());
  }
  const Scheduler::Id first = scheduler.add(crowd.requests[0], crowd.recorders[0]);
  scheduler.add(crowd.requests[1], crowd.recorders[1]);
  while (crowd.recorders[0]->tokens.size() < 4) ASSERT_TRUE(scheduler.step());
  scheduler.set_pace(first, Scheduler::Pace::kPause);
  EXPECT_EQ(scheduler.paused(), 1U);
  while (scheduler.step()) {
  }
  EXPECT_TRUE(crowd.recorders[1]->has_ended());
  EXPECT_EQ(crowd.recorders[0]->tokens.size(), 4U);
  scheduler.set_pace(first, Scheduler::Pace::kRun);
  while (scheduler.step()) {
  }
  crowd.expect_as_alone();
}

TEST(SchedulerTest, EndsAreToldApart) {
  const auto engine = open_engine();
  Scheduler scheduler(*engine, {});
  GenerationRequest wanted = request(8000, 30, 10);
  const std::vector<TokenId> tokens = alone(wanted);
  const auto by_token = std::make_shared<Recorder>();
  const auto by_client = std::make_shared<Recorder>();
  const auto by_least = std::make_shared<Recorder>();
  scheduler.add(wanted, by_client);
  by_client->enough = 3;
  wanted.end_tokens = {tokens[4]};
  scheduler.add(wanted, by_token);
  wanted.min_tokens = 8;
  scheduler.add(wanted, by_least);
  while (scheduler.step()) {
  }
  EXPECT_EQ(by_client->end.reason, EndReason::kEnough);
  EXPECT_EQ(by_client->tokens.size(), 3U);
  EXPECT_EQ(by_token->end.reason, EndReason::kEndToken);
  EXPECT_EQ(by_token->end.end_token, tokens[4]);
  EXPECT_EQ(by_token->tokens, std::vector<TokenId>(tokens.begin(), tokens.begin() + 4));
  EXPECT_GE(by_least->tokens.size(), 8U);
  for (std::size_t i = 0; i < 8; ++i) EXPECT_NE(by_least->tokens[i], tokens[4]);
}

TEST(SchedulerTest, BadRequestsFailAlone) {
  const auto engine = open_engine();
  Scheduler scheduler(*engine, {});
  const auto sound = std::make_shared<Recorder>();
  const auto unknown = std::make_shared<Recorder>();
  const auto hot = std::make_shared<Recorder>();
  GenerationRequest wrong_id = request(9000, 10, 5);
  wrong_id.prompt[3] = 1'000'000;
  GenerationRequest wrong_top_p = request(9001, 10, 5);
  wrong_top_p.sampling.top_p = 2;
  scheduler.add(wrong_id, unknown);
  scheduler.add(wrong_top_p, hot);
  scheduler.add(request(9002, 10, 5), sound);
  while (scheduler.step()) {
  }
  EXPECT_EQ(unknown->end.error.code, ErrorCode::kBadRequest);
  EXPECT_EQ(hot->end.error.code, ErrorCode::kBadRequest);
  EXPECT_EQ(sound->tokens, alone(request(9002, 10, 5)));
}

TEST(SchedulerTest, EverybodyIsToldWhenItGoes) {
  const auto engine = open_engine();
  const auto running = std::make_shared<Recorder>();
  const auto waiting = std::make_shared<Recorder>();
  {
    Scheduler scheduler(*engine, {.max_running = 1});
    scheduler.add(request(9100, 10, 50), running);
    scheduler.add(request(9101, 10, 50), waiting);
    scheduler.step();
  }
  EXPECT_EQ(running->end.reason, EndReason::kCancelled);
  EXPECT_EQ(waiting->end.reason, EndReason::kCancelled);
}

TEST(SchedulerTest, LogProbabilitiesAreThoseOfTheModel) {
  const std::vector<float> logits = {0.5f, -1.0f, 2.0f, NAN, 2.0f, -HUGE_VALF};
  const GeneratedToken token = with_logprobs(logits, 1, 3);
  double sum = 0;
  for (const float logit : {0.5f, -1.0f, 2.0f, 2.0f}) sum += std::exp(static_cast<double>(logit));
  EXPECT_NEAR(token.logprob, -1.0 - std::log(sum), 1e-12);
  ASSERT_EQ(token.top.size(), 3U);
  EXPECT_EQ(token.top[0].token, 2);
  EXPECT_EQ(token.top[1].token, 4);
  EXPECT_EQ(token.top[2].token, 0);
  EXPECT_EQ(with_logprobs(logits, 5, 0).logprob, -HUGE_VAL);
  EXPECT_EQ(with_logprobs(logits, 0, 99).top.size(), logits.size());
}

TEST(StepPacerTest, PromptsTakeWhatTheOthersCanSpare) {
  StepPacer pacer({.most_prompt_tokens = 512, .most_stretch = 4});
  EXPECT_EQ(pacer.prompt_tokens(0), 512U) << "nobody waits";
  for (int i = 0; i < 50; ++i) pacer.record(10, 0, 0.010);
  for (int i = 0; i < 50; ++i) pacer.record(10, 20, 0.030);
  // A token of a prompt costs a millisecond, a step without one ten: three more steps' worth.
  EXPECT_NEAR(static_cast<double>(pacer.prompt_tokens(10)), 30.0, 1.0);
  EXPECT_NEAR(static_cast<double>(pacer.prompt_tokens(100)), 300.0, 5.0);
  EXPECT_EQ(pacer.prompt_tokens(500), 512U);
  EXPECT_EQ(pacer.prompt_tokens(1'000), 1'000U) << "as many as generate";
  EXPECT_EQ(StepPacer({.most_prompt_tokens = 77, .most_stretch = 0}).prompt_tokens(3), 77U);
}

}  // namespace
}  // namespace locket::engine
