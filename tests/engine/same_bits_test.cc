// The promise of the program: the logits and the memory of a sequence are the same bits however it
// is computed. The tiny checkpoints, with lengths around every edge that their configs have.
#include <algorithm>
#include <gtest/gtest.h>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "engine/replay.h"
#include "kernels/kernel_table.h"
#include "tests/support/tiny_models.h"

namespace locket::engine {
namespace {

using model::NumericsMode;
using test_support::random_ids;
using test_support::run_sequence;
using test_support::RunBits;
using test_support::RunPlan;
using test_support::same_logits;
using test_support::same_rings;
using test_support::same_rows;

constexpr std::uint32_t kSeed = 20260101;

class SameBitsTest : public ::testing::TestWithParam<std::tuple<std::string, NumericsMode>> {
 protected:
  static const std::string& name() { return std::get<0>(GetParam()); }
  static const model::V41Model& model() {
    return test_support::tiny_model(name(), std::get<1>(GetParam()));
  }
  static const model::V41Config& config() { return model().config(); }
  static std::size_t window() { return static_cast<std::size_t>(config().sliding_window); }
  // Positions that the last one can see through all decoder layers.
  static std::size_t decoder_reach() {
    return static_cast<std::size_t>(
        (config().layer_count - config().boundary) * (config().sliding_window - 1) + 1);
  }

  // The thin checkpoint has the release's window and top-k, and is slow for that.
  static bool is_thin() { return name() == "thin"; }
  static std::size_t long_count() { return is_thin() ? 1'100 : 2'048; }
  static std::size_t medium_count() { return is_thin() ? 262 : 300; }

  static std::vector<TokenId> ids(std::size_t count) {
    return random_ids(kSeed, count, config().vocabulary_size);
  }
  // The run that the others are compared with: the whole prompt at once in one thread. A run over
  // fewer of the same ids must give its beginning.
  static const RunBits& whole_run() {
    static std::map<std::tuple<std::string, NumericsMode>, RunBits> runs;
    RunBits& bits = runs[GetParam()];
    if (bits.logits.empty()) bits = run_sequence(model(), ids(long_count()), {});
    return bits;
  }

  // Lengths around every place where the model begins to do something else.
  static std::set<std::size_t> edge_lengths() {
    std::set<std::int64_t> edges = {1, 2, 3, 4, 5};
    const auto around = [&](std::int64_t edge) {
      for (const std::int64_t length : {edge - 1, edge, edge + 1}) edges.insert(length);
    };
    around(config().sliding_window);
    around(cache::kTokensPerPage);
    around(static_cast<std::int64_t>(decoder_reach()));
    for (const model::LayerRole& role : config().layers) {
      if (role.selects_rows) around(config().index_topk * role.ratio);
      if (role.builds_pool) around(config().pool_blocks * config().pool_block_size * role.ratio);
    }
    std::set<std::size_t> lengths;
    for (const std::int64_t edge : edges) {
      if (edge >= 1 && static_cast<std::size_t>(edge) <= long_count()) {
        lengths.insert(static_cast<std::size_t>(edge));
      }
    }
    return lengths;
  }
};

void expect_same(const RunBits& actual, const RunBits& expected) {
  EXPECT_TRUE(same_logits(actual, expected));
  EXPECT_TRUE(same_rows(actual, expected));
  EXPECT_TRUE(same_rings(actual, expected));
}

TEST_P(SameBitsTest, AnyLengthGivesTheBeginningOfALongerRun) {
  EXPECT_EQ(whole_run().logits.size(), long_count());
  for (const std::size_t length : edge_lengths()) {
    SCOPED_TRACE(length);
    const RunBits bits = run_sequence(model(), ids(length), {});
    EXPECT_EQ(bits.logits.size(), length);
    EXPECT_TRUE(same_logits(bits, whole_run()));
    EXPECT_TRUE(same_rows(bits, whole_run()));
  }
}

TEST_P(SameBitsTest, AnySlicingOfThePrompt) {
  const std::vector<TokenId> prompt = ids(medium_count());
  const RunBits whole = run_sequence(model(), prompt, {});
  EXPECT_TRUE(same_logits(whole, whole_run()));
  for (const std::size_t slice : {1, 2, 7, 64, 127, 128, 129}) {
    SCOPED_TRACE(slice);
    expect_same(run_sequence(model(), prompt, {.slice_tokens = slice}), whole);
  }
}

TEST_P(SameBitsTest, SlicingOfALongPrompt) {
  const RunBits sliced = run_sequence(model(), ids(long_count()), {.slice_tokens = 129});
  expect_same(sliced, whole_run());
}

// The rings wrap, pages fill up and groups complete while tokens come one by one.
TEST_P(SameBitsTest, AppendedTokensEqualAPrompt) {
  const std::size_t extra = is_thin() ? 20 : 40;
  for (const std::size_t prompt : {std::size_t{1}, std::size_t{2}, std::size_t{3}, window() - 1,
                                   window(), window() + 1, std::size_t{127}, std::size_t{128}}) {
    SCOPED_TRACE(prompt);
    const std::vector<TokenId> all = ids(prompt + extra);
    expect_same(run_sequence(model(), all, {.prompt_tokens = prompt}),
                run_sequence(model(), all, {}));
  }
  const std::vector<TokenId> all = ids(medium_count());
  expect_same(run_sequence(model(), all, {.prompt_tokens = 3}), run_sequence(model(), all, {}));
}

TEST_P(SameBitsTest, AnyNumberOfThreads) {
  const std::vector<TokenId> all = ids(window() + 80);
  const RunBits expected = run_sequence(model(), all, {});
  for (const std::size_t threads : {2, 3, 5}) {
    SCOPED_TRACE(threads);
    expect_same(run_sequence(model(), all, {.slice_tokens = 64, .threads = threads}), expected);
    expect_same(run_sequence(model(), all, {.prompt_tokens = all.size() - 9, .threads = threads}),
                expected);
  }
}

TEST_P(SameBitsTest, PagesInAnyOrderWithOldContent) {
  const std::vector<TokenId> all = ids(is_thin() ? 300 : 700);
  const RunBits expected = run_sequence(model(), all, {});
  for (const std::uint32_t seed : {1U, 2U, 3U}) {
    SCOPED_TRACE(seed);
    expect_same(
        run_sequence(model(), all,
                     {.slice_tokens = 100, .prompt_tokens = all.size() - 60, .page_seed = seed}),
        expected);
  }
}

// The reference kernels are slow: their run is short, but passes window, top-k and candidate pool
// of the checkpoints that have small ones.
TEST_P(SameBitsTest, EveryKernelTable) {
  for (const kernels::KernelTable* table : kernels::available_kernels()) {
    SCOPED_TRACE(table->name);
    const bool is_reference = table == &kernels::reference_kernels();
    const std::size_t count = !is_reference ? medium_count() : is_thin() ? 14 : 40;
    const std::vector<TokenId> all = ids(count);
    const std::size_t prompt = count - 4;
    const RunBits bits =
        run_sequence(model(), all, {.slice_tokens = 33, .prompt_tokens = prompt, .kernels = table});
    expect_same(bits, run_sequence(model(), all, {}));
    EXPECT_TRUE(same_logits(bits, whole_run()));
  }
}

// All of it at once, drawn with a fixed seed.
TEST_P(SameBitsTest, RandomRunsOfRandomSequences) {
  std::mt19937 random(kSeed + 1);
  const auto draw = [&](std::size_t least, std::size_t most) {
    return least + random() % (most - least + 1);
  };
  const auto& tables = kernels::available_kernels();
  for (int round = 0; round < (is_thin() ? 2 : 4); ++round) {
    const std::size_t count = draw(1, is_thin() ? 700 : 2'048);
    const std::vector<TokenId> all =
        random_ids(static_cast<std::uint32_t>(random()), count, config().vocabulary_size);
    const RunBits expected = run_sequence(model(), all, {});
    const RunPlan plan = {
        .slice_tokens = draw(1, 400),
        .prompt_tokens = count - draw(0, std::min<std::size_t>(count - 1, 150)),
        .threads = draw(1, 3),
        .kernels = tables[draw(std::min<std::size_t>(1, tables.size() - 1), tables.size() - 1)],
        .page_seed = static_cast<std::uint32_t>(draw(1, 1'000))};
    SCOPED_TRACE(::testing::Message()
                 << "round " << round << ": " << count << " tokens, prompt " << plan.prompt_tokens
                 << ", slices of " << plan.slice_tokens << ", " << plan.threads << " threads, "
                 << plan.kernels->name << ", pages " << plan.page_seed);
    expect_same(run_sequence(model(), all, plan), expected);
  }
}

// Many equal scores: the tie rule may not depend on how many positions are scored together.
TEST_P(SameBitsTest, OneRepeatedId) {
  const std::vector<TokenId> all(is_thin() ? 530 : 200, 17);
  const RunBits expected = run_sequence(model(), all, {});
  for (const std::size_t slice : {1, 63, 64, 65}) {
    if (is_thin() && slice == 1) continue;
    SCOPED_TRACE(slice);
    expect_same(run_sequence(model(), all, {.slice_tokens = slice, .page_seed = 5}), expected);
  }
  expect_same(run_sequence(model(), all, {.prompt_tokens = all.size() - 70}), expected);
}

TEST_P(SameBitsTest, TheFutureChangesNothing) {
  for (const std::size_t count : {2UL, 3UL, window() + 1, 2 * window() + 2, 131UL}) {
    SCOPED_TRACE(count);
    std::vector<TokenId> changed = ids(count);
    changed.back() = (changed.back() + 1) % static_cast<TokenId>(config().vocabulary_size);
    RunBits bits = run_sequence(model(), changed, {});
    EXPECT_FALSE(same_logits(bits, whole_run())) << "the last token must matter";
    bits.logits.pop_back();
    EXPECT_TRUE(same_logits(bits, whole_run()));
  }
}

TEST_P(SameBitsTest, BoundedReplayEqualsFullUpToTheWindow) {
  for (const std::size_t count : {std::size_t{1}, std::size_t{2}, window() - 1, window()}) {
    SCOPED_TRACE(count);
    const RunBits bits = run_sequence(model(), ids(count), {.replay = ReplayMode::kBounded});
    EXPECT_EQ(bits.first_position, 0);
    expect_same(bits, run_sequence(model(), ids(count), {}));
  }
}

TEST_P(SameBitsTest, BoundedReplayDoesNotDependOnTheSlicing) {
  for (const std::size_t prompt : {window() + 1, 2 * window() + 3, medium_count()}) {
    SCOPED_TRACE(prompt);
    const std::vector<TokenId> all = ids(prompt + 5);
    const RunPlan plan = {.replay = ReplayMode::kBounded, .prompt_tokens = prompt};
    const RunBits whole = run_sequence(model(), all, plan);
    EXPECT_EQ(whole.first_position, static_cast<std::int64_t>(prompt - window()));
    EXPECT_TRUE(same_rows(whole, whole_run())) << "rows do not depend on the replay";
    for (const std::size_t slice : {1, 2, 7, 64, 127, 128, 129}) {
      SCOPED_TRACE(slice);
      RunPlan sliced = plan;
      sliced.slice_tokens = slice;
      sliced.threads = 1 + slice % 3;
      sliced.page_seed = static_cast<std::uint32_t>(slice);
      expect_same(run_sequence(model(), all, sliced), whole);
    }
  }
}

// A full run where bounded and exact really cut something: the last position of the prompt and
// those after it see everything that they see in a full run.
TEST_P(SameBitsTest, ExactReplayEqualsFull) {
  const std::size_t reach = decoder_reach();
  for (const std::size_t prompt : {window() + 1, reach, reach + 1, reach + 40}) {
    SCOPED_TRACE(prompt);
    const std::vector<TokenId> all = ids(prompt + 3);
    RunBits bits = run_sequence(
        model(), all, {.replay = ReplayMode::kExact, .slice_tokens = 50, .prompt_tokens = prompt});
    EXPECT_EQ(bits.first_position, static_cast<std::int64_t>(prompt - std::min(prompt, reach)));
    if (prompt <= reach) {
      expect_same(bits, run_sequence(model(), all, {}));
      continue;
    }
    const auto unexact = static_cast<std::ptrdiff_t>(reach - 1);
    bits.logits.erase(bits.logits.begin(), bits.logits.begin() + unexact);
    bits.first_position += unexact;
    EXPECT_EQ(bits.logits.size(), 4U);
    EXPECT_TRUE(same_logits(bits, whole_run()));
    EXPECT_TRUE(same_rows(bits, whole_run()));
  }
}

TEST_P(SameBitsTest, BoundedReplayIsNotFullBeyondTheWindow) {
  const std::size_t count = decoder_reach();
  RunBits bits = run_sequence(model(), ids(count), {.replay = ReplayMode::kBounded});
  EXPECT_EQ(bits.logits.size(), window());
  bits.logits.erase(bits.logits.begin(), bits.logits.end() - 1);
  bits.first_position = static_cast<std::int64_t>(count) - 1;
  EXPECT_FALSE(same_logits(bits, whole_run()));
}

std::string case_name(const ::testing::TestParamInfo<std::tuple<std::string, NumericsMode>>& info) {
  return std::get<0>(info.param) + "_" +
         std::string(model::numerics_mode_name(std::get<1>(info.param)));
}

INSTANTIATE_TEST_SUITE_P(TinyCheckpoints, SameBitsTest,
                         ::testing::Combine(::testing::ValuesIn(test_support::tiny_names()),
                                            ::testing::Values(NumericsMode::kReference,
                                                              NumericsMode::kWide)),
                         case_name);

}  // namespace
}  // namespace locket::engine
