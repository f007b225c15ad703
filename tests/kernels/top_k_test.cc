#include "kernels/top_k.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

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

TEST(TopKTest, DoesNotDependOnTheOrderOfTheParts) {
  const std::vector<float> scores = tied_scores(2000, 9, 20);
  std::vector<std::size_t> parts(20);
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
  EXPECT_EQ(chosen, expected_choice(scores, 50));
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
