// The promise of the same bits in mode `fast`: slices, threads, appended tokens and kernels, on the
// checkpoints that are small enough for the reference kernels.
#include <gtest/gtest.h>
#include <vector>

#include "kernels/kernel_table.h"
#include "tests/engine/same_bits_fixture.h"

namespace locket::engine {
namespace {

using test_support::RunBits;
using test_support::same_logits;

class SameBitsFastTest : public SameBitsTest {};

TEST_P(SameBitsFastTest, AnySlicingOfThePrompt) {
  const std::vector<TokenId> prompt = ids(540);
  const RunBits whole = run(prompt);
  for (const std::size_t slice : {1, 127, 512}) {
    SCOPED_TRACE(slice);
    expect_same(run(prompt, {.slice_tokens = slice}), whole);
  }
}

TEST_P(SameBitsFastTest, AnyNumberOfThreadsAndAppendedTokens) {
  const std::vector<TokenId> all = ids(window() + 60);
  const RunBits expected = run(all);
  for (const std::size_t threads : {1, 2, 5}) {
    SCOPED_TRACE(threads);
    expect_same(
        run(all, {.slice_tokens = 64, .prompt_tokens = all.size() - 20, .threads = threads}),
        expected);
  }
}

TEST_P(SameBitsFastTest, EveryKernelTable) {
  for (const kernels::KernelTable* table : kernels::available_kernels()) {
    SCOPED_TRACE(table->name);
    const std::size_t count = table == &kernels::reference_kernels() ? 36 : window() + 60;
    const std::vector<TokenId> all = ids(count);
    expect_same(run(all, {.slice_tokens = 33, .prompt_tokens = count - 4, .kernels = table}),
                run(all));
  }
}

TEST_P(SameBitsFastTest, AreNotThoseOfModeReference) {
  const std::vector<TokenId> all = ids(20);
  const auto& reference = test_support::tiny_model(name(), model::NumericsMode::kReference);
  EXPECT_FALSE(same_logits(run(all), test_support::run_sequence(reference, all, {})));
}

INSTANTIATE_TEST_SUITE_P(TinyCheckpoints, SameBitsFastTest,
                         ::testing::Values(SameBitsCase{"odd", model::NumericsMode::kFast},
                                           SameBitsCase{"micro", model::NumericsMode::kFast}),
                         same_bits_case_name);

}  // namespace
}  // namespace locket::engine
