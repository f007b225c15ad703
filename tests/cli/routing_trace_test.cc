#include "cli/routing_trace.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <set>
#include <vector>

namespace locket::cli {
namespace {

constexpr ZipfWish kWish = {.tokens = 2'000,
                            .layers = 3,
                            .experts = 64,
                            .chosen = 6,
                            .stored = 16,
                            .exponent = 1.0,
                            .seed = 5};

TEST(RoutingTraceTest, EveryTokenGoesThroughDifferentExpertsOfDifferentBytesInEveryLayer) {
  const RoutingTrace trace = RoutingTrace::zipf(kWish);
  ASSERT_EQ(trace.tokens(), kWish.tokens);
  for (std::size_t token = 0; token < trace.tokens(); ++token) {
    for (std::size_t layer = 0; layer < trace.layers(); ++layer) {
      const auto ids = trace.ids(token, layer);
      ASSERT_EQ(ids.size(), 6U);
      ASSERT_TRUE(std::ranges::is_sorted(ids));
      std::set<std::int32_t> bytes;
      for (const std::int32_t id : ids) {
        ASSERT_TRUE(id >= 0 && id < 64);
        bytes.insert(id % 16);
      }
      ASSERT_EQ(bytes.size(), 6U);
    }
  }
}

// Of one choice a token the shares of places are known: 1 / n over the sum of all.
TEST(RoutingTraceTest, TheShareOfAnExpertFallsWithItsPlaceAsTheLawSays) {
  ZipfWish wish = kWish;
  wish.chosen = 1;
  wish.tokens = 20'000;
  const RoutingTrace trace = RoutingTrace::zipf(wish);
  double sum = 0;
  for (int place = 1; place <= 64; ++place) sum += 1.0 / place;
  for (std::size_t layer = 0; layer < wish.layers; ++layer) {
    std::map<std::int32_t, double> counts;
    for (std::size_t token = 0; token < wish.tokens; ++token) {
      counts[trace.ids(token, layer).front()] += 1.0 / static_cast<double>(wish.tokens);
    }
    std::vector<double> shares;
    for (const auto& [id, share] : counts) shares.push_back(share);
    std::ranges::sort(shares, std::greater<>());
    EXPECT_NEAR(shares[0], 1 / sum, 0.02);
    EXPECT_NEAR(shares[1], 1 / sum / 2, 0.02);
    EXPECT_NEAR(shares[3], 1 / sum / 4, 0.02);
  }
}

TEST(RoutingTraceTest, IsTheSameForASeedAndDiffersBetweenLayersAndSeeds) {
  const auto all = [](const RoutingTrace& trace, std::size_t layer) {
    std::vector<std::int32_t> ids;
    for (std::size_t token = 0; token < 50; ++token) {
      ids.insert(ids.end(), trace.ids(token, layer).begin(), trace.ids(token, layer).end());
    }
    return ids;
  };
  const RoutingTrace trace = RoutingTrace::zipf(kWish);
  EXPECT_EQ(all(trace, 0), all(RoutingTrace::zipf(kWish), 0));
  EXPECT_NE(all(trace, 0), all(trace, 1));
  ZipfWish other = kWish;
  other.seed = 6;
  EXPECT_NE(all(trace, 0), all(RoutingTrace::zipf(other), 0));
}

// Remembers what it is asked for.
class AskedExperts : public model::ExpertSource {
 public:
  std::size_t expert_count() const override { return 16; }
  std::size_t experts_at_once() const override { return 16; }
  std::unique_ptr<Lease> fetch(std::int64_t layer, std::span<const std::int32_t> ids) override {
    fetched_layer = layer;
    fetched.assign(ids.begin(), ids.end());
    return nullptr;
  }
  bool reads_ahead() const override { return true; }
  void expect(std::int64_t layer, std::span<const std::int32_t> ids) override {
    EXPECT_EQ(layer, 2);
    expected.assign(ids.begin(), ids.end());
  }

  std::int64_t fetched_layer = -1;
  std::vector<std::int32_t> fetched;
  std::vector<std::int32_t> expected;
};

TEST(TracedExpertsTest, FetchWhatTheTraceSaysWhateverTheRouterChose) {
  const RoutingTrace trace = RoutingTrace::zipf(kWish);
  AskedExperts asked;
  TracedExperts traced(asked, trace, 16);
  EXPECT_FALSE(traced.reads_ahead());
  const std::vector<std::int32_t> chosen = {0, 1, 2, 3, 4, 5};
  for (const std::size_t token : {0, 7}) {
    traced.set_token(token);
    static_cast<void>(traced.fetch(1, chosen));
    std::vector<std::int32_t> wanted;
    for (const std::int32_t id : trace.ids(token, 1)) wanted.push_back(id % 16);
    std::ranges::sort(wanted);
    EXPECT_EQ(asked.fetched_layer, 1);
    EXPECT_EQ(asked.fetched, wanted);
  }
}

TEST(TracedExpertsTest, ForeseeTheShareThatTheyAreGivenAndNameNoneTwice) {
  const RoutingTrace trace = RoutingTrace::zipf(kWish);
  AskedExperts asked;
  TracedExperts traced(asked, trace, 16, {.right = 0.5, .wrong = 0.4});
  EXPECT_TRUE(traced.reads_ahead());
  const std::vector<std::int32_t> chosen = {0, 1, 2, 3, 4, 5};
  double right = 0;
  double named = 0;
  for (std::size_t token = 0; token < trace.tokens(); ++token) {
    traced.set_token(token);
    traced.expect(2, {});
    static_cast<void>(traced.fetch(2, chosen));
    const std::set<std::int32_t> expected(asked.expected.begin(), asked.expected.end());
    EXPECT_EQ(expected.size(), asked.expected.size());
    named += static_cast<double>(expected.size());
    for (const std::int32_t id : asked.fetched) right += expected.contains(id) ? 1 : 0;
  }
  const double all = 6 * static_cast<double>(trace.tokens());
  // Some of the wrong ones, drawn among all, are right by chance.
  EXPECT_NEAR(right / all, 0.5 + 0.5 * 0.4 * 0.5 * 6 / 16, 0.04);
  EXPECT_GT(named, right);
  EXPECT_NEAR((named - right) / right, 0.4 * 10 / 16, 0.1);
}

}  // namespace
}  // namespace locket::cli
