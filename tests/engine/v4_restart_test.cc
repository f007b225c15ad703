// Where a V4 sequence may begin again: windows and rows that overlap reach back over what is
// stored, so that a start without rings must be far enough before the first row that is missing,
// and a start from kept rings needs the halves of one block. Every case gives the bits of a run
// that had computed everything.
#include <algorithm>
#include <filesystem>
#include <gtest/gtest.h>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "cache/prefix_memory.h"
#include "cache/replay_plan.h"
#include "engine/session.h"
#include "tests/support/lineage_oracle.h"
#include "tests/support/tiny_models.h"

namespace locket::engine {
namespace {

// A sequence that is run by hand, slice by slice.
class Sequence {
 public:
  explicit Sequence(const model::LanguageModel& model)
      : model_(model),
        pool_(model.layout().page_bytes(), std::uint64_t{64} << 20),
        memory_(model.layout(), pool_),
        state_(model.make_state()) {}

  // How windows and rows are cut: StepPart.
  struct Cut {
    std::int64_t segment_start = 0;
    std::int64_t write_from = 0;
  };

  // Positions [first, last) in slices of 1 to `longest`; the logits of the last one.
  std::vector<float> run(std::span<const TokenId> tokens, std::int64_t first, std::int64_t last,
                         const Cut& cut, std::int64_t longest) {
    EXPECT_TRUE(memory_.reserve_tokens(last));
    const cache::KvView view = memory_.view();
    model::ForwardContext context = model_.make_context(workers_);
    model::SequenceState* const states[] = {&state_};
    std::vector<float> logits;
    while (first < last) {
      const std::int64_t end =
          std::min(last, first + 1 + static_cast<std::int64_t>(random_() % longest));
      model::Step step = model_.make_step({{.memory = &view,
                                            .tokens = tokens.first(static_cast<std::size_t>(end)),
                                            .first_position = first,
                                            .count = static_cast<std::size_t>(end - first),
                                            .segment_start = cut.segment_start,
                                            .write_from = cut.write_from}});
      const model::ResidualRows rows = model_.encode(context, step, states);
      EXPECT_TRUE(step.parts.front().status);
      const std::size_t newest[] = {rows.count() - 1};
      const tensor::FloatMatrix of_newest = model_.logits(context, pick_rows(rows, newest));
      logits.assign(of_newest.row(0).begin(), of_newest.row(0).end());
      first = end;
    }
    return logits;
  }

  // Rows of the first `tokens` tokens, and nothing else.
  void copy_rows(Sequence& other, std::int64_t tokens) {
    EXPECT_TRUE(memory_.reserve_tokens(tokens));
    const cache::KvView from = other.memory_.view();
    const cache::KvView to = memory_.view();
    for (std::size_t stream = 0; stream < model_.layout().streams.size(); ++stream) {
      const std::int64_t count = tokens / model_.layout().streams[stream].tokens_per_row;
      for (std::int64_t row = 0; row < count; ++row) {
        std::ranges::copy(from.row(stream, row), to.row(stream, row).begin());
      }
    }
  }

  std::vector<std::byte> kept_rings() {
    return {memory_.kept_rings().begin(), memory_.kept_rings().end()};
  }
  void restore(const std::vector<std::byte>& rings) {
    std::ranges::copy(rings, memory_.kept_rings().begin());
  }

  bool has_rows_of(Sequence& other, std::int64_t tokens) {
    const cache::KvView mine = memory_.view();
    const cache::KvView theirs = other.memory_.view();
    for (std::size_t stream = 0; stream < model_.layout().streams.size(); ++stream) {
      const std::int64_t count = tokens / model_.layout().streams[stream].tokens_per_row;
      for (std::int64_t row = 0; row < count; ++row) {
        if (!std::ranges::equal(mine.row(stream, row), theirs.row(stream, row))) return false;
      }
    }
    return true;
  }

 private:
  const model::LanguageModel& model_;
  cache::PagePool pool_;
  cache::SequenceMemory memory_;
  model::SequenceState state_;
  WorkerPool workers_{2};
  std::mt19937 random_{5};
};

class V4RestartTest : public ::testing::TestWithParam<std::string> {
 protected:
  static constexpr std::int64_t kTokens = 1350;
  static constexpr std::int64_t kLongest = 90;

  const model::LanguageModel& model() {
    return test_support::LineageModel::get(GetParam(), model::NumericsMode::kWide).model();
  }
  std::vector<TokenId> tokens(std::uint32_t seed, std::size_t count) {
    return test_support::random_ids(seed, count, model().shape().vocabulary_size);
  }
};

TEST_P(V4RestartTest, AStartWithoutRingsIsExactBehindItsReach) {
  const std::vector<TokenId> text = tokens(1, kTokens);
  Sequence whole(model());
  const std::vector<float> expected = whole.run(text, 0, kTokens, {}, 1'000);
  for (const std::int64_t stored : {1'152, 1'280}) {
    const cache::ReplayPlan plan = cache::make_replay_plan(
        {.prompt_tokens = kTokens, .stored_tokens = stored, .decoder_tokens = 1},
        {.window = model().shape().window,
         .encoder_layers = model().shape().boundary,
         .group = model().layout().largest_tokens_per_row()});
    ASSERT_GT(plan.start, 0) << "the text is too short to say anything";
    Sequence resumed(model());
    resumed.copy_rows(whole, stored);
    EXPECT_EQ(resumed.run(text, plan.start, kTokens,
                          {.segment_start = plan.window_start(), .write_from = plan.write_from},
                          kLongest),
              expected);
    EXPECT_TRUE(resumed.has_rows_of(whole, kTokens));
  }
}

TEST_P(V4RestartTest, AStartFromKeptRingsNeedsNothingElse) {
  const std::vector<TokenId> text = tokens(2, 700);
  Sequence whole(model());
  whole.run(text, 0, 384, {}, kLongest);
  const std::vector<std::byte> rings = whole.kept_rings();
  const std::vector<float> expected = whole.run(text, 384, 700, {}, kLongest);
  for (const std::int64_t stored : {384, 512, 640}) {
    Sequence resumed(model());
    resumed.copy_rows(whole, stored);
    resumed.restore(rings);
    EXPECT_EQ(resumed.run(text, 384, 700, {.write_from = stored}, kLongest), expected);
    EXPECT_TRUE(resumed.has_rows_of(whole, 700));
    EXPECT_EQ(resumed.kept_rings(), whole.kept_rings());
  }
}

// Rings that are kept on the way, before the first row that is missing.
TEST_P(V4RestartTest, RingsOfAReplayAreThoseOfTheFirstRun) {
  const std::vector<TokenId> text = tokens(3, 640);
  Sequence whole(model());
  whole.run(text, 0, 256, {}, kLongest);
  const std::vector<std::byte> first = whole.kept_rings();
  whole.run(text, 256, 384, {}, kLongest);
  const std::vector<std::byte> second = whole.kept_rings();
  whole.run(text, 384, 640, {}, kLongest);
  Sequence resumed(model());
  resumed.copy_rows(whole, 512);
  resumed.restore(first);
  resumed.run(text, 256, 384, {.write_from = 512}, kLongest);
  EXPECT_EQ(resumed.kept_rings(), second);
}

TEST_P(V4RestartTest, ATextGoesOnFromDiskInAnotherProcess) {
  const std::filesystem::path folder =
      std::filesystem::path(::testing::TempDir()) / ("locket_v4_restart_" + GetParam());
  std::filesystem::remove_all(folder);
  std::vector<TokenId> text = tokens(4, 900);
  WorkerPool workers(2);
  cache::PagePool pool(model().layout().page_bytes(), std::uint64_t{64} << 20);
  for (int process = 0; process < 3; ++process) {
    auto disk = cache::DiskStore::open({.directory = folder});
    ASSERT_TRUE(disk) << disk.error().message;
    cache::PrefixMemoryOptions options;
    options.identity.numerics_mode = model().numerics().memory_name();
    options.restart_tokens = model().shape().restart_tokens();
    options.disk = disk->get();
    cache::PrefixMemory memory(model().layout(), pool, options);
    Session warm(model(), pool, workers, {.memory = &memory});
    ASSERT_TRUE(warm.prefill(text));
    Session cold(model(), pool, workers, {});
    ASSERT_TRUE(cold.prefill(text));
    for (TokenId token = 20; token < 26; ++token) {
      EXPECT_TRUE(std::ranges::equal(warm.logits(), cold.logits())) << process << " " << token;
      ASSERT_TRUE(warm.append(token) && cold.append(token));
    }
    EXPECT_EQ(warm.memory_use().disk_tokens, process == 0 ? 0U : 896U + 128U * (process - 1));
    EXPECT_LE(warm.memory_use().replayed_tokens, 256U);
    warm.end_turn();
    memory.flush();
    const std::vector<TokenId> more = tokens(5 + static_cast<std::uint32_t>(process), 128);
    text.insert(text.end(), more.begin(), more.end());
  }
  std::filesystem::remove_all(folder);
}

INSTANTIATE_TEST_SUITE_P(Generations, V4RestartTest, ::testing::Values("v4flash", "v4pro"),
                         [](const auto& instance) { return instance.param; });

}  // namespace
}  // namespace locket::engine
