// The selection of rows against a plain search: all numbers are small integers and powers of two,
// so scores are exact and equal scores are frequent.
#include "model/indexer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <numeric>
#include <random>
#include <vector>

#include "kernels/kernel_table.h"
#include "tests/model/mechanism_inputs.h"

namespace locket::model {
namespace {

constexpr std::size_t kHeads = 4;
constexpr std::size_t kDim = 64;
constexpr std::size_t kLora = 32;
constexpr std::size_t kHidden = 32;

tensor::FloatMatrix small_integers(std::uint32_t seed, std::size_t rows, std::size_t columns,
                                   std::uint32_t largest) {
  std::mt19937 random(seed);
  tensor::FloatMatrix matrix(rows, columns);
  for (float& value : matrix.values()) {
    value = static_cast<float>(random() % (2 * largest + 1)) - static_cast<float>(largest);
  }
  return matrix;
}

// Weights of one index source with the plain numbers behind them.
struct Source {
  explicit Source(std::uint32_t seed)
      : query(small_integers(seed, kHeads * kDim, kLora, 1)),
        head_weight(small_integers(seed + 1, kHeads, kHidden, 1)),
        weights{.wq_b = weight_matrix(query), .weights_proj = weight_matrix(head_weight)} {}

  tensor::FloatMatrix query;
  tensor::FloatMatrix head_weight;
  IndexerWeights weights;
};

double dot(std::span<const float> a, std::span<const float> b) {
  double sum = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  }
  return sum;
}

struct SearchCase {
  std::int64_t ratio = 1;
  std::size_t topk = 8;
  std::size_t pool_blocks = 4;
  std::size_t pool_block_size = 3;
  std::int64_t first_position = 0;
  std::size_t count = 60;
  std::uint32_t distinct_keys = 5;  // the others repeat them
  std::size_t threads = 1;
};

class Search {
 public:
  explicit Search(const SearchCase& setup)
      : setup_(setup),
        test_(NumericsMode::kPlain, setup.threads),
        latent_(small_integers(1, setup.count, kLora, 1)),
        input_(small_integers(2, setup.count, kHidden, 1)),
        memory_({.streams = {{.name = "rows", .tokens_per_row = setup.ratio, .row_bytes = 3},
                             {.name = "keys",
                              .tokens_per_row = setup.ratio,
                              .row_bytes = kDim * sizeof(float)}},
                 .rings = {}},
                setup.first_position + static_cast<std::int64_t>(setup.count)),
        view_(memory_.view()),
        step_({{.memory = &view_, .first_position = setup.first_position, .count = setup.count}},
              {kernels::RowFormat::kF32, kernels::RowFormat::kF32, kernels::RowFormat::kF32}) {
    step_.compressed_rotary =
        rotary_table({0.0f}, positions_from(setup.first_position, 1, setup.count));
    const tensor::FloatMatrix distinct = small_integers(3, setup.distinct_keys, kDim, 1);
    std::mt19937 random(4);
    keys_ = tensor::FloatMatrix(static_cast<std::size_t>(visible(setup.count - 1)), kDim);
    for (std::size_t row = 0; row < keys_.rows(); ++row) {
      std::ranges::copy(distinct.row(random() % setup.distinct_keys), keys_.row(row).begin());
      const auto bytes = std::as_bytes(keys_.row(row));
      std::ranges::copy(bytes, view_.row(1, static_cast<std::int64_t>(row)).begin());
    }
  }

  Step& select(const Source& source, IndexerConfig::Pool pool) {
    const IndexerConfig config = {.heads = kHeads,
                                  .dim = kDim,
                                  .rope_dim = 2,
                                  .topk = setup_.topk,
                                  .ratio = setup_.ratio,
                                  .pool_blocks = setup_.pool_blocks,
                                  .pool_block_size = setup_.pool_block_size,
                                  .pool = pool};
    select_rows(test_.context, config, source.weights,
                {.u = input_, .query_latent = latent_, .key_stream = 1}, step_);
    EXPECT_EQ(step_.selection.rows.size(), setup_.count);
    return step_;
  }

  std::int64_t visible(std::size_t i) const {
    return (setup_.first_position + static_cast<std::int64_t>(i) + 1) / setup_.ratio;
  }

  // Scores of every visible row of position i.
  std::vector<double> scores(const Source& source, std::size_t i) const {
    std::vector<double> result(static_cast<std::size_t>(visible(i)), 0.0);
    for (std::size_t head = 0; head < kHeads; ++head) {
      std::vector<float> query(kDim);
      for (std::size_t d = 0; d < kDim; ++d) {
        query[d] = static_cast<float>(dot(source.query.row(head * kDim + d), latent_.row(i)));
      }
      const double weight = dot(source.head_weight.row(head), input_.row(i)) / 16.0;
      for (std::size_t row = 0; row < result.size(); ++row) {
        result[row] += weight * std::max(dot(query, keys_.row(row)), 0.0);
      }
    }
    return result;
  }

  // Blocks of the candidate pool; empty if it holds everything.
  std::vector<std::int32_t> pool(const Source& source, std::size_t i) const {
    const std::vector<double> all = scores(source, i);
    std::vector<double> best;
    for (std::size_t row = 0; row < all.size(); ++row) {
      if (row % setup_.pool_block_size == 0) best.push_back(-HUGE_VAL);
      best.back() = std::max(best.back(), all[row]);
    }
    if (best.size() <= setup_.pool_blocks) return {};
    best.back() = HUGE_VAL;
    return best_of(best, setup_.pool_blocks);
  }

  static std::vector<std::int32_t> best_of(const std::vector<double>& values, std::size_t k) {
    std::vector<std::int32_t> order(values.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, [&](std::int32_t a, std::int32_t b) {
      return values[static_cast<std::size_t>(a)] > values[static_cast<std::size_t>(b)];
    });
    order.resize(std::min(k, order.size()));
    std::ranges::sort(order);
    return order;
  }

  // The rows that should be chosen, from the rows of `blocks` only if there are any.
  std::vector<std::int32_t> expected(const Source& source, std::size_t i,
                                     const std::vector<std::int32_t>& blocks) const {
    std::vector<double> all = scores(source, i);
    for (std::size_t row = 0; row < all.size() && !blocks.empty(); ++row) {
      const auto block = static_cast<std::int32_t>(row / setup_.pool_block_size);
      if (!std::ranges::binary_search(blocks, block)) all[row] = -HUGE_VAL;
    }
    return best_of(all, setup_.topk);
  }

 private:
  SearchCase setup_;
  TestContext test_;
  tensor::FloatMatrix latent_;
  tensor::FloatMatrix input_;
  TestMemory memory_;
  cache::KvView view_;
  Step step_;
  tensor::FloatMatrix keys_;
};

// One source without a pool, then one that builds it and two that use it.
void expect_plain_search(const SearchCase& setup) {
  Search search(setup);
  const Source first(10);
  const Source second(20);
  const Source third(30);
  const Step& step = search.select(first, IndexerConfig::Pool::kNone);
  for (std::size_t i = 0; i < setup.count; ++i) {
    EXPECT_EQ(step.selection.rows[i], search.expected(first, i, {})) << "position " << i;
  }
  search.select(second, IndexerConfig::Pool::kBuild);
  for (std::size_t i = 0; i < setup.count; ++i) {
    EXPECT_EQ(step.selection.rows[i], search.expected(second, i, {})) << "position " << i;
    const std::vector<std::int32_t> blocks = search.pool(second, i);
    EXPECT_EQ(step.pool.positions[i].holds_all, blocks.empty()) << "position " << i;
    EXPECT_EQ(step.pool.positions[i].chosen, blocks) << "position " << i;
  }
  for (const Source* source : {&third, &first}) {
    search.select(*source, IndexerConfig::Pool::kUse);
    for (std::size_t i = 0; i < setup.count; ++i) {
      EXPECT_EQ(step.selection.rows[i], search.expected(*source, i, search.pool(second, i)))
          << "position " << i;
    }
  }
}

TEST(IndexerTest, SelectsWhatAPlainSearchSelects) { expect_plain_search({}); }

TEST(IndexerTest, RowsOfTwoTokensAreVisibleFromTheSecondOn) {
  expect_plain_search({.ratio = 2, .topk = 3, .pool_blocks = 3, .pool_block_size = 2, .count = 40});
}

TEST(IndexerTest, RowsOfFourTokens) {
  expect_plain_search({.ratio = 4, .topk = 2, .pool_blocks = 2, .pool_block_size = 5, .count = 90});
}

TEST(IndexerTest, ScoresThatAreAllEqualTakeTheFirstRows) {
  const SearchCase setup = {.topk = 6, .pool_blocks = 3, .pool_block_size = 4, .distinct_keys = 1};
  expect_plain_search(setup);
  Search search(setup);
  const Step& step = search.select(Source(10), IndexerConfig::Pool::kBuild);
  EXPECT_EQ(step.selection.rows.back(), (std::vector<std::int32_t>{0, 1, 2, 3, 4, 5}));
  // The newest block is in, whatever its score.
  EXPECT_EQ(step.pool.positions.back().chosen, (std::vector<std::int32_t>{0, 1, 14}));
}

TEST(IndexerTest, AllVisibleRowsWhileThereAreNoMoreThanTopK) {
  Search search({.ratio = 2, .topk = 5, .count = 14});
  const Step& step = search.select(Source(10), IndexerConfig::Pool::kNone);
  EXPECT_EQ(step.selection.rows[0], std::vector<std::int32_t>{});
  EXPECT_EQ(step.selection.rows[1], std::vector<std::int32_t>{0});
  EXPECT_EQ(step.selection.rows[2], std::vector<std::int32_t>{0});
  EXPECT_EQ(step.selection.rows[9], (std::vector<std::int32_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(step.selection.rows[10], (std::vector<std::int32_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(step.selection.rows[11].size(), 5U);
}

// Keys are scored in stretches of about a thousand rows.
TEST(IndexerTest, ManyRowsInSeveralStretches) {
  expect_plain_search({.topk = 40,
                       .pool_blocks = 100,
                       .pool_block_size = 3,
                       .first_position = 2'040,
                       .count = 14,
                       .distinct_keys = 400});
  expect_plain_search({.topk = 512,
                       .pool_blocks = 70,
                       .pool_block_size = 8,
                       .first_position = 1'020,
                       .count = 8,
                       .distinct_keys = 700});
}

// Enough work for every thread: few positions share out keys, many share out positions, and rows of
// a pool its blocks.
TEST(IndexerTest, ThreadsChangeNothing) {
  expect_plain_search({.count = 50, .threads = 3});
  expect_plain_search({.first_position = 77, .count = 1, .threads = 3});
  expect_plain_search({.topk = 40,
                       .pool_blocks = 800,
                       .pool_block_size = 3,
                       .first_position = 2'500,
                       .count = 14,
                       .distinct_keys = 400,
                       .threads = 3});
  expect_plain_search({.ratio = 2,
                       .topk = 100,
                       .pool_blocks = 120,
                       .pool_block_size = 8,
                       .first_position = 2'000,
                       .count = 70,
                       .distinct_keys = 300,
                       .threads = 2});
}

// Two sequences whose keys are stored as the release stores them: 128 dims of 4 bits.
struct StoredSearch {
  static constexpr std::size_t kKeyDim = 128;
  static constexpr std::size_t kSourceHeads = 6;
  static constexpr std::int64_t kFirst = 1'500;
  static constexpr std::size_t kCount = 5;

  StoredSearch()
      : test(NumericsMode::kReference, 2),
        first(layout(), kFirst + static_cast<std::int64_t>(kCount)),
        second(layout(), kFirst + static_cast<std::int64_t>(kCount)),
        views{first.view(), second.view()},
        step({{.memory = &views[0], .first_position = kFirst, .count = kCount},
              {.memory = &views[1], .first_position = kFirst - 300, .count = 1}},
             {}) {
    step.compressed_rotary = rotary_table({0.7f, 0.1f}, positions_from(kFirst, 1, step.rows()));
    for (const std::uint32_t sequence : {0u, 1u}) {
      for (std::int64_t row = 0; row < (kFirst + 5) / 2; ++row) {
        std::vector<float> key =
            random_floats(static_cast<std::uint32_t>(row % 211) + 1'000 * sequence, kKeyDim);
        // Some keys have groups that are far below the others.
        if (row % 5 == 0) key[40] *= 100.0f;
        encode_row(kernels::RowFormat::kFp4Index, key, views[sequence].row(0, row));
      }
    }
  }

  static cache::KvLayout layout() {
    return {.streams = {{.name = "keys",
                         .tokens_per_row = 2,
                         .row_bytes = row_bytes(kernels::RowFormat::kFp4Index, kKeyDim)}},
            .rings = {}};
  }

  void select(std::uint32_t seed, IndexerConfig::Pool pool) {
    const IndexerConfig config = {.heads = kSourceHeads,
                                  .dim = kKeyDim,
                                  .rope_dim = 4,
                                  .topk = 50,
                                  .ratio = 2,
                                  .pool_blocks = 60,
                                  .pool_block_size = 8,
                                  .pool = pool};
    const IndexerWeights weights = {
        .wq_b = random_weights(seed, kSourceHeads * kKeyDim, kLora),
        .weights_proj = random_weights(seed + 1, kSourceHeads, kHidden)};
    const tensor::FloatMatrix u = random_matrix(seed + 2, step.rows(), kHidden);
    const tensor::FloatMatrix latent = random_matrix(seed + 3, step.rows(), kLora);
    select_rows(test.context, config, weights, {.u = u, .query_latent = latent}, step);
  }

  TestContext test;
  TestMemory first;
  TestMemory second;
  std::array<cache::KvView, 2> views;
  Step step;
};

TEST(IndexerTest, EveryInstructionSetSelectsTheSame) {
  StoredSearch search;
  std::vector<std::vector<std::vector<std::int32_t>>> expected;
  for (const kernels::KernelTable* table : kernels::available_kernels()) {
    kernels::set_active_kernels(table);
    search.step.pool = {};
    std::vector<std::vector<std::vector<std::int32_t>>> chosen;
    for (const auto& [seed, pool] : {std::pair{20u, IndexerConfig::Pool::kNone},
                                     {30u, IndexerConfig::Pool::kBuild},
                                     {40u, IndexerConfig::Pool::kUse}}) {
      search.select(seed, pool);
      chosen.push_back(search.step.selection.rows);
      for (const auto& position : search.step.pool.positions) {
        EXPECT_FALSE(position.holds_all);
        chosen.back().push_back(position.chosen);
      }
    }
    if (expected.empty()) expected = chosen;
    EXPECT_TRUE(chosen == expected) << table->name;
  }
  kernels::set_active_kernels(nullptr);
  EXPECT_EQ(expected[0].front().size(), 50U);
  EXPECT_TRUE(expected[0] != expected[2]);
}

TEST(IndexerTest, QueriesAreRotatedAndQuantized) {
  // One key along the first rotated dim, one along the second: turning the query by a quarter moves
  // its score from one to the other.
  TestContext test(NumericsMode::kWide);
  TestMemory memory(
      {.streams = {{.name = "keys", .row_bytes = row_bytes(kernels::RowFormat::kFp4Index, 32)}},
       .rings = {}},
      8);
  const cache::KvView view = memory.view();
  for (const std::int64_t row : {0, 1}) {
    std::vector<float> key(32, 0.0f);
    key[static_cast<std::size_t>(30 + row)] = 1.0f;
    encode_row(kernels::RowFormat::kFp4Index, key, view.row(0, row));
  }
  tensor::FloatMatrix query_weights(32, 32);
  query_weights.row(30)[0] = 1.0f;
  const IndexerWeights weights = {.wq_b = weight_matrix(query_weights),
                                  .weights_proj = weight_matrix(float_matrix(1, 1, {{1.0f}}))};
  const tensor::FloatMatrix u = float_matrix(2, 1, {{1.0f, 1.0f}});
  tensor::FloatMatrix latent(2, 32);
  latent.row(0)[0] = latent.row(1)[0] = 1.0f;
  Step step({{.memory = &view, .first_position = 1, .count = 2}}, {});
  step.compressed_rotary = {.cos = float_matrix(2, 1, {{1.0f, 0.0f}}),
                            .sin = float_matrix(2, 1, {{0.0f, 1.0f}})};
  const IndexerConfig config = {.heads = 1, .dim = 32, .rope_dim = 2, .topk = 1};
  select_rows(test.context, config, weights, {.u = u, .query_latent = latent}, step);
  EXPECT_EQ(step.selection.rows[0], std::vector<std::int32_t>{0});
  EXPECT_EQ(step.selection.rows[1], std::vector<std::int32_t>{1});
}

}  // namespace
}  // namespace locket::model
