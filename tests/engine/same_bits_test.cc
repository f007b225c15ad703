// The promise of the program: the logits and the memory of a sequence are the same bits whatever
// the slices of the prompt, the threads, the pages and the kernels, and whether its tokens came as
// a prompt or one by one.
#include <gtest/gtest.h>
#include <vector>

#include "kernels/kernel_table.h"
#include "tests/engine/same_bits_fixture.h"

namespace locket::engine {
namespace {

using test_support::RunBits;
using test_support::same_logits;

TEST_P(SameBitsTest, AnySlicingOfThePrompt) {
  const std::vector<TokenId> prompt = ids(medium_count());
  const RunBits whole = run(prompt);
  EXPECT_TRUE(same_logits(whole, whole_run()));
  for (const std::size_t slice : {1, 2, 7, 64, 127, 128, 129}) {
    SCOPED_TRACE(slice);
    expect_same(run(prompt, {.slice_tokens = slice}), whole);
  }
}

TEST_P(SameBitsTest, SlicingOfALongPrompt) {
  expect_same(run(ids(long_count()), {.slice_tokens = 129}), whole_run());
}

// The rings wrap, pages fill up and groups complete while tokens come one by one.
TEST_P(SameBitsTest, AppendedTokensEqualAPrompt) {
  const std::size_t extra = is_thin() ? 12 : 40;
  for (const std::size_t prompt : {std::size_t{1}, std::size_t{2}, std::size_t{3}, window() - 1,
                                   window(), window() + 1, std::size_t{127}, std::size_t{128}}) {
    SCOPED_TRACE(prompt);
    const std::vector<TokenId> all = ids(prompt + extra);
    expect_same(run(all, {.prompt_tokens = prompt}), run(all));
  }
}

TEST_P(SameBitsTest, ManyAppendedTokensAfterAShortPrompt) {
  const std::vector<TokenId> all = ids(medium_count());
  expect_same(run(all, {.prompt_tokens = 3}), run(all));
}

// The heads of few positions are shared out among the threads, too: 4 or 3 or 2 heads.
TEST_P(SameBitsTest, AnyNumberOfThreads) {
  const std::vector<TokenId> all = ids(window() + 40);
  const RunBits expected = run(all);
  for (const std::size_t threads : {2, 3, 5}) {
    SCOPED_TRACE(threads);
    expect_same(run(all, {.slice_tokens = 64, .prompt_tokens = all.size() - 9, .threads = threads}),
                expected);
  }
}

TEST_P(SameBitsTest, PagesInAnyOrderWithOldContent) {
  const std::vector<TokenId> all = ids(is_thin() ? 270 : 700);
  const RunBits expected = run(all);
  for (const std::uint32_t seed : {1U, 2U}) {
    SCOPED_TRACE(seed);
    expect_same(
        run(all, {.slice_tokens = 100, .prompt_tokens = all.size() - 20, .page_seed = seed}),
        expected);
  }
}

// The reference kernels are slow: their run is short, but passes window, top-k and candidate pool
// of the checkpoints that have small ones.
TEST_P(SameBitsTest, EveryKernelTable) {
  for (const kernels::KernelTable* table : kernels::available_kernels()) {
    SCOPED_TRACE(table->name);
    const bool is_reference = table == &kernels::reference_kernels();
    const std::size_t count = !is_reference ? window() + 60 : is_thin() ? 10 : 36;
    const std::vector<TokenId> all = ids(count);
    const RunBits bits =
        run(all, {.slice_tokens = 33, .prompt_tokens = count - 4, .kernels = table});
    expect_same(bits, run(all));
    EXPECT_TRUE(same_logits(bits, whole_run()));
  }
}

// Many equal scores: the tie rule may not depend on how many positions are scored together.
TEST_P(SameBitsTest, OneRepeatedId) {
  const std::vector<TokenId> all(is_thin() ? 520 : 200, 17);
  const RunBits expected = run(all);
  const std::vector<std::size_t> slices =
      is_thin() ? std::vector<std::size_t>{64} : std::vector<std::size_t>{1, 63, 64, 65};
  for (const std::size_t slice : slices) {
    SCOPED_TRACE(slice);
    expect_same(run(all, {.slice_tokens = slice, .prompt_tokens = all.size() - 10, .page_seed = 5}),
                expected);
  }
}

INSTANTIATE_TEST_SUITE_P(TinyCheckpoints, SameBitsTest, same_bits_cases(), same_bits_case_name);

}  // namespace
}  // namespace locket::engine
