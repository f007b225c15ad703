// Sessions that run together get the bits of sessions alone: whatever each of them stages, whoever
// joins and leaves, and also when one of them fails.
#include <gtest/gtest.h>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "engine/session.h"
#include "tests/support/sanitizer.h"
#include "tests/support/tiny_models.h"

namespace locket::engine {
namespace {

using Case = std::tuple<std::string, model::NumericsMode, std::size_t>;

class StagedRunTest : public ::testing::TestWithParam<Case> {
 protected:
  StagedRunTest()
      : model_(test_support::tiny_model(std::get<0>(GetParam()), std::get<1>(GetParam()))),
        workers_(std::get<2>(GetParam())),
        pool_(model_.memory().layout.page_bytes(), std::uint64_t{256} << 20),
        context_(model_.make_context(workers_)) {}

  std::vector<TokenId> ids(std::uint32_t seed, std::size_t count) const {
    return test_support::random_ids(seed, count, model_.config().vocabulary_size);
  }

  // One sequence: a prompt in slices, then tokens one by one, with the logits after each of them.
  struct Sequence {
    std::vector<TokenId> prompt;
    std::vector<TokenId> more;
    std::size_t joins_at = 0;  // the step in which it begins
    std::unique_ptr<Session> session = {};
    std::size_t fed = 0;  // of more
    std::vector<std::vector<float>> logits = {};

    bool is_done() const {
      return session != nullptr && !session->is_reading() && fed == more.size();
    }
  };

  std::vector<std::vector<float>> alone(const Sequence& sequence) {
    Session session(model_, pool_, workers_, {});
    EXPECT_TRUE(session.prefill(sequence.prompt));
    std::vector<std::vector<float>> logits;
    const auto keep = [&] {
      logits.emplace_back(session.logits().begin(), session.logits().end());
    };
    keep();
    for (const TokenId token : sequence.more) {
      EXPECT_TRUE(session.append(token));
      keep();
    }
    return logits;
  }

  // Stages something random for everybody who is there, runs it, and keeps logits.
  void step(std::vector<Sequence>& sequences, std::size_t number, std::mt19937& random) {
    std::vector<Session*> sessions;
    std::vector<Sequence*> owners;
    for (Sequence& sequence : sequences) {
      if (sequence.joins_at > number || sequence.is_done()) continue;
      if (sequence.session == nullptr) {
        sequence.session = std::make_unique<Session>(model_, pool_, workers_, SessionOptions{});
        ASSERT_TRUE(sequence.session->begin(sequence.prompt));
      }
      if (random() % 5 == 0) continue;
      if (sequence.session->is_reading()) {
        sequence.session->stage_slice(1 + random() % 40);
      } else {
        ASSERT_TRUE(sequence.session->stage_token(sequence.more[sequence.fed++]));
      }
      sessions.push_back(sequence.session.get());
      owners.push_back(&sequence);
    }
    if (sessions.empty()) return;
    for (const Status& status : run_staged(model_, context_, sessions)) ASSERT_TRUE(status);
    for (Sequence* owner : owners) {
      if (owner->session->is_reading()) continue;
      const auto logits = owner->session->logits();
      owner->logits.emplace_back(logits.begin(), logits.end());
    }
  }

  const model::V41Model& model_;
  WorkerPool workers_;
  cache::PagePool pool_;
  model::ForwardContext context_;
};

TEST_P(StagedRunTest, ManySessionsGetTheBitsOfEachAlone) {
  std::mt19937 random(7);
  std::vector<Sequence> sequences;
  const std::size_t longest = test_support::runs_with_sanitizer() ? 60 : 180;
  for (std::uint32_t i = 0; i < 9; ++i) {
    sequences.push_back({.prompt = ids(100 + i, 1 + random() % longest),
                         .more = ids(200 + i, random() % 20),
                         .joins_at = random() % 12});
  }
  for (std::size_t number = 0; number < 400; ++number) step(sequences, number, random);
  for (const Sequence& sequence : sequences) {
    SCOPED_TRACE(sequence.prompt.size());
    ASSERT_TRUE(sequence.is_done());
    EXPECT_EQ(sequence.logits, alone(sequence));
  }
}

// Short prompts: the windows of the decoder's segments lie inside the first slices.
TEST_P(StagedRunTest, PromptsOfOneToFiveTokensTogether) {
  std::mt19937 random(8);
  std::vector<Sequence> sequences;
  for (std::uint32_t i = 1; i <= 5; ++i) {
    sequences.push_back({.prompt = ids(300 + i, i), .more = ids(400 + i, 9)});
  }
  for (std::size_t number = 0; number < 60; ++number) step(sequences, number, random);
  for (const Sequence& sequence : sequences) {
    ASSERT_TRUE(sequence.is_done());
    EXPECT_EQ(sequence.logits, alone(sequence));
  }
}

// Rows that never come: the session that waits for them fails, and nobody else notices.
class BrokenGate final : public cache::RowGate {
 public:
  Status wait() override { return fail(ErrorCode::kBadMemory, "these rows are lost"); }
  bool is_open() const override { return true; }
};

TEST_P(StagedRunTest, ASessionThatFailsLeavesTheOthersAlone) {
  Sequence sound = {.prompt = ids(1, 70), .more = ids(2, 5)};
  Sequence broken = {.prompt = ids(3, 70), .more = {}};
  sound.session = std::make_unique<Session>(model_, pool_, workers_, SessionOptions{});
  broken.session = std::make_unique<Session>(model_, pool_, workers_, SessionOptions{});
  ASSERT_TRUE(sound.session->begin(sound.prompt));
  ASSERT_TRUE(broken.session->begin(broken.prompt));
  BrokenGate gate;
  broken.session->memory().set_row_gate(&gate);
  for (int slice = 0; slice < 2; ++slice) {
    sound.session->stage_slice(35);
    broken.session->stage_slice(35);
    Session* const sessions[] = {broken.session.get(), sound.session.get()};
    const std::vector<Status> statuses = run_staged(model_, context_, sessions);
    ASSERT_FALSE(statuses[0]);
    EXPECT_EQ(statuses[0].error().code, ErrorCode::kBadMemory);
    EXPECT_EQ(broken.session->tokens().size(), 0U);
    ASSERT_TRUE(statuses[1]);
  }
  const std::vector<std::vector<float>> expected = alone(sound);
  EXPECT_TRUE(std::ranges::equal(sound.session->logits(), expected.front()));
  for (std::size_t i = 0; i < sound.more.size(); ++i) {
    ASSERT_TRUE(sound.session->append(sound.more[i]));
    EXPECT_TRUE(std::ranges::equal(sound.session->logits(), expected[i + 1]));
  }
}

INSTANTIATE_TEST_SUITE_P(TinyCheckpoints, StagedRunTest,
                         ::testing::Values(Case{"micro", model::NumericsMode::kReference, 2},
                                           Case{"odd", model::NumericsMode::kReference, 1},
                                           Case{"odd", model::NumericsMode::kWide, 3},
                                           Case{"micro", model::NumericsMode::kPlain, 1}),
                         [](const auto& test_case) {
                           return std::get<0>(test_case.param) + "_" +
                                  std::string(
                                      model::numerics_mode_name(std::get<1>(test_case.param))) +
                                  "_" + std::to_string(std::get<2>(test_case.param));
                         });

}  // namespace
}  // namespace locket::engine
