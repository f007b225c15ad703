// The same bits for sequences of every kind: lengths around every edge of a config, random ids and
// random ways to compute them; and nothing of it depends on later tokens.
#include <algorithm>
#include <gtest/gtest.h>
#include <random>
#include <set>
#include <vector>

#include "cache/kv_layout.h"
#include "kernels/kernel_table.h"
#include "tests/engine/same_bits_fixture.h"

namespace locket::engine {
namespace {

using test_support::RunBits;
using test_support::RunPlan;
using test_support::same_logits;
using test_support::same_rows;

// Lengths up to `longest` around every place where the model begins to do something else.
std::set<std::size_t> edge_lengths(const model::V41Config& config, std::size_t longest) {
  std::set<std::int64_t> edges = {1, 2, 3, 4, 5};
  const auto around = [&](std::int64_t edge, std::int64_t ratio) {
    edges.insert({edge, edge + ratio});
    if (edge < 400) edges.insert({edge - 1, edge + 1});
  };
  around(config.sliding_window, 1);
  around(cache::kTokensPerPage, 1);
  for (const model::LayerRole& role : config.layers) {
    if (role.selects_rows) around(config.index_topk * role.ratio, role.ratio);
    if (role.builds_pool) {
      around(config.pool_blocks * config.pool_block_size * role.ratio, role.ratio);
    }
  }
  std::set<std::size_t> lengths;
  for (const std::int64_t edge : edges) {
    if (edge >= 1 && static_cast<std::size_t>(edge) <= longest) {
      lengths.insert(static_cast<std::size_t>(edge));
    }
  }
  return lengths;
}

TEST_P(SameBitsTest, AnyLengthGivesTheBeginningOfALongerRun) {
  EXPECT_EQ(whole_run().logits.size(), long_count());
  for (const std::size_t length : edge_lengths(config(), long_count())) {
    SCOPED_TRACE(length);
    const RunBits bits = run(ids(length));
    EXPECT_EQ(bits.logits.size(), length);
    EXPECT_TRUE(same_logits(bits, whole_run()));
    EXPECT_TRUE(same_rows(bits, whole_run()));
  }
}

TEST_P(SameBitsTest, TheFutureChangesNothing) {
  for (const std::size_t count :
       {std::size_t{2}, std::size_t{3}, window() + 1, 2 * window() + 2, std::size_t{131}}) {
    SCOPED_TRACE(count);
    std::vector<TokenId> changed = ids(count);
    changed.back() = (changed.back() + 1) % static_cast<TokenId>(config().vocabulary_size);
    RunBits bits = run(changed);
    EXPECT_FALSE(same_logits(bits, whole_run())) << "the last token must matter";
    bits.logits.pop_back();
    EXPECT_TRUE(same_logits(bits, whole_run()));
  }
}

// Everything at once, drawn with a fixed seed.
TEST_P(SameBitsTest, RandomRunsOfRandomSequences) {
  const std::uint32_t mode_seed = is_wide() ? 1 : 2;
  std::mt19937 random(kSameBitsSeed + mode_seed);
  const auto draw = [&](std::size_t least, std::size_t most) {
    return least + random() % (most - least + 1);
  };
  const auto& tables = kernels::available_kernels();
  const std::size_t slowest = std::min<std::size_t>(1, tables.size() - 1);
  const std::size_t longest = std::min<std::size_t>(long_count(), is_thin() ? 700 : 2'048);
  for (int round = 0; round < (is_thin() ? 1 : 3); ++round) {
    const std::size_t count = draw(longest / 3, longest);
    const std::vector<TokenId> all = test_support::random_ids(static_cast<std::uint32_t>(random()),
                                                              count, config().vocabulary_size);
    const RunPlan plan = {.slice_tokens = draw(1, 400),
                          .prompt_tokens = count - draw(1, 60),
                          .threads = draw(1, 3),
                          .kernels = tables[draw(slowest, tables.size() - 1)],
                          .page_seed = static_cast<std::uint32_t>(draw(1, 1'000))};
    SCOPED_TRACE(::testing::Message()
                 << "round " << round << ": " << count << " tokens, prompt " << plan.prompt_tokens
                 << ", slices of " << plan.slice_tokens << ", " << plan.threads << " threads, "
                 << plan.kernels->name << ", pages " << plan.page_seed);
    expect_same(run(all, plan), run(all));
  }
}

INSTANTIATE_TEST_SUITE_P(TinyCheckpoints, SameBitsTest, same_bits_cases(), same_bits_case_name);

}  // namespace
}  // namespace locket::engine
