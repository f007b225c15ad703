// What the decoder's replay may change and what not: bounded and full are the same up to the
// window, exact and full always, and no replay depends on how the prompt is sliced.
#include <algorithm>
#include <gtest/gtest.h>
#include <vector>

#include "engine/replay.h"
#include "tests/engine/same_bits_fixture.h"

namespace locket::engine {
namespace {

using test_support::RunBits;
using test_support::RunPlan;
using test_support::same_logits;
using test_support::same_rows;

TEST_P(SameBitsTest, BoundedReplayEqualsFullUpToTheWindow) {
  for (const std::size_t count : {std::size_t{1}, std::size_t{2}, window() - 1, window()}) {
    SCOPED_TRACE(count);
    const RunBits bits = run(ids(count), {.replay = ReplayMode::kBounded});
    EXPECT_EQ(bits.first_position, 0);
    expect_same(bits, run(ids(count)));
  }
}

TEST_P(SameBitsTest, BoundedReplayIsNotFullBeyondTheWindow) {
  const std::size_t count = decoder_reach();
  RunBits bits = run(ids(count), {.replay = ReplayMode::kBounded});
  EXPECT_EQ(bits.logits.size(), window());
  bits.logits.erase(bits.logits.begin(), bits.logits.end() - 1);
  bits.first_position = static_cast<std::int64_t>(count) - 1;
  EXPECT_FALSE(same_logits(bits, whole_run()));
}

TEST_P(SameBitsTest, BoundedReplayDoesNotDependOnTheSlicing) {
  const std::vector<std::size_t> prompts =
      is_thin() ? std::vector<std::size_t>{window() + 1, medium_count()}
                : std::vector<std::size_t>{window() + 1, 2 * window() + 3, 129, medium_count()};
  const std::vector<std::size_t> slices =
      is_thin() ? std::vector<std::size_t>{1, 64, 129}
                : std::vector<std::size_t>{1, 2, 7, 64, 127, 128, 129};
  for (const std::size_t prompt : prompts) {
    SCOPED_TRACE(prompt);
    const std::vector<TokenId> all = ids(prompt + 5);
    const RunPlan plan = {.replay = ReplayMode::kBounded, .prompt_tokens = prompt};
    const RunBits whole = run(all, plan);
    EXPECT_EQ(whole.first_position, static_cast<std::int64_t>(prompt - window()));
    EXPECT_TRUE(same_rows(whole, whole_run())) << "rows do not depend on the replay";
    for (const std::size_t slice : slices) {
      SCOPED_TRACE(slice);
      RunPlan sliced = plan;
      sliced.slice_tokens = slice;
      sliced.threads = 1 + slice % 3;
      sliced.page_seed = static_cast<std::uint32_t>(slice);
      expect_same(run(all, sliced), whole);
    }
  }
}

// Everything that the last position of the prompt and those after it can see.
TEST_P(SameBitsTest, ExactReplayEqualsFull) {
  const std::size_t reach = decoder_reach();
  const std::vector<std::size_t> prompts =
      is_thin() ? std::vector<std::size_t>{reach + 1}
                : std::vector<std::size_t>{window() + 1, reach, reach + 1, reach + 40};
  for (const std::size_t prompt : prompts) {
    SCOPED_TRACE(prompt);
    const std::vector<TokenId> all = ids(prompt + 3);
    RunBits bits =
        run(all, {.replay = ReplayMode::kExact, .slice_tokens = 50, .prompt_tokens = prompt});
    EXPECT_EQ(bits.first_position, static_cast<std::int64_t>(prompt - std::min(prompt, reach)));
    if (prompt <= reach) {
      expect_same(bits, run(all));
      continue;
    }
    const auto inexact = static_cast<std::ptrdiff_t>(reach) - 1;
    bits.logits.erase(bits.logits.begin(), bits.logits.begin() + inexact);
    bits.first_position += inexact;
    EXPECT_EQ(bits.logits.size(), 4U);
    EXPECT_TRUE(same_logits(bits, whole_run()));
    EXPECT_TRUE(same_rows(bits, whole_run()));
  }
}

// Its first position is cut off from the ones before it.
TEST_P(SameBitsTest, ExactReplayCutsWindowsAtItsStart) {
  RunBits bits = run(ids(decoder_reach() + 1), {.replay = ReplayMode::kExact});
  bits.logits.resize(1);
  EXPECT_EQ(bits.first_position, 1);
  EXPECT_FALSE(same_logits(bits, whole_run()));
}

INSTANTIATE_TEST_SUITE_P(TinyCheckpoints, SameBitsTest, same_bits_cases(), same_bits_case_name);

}  // namespace
}  // namespace locket::engine
