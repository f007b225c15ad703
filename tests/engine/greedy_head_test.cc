// Greedy decoding with a copy of the head says what it says without one, and takes the shorter way
// exactly where nothing else of the logits is wanted.
#include <algorithm>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <vector>

#include "engine/scheduler.h"
#include "engine/weight_plan.h"
#include "tests/support/tiny_models.h"

namespace locket::engine {
namespace {

using test_support::random_ids;

constexpr std::size_t kVocabulary = 480;
constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

std::unique_ptr<Engine> open_engine(HeadCopy head_copy) {
  const auto& model = test_support::tiny_model("micro", model::NumericsMode::kReference);
  std::vector<std::int32_t> map(static_cast<std::size_t>(model.config().vocabulary_size));
  constexpr std::size_t kClasses = 400;  // engram_compressed_vocab_size
  for (std::size_t i = 0; i < map.size(); ++i) map[i] = static_cast<std::int32_t>(i % kClasses);
  auto engine = Engine::open(test_support::tiny_checkpoint("micro"), map,
                             {.threads = 2,
                              .pool_budget_bytes = std::uint64_t{64} << 20,
                              .head_copy = head_copy,
                              .memory = {.keeps = MemoryOptions::Keeps::kNothing}});
  EXPECT_TRUE(engine);
  return std::move(*engine);
}

TokenId largest_of(std::span<const float> logits) {
  return static_cast<TokenId>(std::ranges::max_element(logits) - logits.begin());
}

TEST(GreedyHeadTest, ASessionGivesTheTokenOfTheLargestLogit) {
  const auto engine = open_engine(HeadCopy::kAlways);
  Session plain = engine->make_session();
  Session greedy = engine->make_session();
  greedy.set_head_wish(HeadWish::kLargest);
  const auto prompt = random_ids(1, 50, kVocabulary);
  ASSERT_TRUE(plain.prefill(prompt));
  ASSERT_TRUE(greedy.prefill(prompt));
  for (int step = 0; step < 40; ++step) {
    ASSERT_TRUE(greedy.largest_logit().has_value());
    EXPECT_TRUE(greedy.logits().empty());
    ASSERT_FALSE(plain.largest_logit().has_value());
    const TokenId token = largest_of(plain.logits());
    EXPECT_EQ(greedy.largest_logit()->token, token);
    EXPECT_EQ(greedy.largest_logit()->broken_count, 0U);
    ASSERT_TRUE(plain.append(token));
    ASSERT_TRUE(greedy.append(token));
  }
  greedy.set_head_wish(HeadWish::kLogits);
  ASSERT_TRUE(plain.append(7));
  ASSERT_TRUE(greedy.append(7));
  EXPECT_FALSE(greedy.largest_logit().has_value());
  EXPECT_TRUE(std::ranges::equal(greedy.logits(), plain.logits()));
}

TEST(GreedyHeadTest, ThereAreLogitsWithoutACopyOrWithManyRowsOrIfOneWantsThem) {
  const auto with_copy = open_engine(HeadCopy::kAlways);
  const auto without = open_engine(HeadCopy::kNever);
  const auto gives_largest = [](Engine& engine, std::size_t count, std::size_t wanting) {
    std::vector<std::unique_ptr<Session>> sessions;
    std::vector<Session*> pointers;
    for (std::size_t i = 0; i < count; ++i) {
      sessions.push_back(std::make_unique<Session>(engine.model(), engine.pool(), engine.workers(),
                                                   SessionOptions{}));
      pointers.push_back(sessions.back().get());
      if (i >= wanting) pointers.back()->set_head_wish(HeadWish::kLargest);
      EXPECT_TRUE(pointers.back()->begin(random_ids(static_cast<std::uint32_t>(i), 5, 100)));
      pointers.back()->stage_slice(5);
    }
    model::ForwardContext context = engine.model().make_context(engine.workers());
    for (const Status& status : run_staged(engine.model(), context, pointers)) EXPECT_TRUE(status);
    for (const Session* session : pointers) {
      EXPECT_NE(session->largest_logit().has_value(), !session->logits().empty());
    }
    return pointers.back()->largest_logit().has_value();
  };
  EXPECT_TRUE(gives_largest(*with_copy, 1, 0));
  EXPECT_TRUE(gives_largest(*with_copy, 8, 0));
  EXPECT_FALSE(gives_largest(*with_copy, 9, 0));
  EXPECT_FALSE(gives_largest(*with_copy, 2, 1));
  EXPECT_FALSE(gives_largest(*without, 1, 0));
}

// A client whose tokens are free, or held to a few.
class Listener : public GenerationClient {
 public:
  explicit Listener(std::vector<std::uint64_t> allowed) : allowed_(std::move(allowed)) {}

  std::span<const std::uint64_t> allowed_tokens() override { return allowed_; }
  bool constrains() const override { return !allowed_.empty(); }
  Verdict on_token(const GeneratedToken& token) override {
    tokens.push_back(token.token);
    logprobs.push_back(token.logprob);
    return Verdict::kGoOn;
  }
  void on_end(const GenerationEnd& how) override { end = how; }

  std::vector<TokenId> tokens;
  std::vector<double> logprobs;
  GenerationEnd end;

 private:
  std::vector<std::uint64_t> allowed_;
};

struct Case {
  GenerationRequest request;
  std::vector<std::uint64_t> allowed = {};
};

// What turns a greedy request into one that needs its logits, one at a time.
std::vector<Case> cases() {
  GenerationRequest greedy;
  greedy.sampling.temperature = 0.0;
  greedy.max_tokens = 30;
  std::vector<Case> all(9, Case{.request = greedy});
  all[1].request.sampling.temperature = 0.8;
  all[2].request.wants_logprobs = true;
  all[3].request.sampling.logit_bias = {{.token = 3, .bias = 50.0}};
  all[4].request.sampling.frequency_penalty = 2.0;
  all[5].request.sampling.presence_penalty = 2.0;
  all[6].request.sampling.repetition_penalty = 1.5;
  all[7].allowed.assign((kVocabulary + 63) / 64, 0x0F0F);
  all[8].request.sampling.top_k = -1;  // an error
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].request.prompt = random_ids(static_cast<std::uint32_t>(i), 20 + i, kVocabulary);
  }
  return all;
}

std::vector<std::shared_ptr<Listener>> run(HeadCopy head_copy, const std::vector<Case>& all,
                                           std::size_t at_once) {
  const auto engine = open_engine(head_copy);
  Scheduler scheduler(*engine, {.max_running = at_once});
  std::vector<std::shared_ptr<Listener>> listeners;
  for (const Case& one : all) {
    listeners.push_back(std::make_shared<Listener>(one.allowed));
    scheduler.add(one.request, listeners.back());
  }
  while (scheduler.step()) {
  }
  return listeners;
}

void expect_same(const std::vector<Case>& all, std::size_t at_once) {
  const auto expected = run(HeadCopy::kNever, all, at_once);
  const auto actual = run(HeadCopy::kAlways, all, at_once);
  for (std::size_t i = 0; i < all.size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_EQ(actual[i]->tokens, expected[i]->tokens);
    EXPECT_EQ(actual[i]->logprobs, expected[i]->logprobs);
    EXPECT_EQ(actual[i]->end.reason, expected[i]->end.reason);
    EXPECT_EQ(actual[i]->end.error.message, expected[i]->end.error.message);
  }
}

TEST(GreedyHeadTest, CompletionsSayTheSameWithACopy) {
  for (const std::size_t at_once : {1, 16}) expect_same(cases(), at_once);
}

TEST(GreedyHeadTest, EndTokensDoNotComeTooEarly) {
  std::vector<Case> all = cases();
  all.resize(1);
  const std::vector<TokenId> said = run(HeadCopy::kNever, all, 1).front()->tokens;
  ASSERT_GE(said.size(), 10U);
  all[0].request.end_tokens = {said[4]};
  for (const std::size_t least : {0, 4, 5, 9, 30}) {
    all[0].request.min_tokens = least;
    expect_same(all, 1);
  }
}

TEST(GreedyHeadTest, TheCopyIsPartOfThePlanWhereItPays) {
  model::WeightBytes bytes;
  bytes.dense = kGiB;
  bytes.experts = 10;
  bytes.expert = kGiB;
  bytes.expert_read = kGiB;
  bytes.token_experts = 1;
  bytes.can_stream = true;
  bytes.work_per_row = 1024;
  bytes.head_copy = kGiB / 2;
  const auto plan = [&](std::uint64_t available, HeadCopy wish) {
    auto made =
        plan_weights(bytes, cache::KvLayout{}, {.available_bytes = available, .head_copy = wish});
    EXPECT_TRUE(made);
    return *made;
  };
  const WeightPlan with_copy = plan(20 * kGiB, HeadCopy::kWherePays);
  const WeightPlan without = plan(20 * kGiB, HeadCopy::kNever);
  EXPECT_EQ(with_copy.head_copy_bytes, bytes.head_copy);
  EXPECT_EQ(without.head_copy_bytes, 0U);
  EXPECT_EQ(with_copy.peak_bytes() - with_copy.pool_bytes,
            without.peak_bytes() - without.pool_bytes + bytes.head_copy);
  const std::vector<std::string> lines = describe_plan(with_copy, {});
  EXPECT_TRUE(std::ranges::any_of(lines, [](const std::string& line) {
    return line.find("copy of the head") != std::string::npos;
  }));
  // Too little room for it, but for everything else; and experts that stay on disk.
  const WeightPlan tight = plan(11 * kGiB + kGiB / 4, HeadCopy::kWherePays);
  EXPECT_FALSE(tight.streams);
  EXPECT_EQ(tight.head_copy_bytes, 0U);
  const WeightPlan streamed = plan(6 * kGiB, HeadCopy::kAlways);
  EXPECT_TRUE(streamed.streams);
  EXPECT_EQ(streamed.head_copy_bytes, 0U);
  bytes.head_copy = 1 << 20;
  EXPECT_EQ(plan(20 * kGiB, HeadCopy::kWherePays).head_copy_bytes, 0U);
  EXPECT_EQ(plan(20 * kGiB, HeadCopy::kAlways).head_copy_bytes, bytes.head_copy);
}

}  // namespace
}  // namespace locket::engine
