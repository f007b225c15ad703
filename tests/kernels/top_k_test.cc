#include "kernels/top_k.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "kernels/kernel_table.h"
#include "tests/support/kernel_data.h"

namespace locket::kernels {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// The definition: sort everything that may enter, cut, sort by index.
std::vector<std::int32_t> expected_choice(std::span<const float> scores, std::size_t k) {
  std::vector<std::int32_t> indices;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    if (scores[i] > -kInfinity) indices.push_back(static_cast<std::int32_t>(i));
  }
  std::stable_sort(indices.begin(), indices.end(), [&](std::int32_t a, std::int32_t b) {
    return scores[static_cast<std::size_t>(a)] > scores[static_cast<std::size_t>(b)];
  });
  if (indices.size() > k) indices.resize(k);
  std::sort(indices.begin(), indices.end());
  return indices;
}

std::vector<std::int32_t> choose(std::span<const float> scores, std::size_t k, std::size_t part) {
  TopKSelector selector;
  selector.reset(k);
  for (std::size_t first = 0; first < scores.size(); first += part) {
    selector.add(scores.subspan(first, std::min(part, scores.size() - first)),
                 static_cast<std::int32_t>(first));
  }
  std::vector<std::int32_t> chosen = {-7};
  selector.take_ascending(chosen);
  return chosen;
}

// Few distinct scores, so that ties decide; some that must never enter.
std::vector<float> tied_scores(std::size_t count, std::uint32_t seed, std::uint32_t distinct) {
  std::mt19937 engine(seed);
  std::vector<float> scores(count);
  for (float& score : scores) {
    const auto draw = static_cast<std::uint32_t>(engine()) % (distinct + 2);
    score = draw == distinct  ? -kInfinity
            : draw > distinct ? kNan
                              : static_cast<float>(draw) - 3.0f;
  }
  return scores;
}

TEST(TopKTest, ChoosesWhatASortChooses) {
  for (const std::size_t count : {0, 1, 5, 64, 100, 1000, 5000}) {
    for (const std::size_t k : {0, 1, 2, 7, 64, 512}) {
      for (const std::uint32_t distinct : {1u, 4u, 1000000u}) {
        const std::vector<float> scores =
            tied_scores(count, static_cast<std::uint32_t>(count + k), distinct);
        EXPECT_EQ(choose(scores, k, 5000), expected_choice(scores, k))
            << count << " scores, k " << k << ", " << distinct << " distinct";
      }
    }
  }
}

TEST(TopKTest, DoesNotDependOnTheCutOfTheStream) {
  for (const std::uint32_t distinct : {3u, 100u}) {
    const std::vector<float> scores = tied_scores(3000, distinct, distinct);
    for (const std::size_t k : {1, 10, 100}) {
      const std::vector<std::int32_t> expected = expected_choice(scores, k);
      for (std::size_t part = 1; part <= 300; part += part < 20 ? 1 : 53) {
        EXPECT_EQ(choose(scores, k, part), expected) << k << " of parts of " << part;
      }
    }
  }
}

// Equal scores of a lower index may come when there are k of them already.
TEST(TopKTest, DoesNotDependOnTheOrderOfTheParts) {
  for (const std::uint32_t distinct : {2u, 20u}) {
    const std::vector<float> scores = tied_scores(20'000, 9, distinct);
    std::vector<std::size_t> parts(200);
    std::iota(parts.begin(), parts.end(), 0u);
    std::shuffle(parts.begin(), parts.end(), std::mt19937(4));
    TopKSelector selector;
    selector.reset(50);
    for (const std::size_t part : parts) {
      selector.add(std::span<const float>(scores).subspan(part * 100, 100),
                   static_cast<std::int32_t>(part * 100));
    }
    std::vector<std::int32_t> chosen;
    selector.take_ascending(chosen);
    EXPECT_EQ(chosen, expected_choice(scores, 50)) << distinct << " distinct scores";
  }
}

TEST(TopKTest, TakesTheLowerIndexOfEqualScores) {
  const std::vector<float> scores(300, 1.0f);
  const std::vector<std::int32_t> expected = {0, 1, 2, 3, 4};
  EXPECT_EQ(choose(scores, 5, 7), expected);
}

TEST(TopKTest, LetsRisingAndFallingStreamsIn) {
  std::vector<float> scores(4000);
  std::iota(scores.begin(), scores.end(), 0.0f);
  EXPECT_EQ(choose(scores, 100, 64), expected_choice(scores, 100));
  std::reverse(scores.begin(), scores.end());
  EXPECT_EQ(choose(scores, 100, 64), expected_choice(scores, 100));
}

TEST(TopKTest, NeverChoosesNanOrMinusInfinity) {
  const std::vector<float> scores = {kNan, -kInfinity, 1.0f, -kInfinity, kNan, kInfinity};
  const std::vector<std::int32_t> expected = {2, 5};
  EXPECT_EQ(choose(scores, 4, 2), expected);
}

TEST(TopKTest, TreatsZerosOfEitherSignAsEqual) {
  const std::vector<float> scores = {-0.0f, 0.0f, -0.0f};
  const std::vector<std::int32_t> expected = {0, 1};
  EXPECT_EQ(choose(scores, 2, 3), expected);
}

// Every selector gets every `parts`-th hundred, so that their parts overlap.
std::vector<std::int32_t> choose_in_parts(std::span<const float> scores, std::size_t k,
                                          std::size_t parts) {
  std::vector<TopKSelector> selectors(parts);
  for (TopKSelector& selector : selectors) selector.reset(k);
  for (std::size_t first = 0; first < scores.size(); first += 100) {
    selectors[first / 100 % parts].add(scores.subspan(first, 100),
                                       static_cast<std::int32_t>(first));
  }
  for (std::size_t part = 1; part < parts; ++part) selectors[0].merge(selectors[part]);
  std::vector<std::int32_t> chosen;
  selectors[0].take_ascending(chosen);
  return chosen;
}

TEST(TopKTest, MergesWhatSelectorsFoundInPartsOfTheStream) {
  for (const std::uint32_t distinct : {3u, 1000u}) {
    const std::vector<float> scores = tied_scores(6000, distinct, distinct);
    for (const std::size_t k : {1, 50, 500, 7000}) {
      for (const std::size_t parts : {1, 2, 5}) {
        EXPECT_EQ(choose_in_parts(scores, k, parts), expected_choice(scores, k))
            << k << " of " << parts << " parts";
      }
    }
  }
}

TEST(TopKTest, TellsTheSmallestDifferences) {
  const std::vector<float> scores = {0x1p-149f,       0.0f, -0x1p-149f, 0x1p-148f, 0x1.fffffep127f,
                                     -0x1.fffffep127f};
  for (const std::size_t k : {1, 2, 3, 4, 5}) {
    EXPECT_EQ(choose(scores, k, 1), expected_choice(scores, k)) << k;
  }
}

TEST(EntryRankTest, OrdersByScoreAndThenByLowerIndex) {
  const std::vector<float> ascending = {-0x1.fffffep127f, -2.0f, -0x1p-149f, 0.0f,
                                        0x1p-149f,        1.0f,  kInfinity};
  for (std::size_t i = 0; i < ascending.size(); ++i) {
    const std::uint64_t rank = entry_rank(ascending[i], 7);
    EXPECT_EQ(entry_score(rank), ascending[i]);
    EXPECT_EQ(entry_index(rank), 7);
    EXPECT_GT(rank, entry_rank(ascending[i], 8));
    if (i == 0) continue;
    EXPECT_GT(rank, entry_rank(ascending[i - 1], 0));
  }
  EXPECT_EQ(entry_rank(-0.0f, 3), entry_rank(0.0f, 3));
}

class SelectionTest : public ::testing::TestWithParam<const KernelTable*> {};

TEST_P(SelectionTest, RanksFromABoundOnForEveryCount) {
  for (std::size_t count = 0; count <= 70; ++count) {
    const std::vector<float> scores = tied_scores(count, static_cast<std::uint32_t>(count), 6);
    const std::span<const float> odd = std::span(scores).subspan(count > 3 ? 1 : 0);
    for (const float least : {-kInfinity, -3.0f, 0.0f, 0x1p-149f, 2.0f, kInfinity}) {
      std::vector<std::uint64_t> expected(odd.size() + 1, 5);
      std::vector<std::uint64_t> actual(odd.size() + 1, 5);
      const ScoreStretch stretch = {.scores = odd, .first = 1'000};
      const std::size_t found =
          reference_kernels().selection.ranks_from(stretch, least, expected.data());
      ASSERT_EQ(GetParam()->selection.ranks_from(stretch, least, actual.data()), found);
      EXPECT_EQ(actual.back(), 5U);
      expected.resize(found);
      actual.resize(found);
      EXPECT_EQ(actual, expected) << count << " scores from " << least;
    }
  }
}

TEST_P(SelectionTest, FindsTheLargestOfEveryBlock) {
  for (const std::size_t size : {1, 3, 8, 16}) {
    for (std::size_t count = 0; count <= 100; ++count) {
      const std::vector<float> scores = tied_scores(count, static_cast<std::uint32_t>(count), 9);
      const std::size_t blocks = (count + size - 1) / size;
      std::vector<float> expected(blocks);
      std::vector<float> actual(blocks + 1, 77.0f);
      reference_kernels().selection.block_maxima(scores, size, expected);
      GetParam()->selection.block_maxima(scores, size, std::span(actual).first(blocks));
      EXPECT_EQ(actual.back(), 77.0f);
      actual.pop_back();
      EXPECT_EQ(actual, expected) << count << " scores in blocks of " << size;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Tables, SelectionTest, ::testing::ValuesIn(fast_tables()), table_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(SelectionTest);

TEST(SelectionReferenceTest, NanIsNeverTheLargestOfABlock) {
  const std::vector<float> scores = {kNan, 2.0f, kNan, 3.0f, 1.0f, kNan, kNan};
  std::vector<float> maxima(4);
  reference_kernels().selection.block_maxima(scores, 2, maxima);
  EXPECT_EQ(maxima, (std::vector<float>{2.0f, 3.0f, 1.0f, -kInfinity}));
}

TEST(TopKTest, StartsAnewAfterReset) {
  TopKSelector selector;
  std::vector<std::int32_t> chosen;
  const std::vector<float> first(500, 5.0f);
  const std::vector<float> second = {1.0f, 2.0f, 0.5f};
  selector.reset(2);
  selector.add(first, 0);
  selector.take_ascending(chosen);
  selector.reset(2);
  selector.add(second, 10);
  selector.take_ascending(chosen);
  const std::vector<std::int32_t> expected = {10, 11};
  EXPECT_EQ(chosen, expected);
}

}  // namespace
}  // namespace locket::kernels
