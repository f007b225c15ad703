#include "engine/sampler.h"

#include <algorithm>
#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <string>

namespace locket::engine {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Logits = std::vector<float>;
using Probabilities = std::vector<double>;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr SamplingConfig kPlain = {};

TokenId pick(const Logits& logits, const SamplingConfig& config, const DrawKey& key = {},
             const TokenHistory& history = {}) {
  return Sampler().sample(logits, config, key, history).value();
}

SamplingConfig greedy() { return {.temperature = 0.0}; }

// Logits whose softmax is `probabilities`; 0 becomes a masked token.
Logits logits_of(const Probabilities& probabilities) {
  Logits logits;
  for (const double probability : probabilities) {
    logits.push_back(static_cast<float>(std::log(probability)));
  }
  return logits;
}

std::vector<std::uint64_t> count_draws(const Logits& logits, const SamplingConfig& config,
                                       std::uint64_t draws, const TokenHistory& history = {}) {
  Sampler sampler;
  std::vector<std::uint64_t> counts(logits.size());
  for (std::uint64_t position = 0; position < draws; ++position) {
    const DrawKey key = {.seed = 1234, .choice = position % 3, .position = position};
    ++counts[static_cast<std::size_t>(sampler.sample(logits, config, key, history).value())];
  }
  return counts;
}

std::set<TokenId> drawn_tokens(const Logits& logits, const SamplingConfig& config,
                               std::uint64_t draws = 2000) {
  const auto counts = count_draws(logits, config, draws);
  std::set<TokenId> tokens;
  for (std::size_t token = 0; token < counts.size(); ++token) {
    if (counts[token] > 0) tokens.insert(static_cast<TokenId>(token));
  }
  return tokens;
}

// The keys are fixed, so these counts never change. 45 is beyond the one-in-a-million bound of
// chi-square for up to 8 degrees of freedom.
void expect_distribution(const Logits& logits, const SamplingConfig& config,
                         const Probabilities& expected, const TokenHistory& history = {}) {
  constexpr std::uint64_t kDraws = 60000;
  ASSERT_LE(expected.size(), 9u);
  const auto counts = count_draws(logits, config, kDraws, history);
  double chi_square = 0.0;
  for (std::size_t token = 0; token < expected.size(); ++token) {
    const double mean = expected[token] * kDraws;
    if (mean == 0.0) {
      EXPECT_EQ(counts[token], 0u) << "token " << token << " must never be drawn";
      continue;
    }
    const double distance = static_cast<double>(counts[token]) - mean;
    chi_square += distance * distance / mean;
  }
  EXPECT_LT(chi_square, 45.0) << testing::PrintToString(counts);
}

Probabilities softmax(const Logits& logits, double temperature) {
  Probabilities result;
  double sum = 0.0;
  for (const float logit : logits) {
    result.push_back(std::exp(static_cast<double>(logit) / temperature));
    sum += result.back();
  }
  for (double& probability : result) probability /= sum;
  return result;
}

TEST(SamplerTest, GreedyTakesTheLargestLogit) {
  EXPECT_EQ(pick({0.5f, -1.0f, 3.0f, 2.9f}, greedy()), 2);
  EXPECT_EQ(pick({-5.0f, -4.0f, -6.0f}, greedy()), 1);
}

TEST(SamplerTest, GreedyTakesTheLowerIdOfEqualLogits) {
  EXPECT_EQ(pick({1.0f, 7.0f, 2.0f, 7.0f, 7.0f}, greedy()), 1);
  EXPECT_EQ(pick({0.0f, -0.0f}, greedy()), 0);
  EXPECT_EQ(pick({-0.0f, 0.0f}, greedy()), 0);
}

TEST(SamplerTest, GreedyDoesNotDraw) {
  const Logits logits = {1.0f, 1.1f, 1.05f};
  for (std::uint64_t seed = 0; seed < 100; ++seed) EXPECT_EQ(pick(logits, greedy(), {seed}), 1);
}

TEST(SamplerTest, DrawsInProportionToTheSoftmax) {
  const Logits logits = {0.3f, 1.7f, -0.4f, 2.2f, 0.0f, 1.0f, -1.5f, 2.1f};
  expect_distribution(logits, kPlain, softmax(logits, 1.0));
}

TEST(SamplerTest, DividesByTheTemperature) {
  const Logits logits = {0.3f, 1.7f, -0.4f, 2.2f, 0.0f, 1.0f};
  expect_distribution(logits, {.temperature = 0.5}, softmax(logits, 0.5));
  expect_distribution(logits, {.temperature = 3.0}, softmax(logits, 3.0));
}

TEST(SamplerTest, TopKKeepsTheLargest) {
  const Logits logits = logits_of({0.1, 0.4, 0.2, 0.3});
  expect_distribution(logits, {.top_k = 1}, {0.0, 1.0, 0.0, 0.0});
  expect_distribution(logits, {.top_k = 2}, {0.0, 4.0 / 7.0, 0.0, 3.0 / 7.0});
  expect_distribution(logits, {.top_k = 4}, {0.1, 0.4, 0.2, 0.3});
  expect_distribution(logits, {.top_k = 1000}, {0.1, 0.4, 0.2, 0.3});
}

TEST(SamplerTest, TopKTakesTheLowerIdsOfEqualLogits) {
  EXPECT_THAT(drawn_tokens({1.0f, 2.0f, 1.0f, 1.0f}, {.top_k = 3}), ElementsAre(0, 1, 2));
}

TEST(SamplerTest, TopPKeepsTheShortestRunThatHoldsIt) {
  const Logits logits = logits_of({0.1, 0.4, 0.2, 0.3});
  expect_distribution(logits, {.top_p = 0.39}, {0.0, 1.0, 0.0, 0.0});
  expect_distribution(logits, {.top_p = 0.41}, {0.0, 4.0 / 7.0, 0.0, 3.0 / 7.0});
  expect_distribution(logits, {.top_p = 0.89}, {0.0, 4.0 / 9.0, 2.0 / 9.0, 3.0 / 9.0});
  expect_distribution(logits, {.top_p = 0.91}, {0.1, 0.4, 0.2, 0.3});
}

TEST(SamplerTest, TopPReachedExactlyIsEnough) {
  EXPECT_THAT(drawn_tokens({1.0f, 1.0f, 1.0f, 1.0f}, {.top_p = 0.5}), ElementsAre(0, 1));
}

TEST(SamplerTest, TopPNeverDropsTheFirst) {
  const Logits logits = {1.0f, 1.5f, 1.4f, 1.5f};
  EXPECT_THAT(drawn_tokens(logits, {.top_p = 1e-9}), ElementsAre(1));
  EXPECT_THAT(drawn_tokens(logits, {.top_p = 0.0}), ElementsAre(1));
}

TEST(SamplerTest, MinPComparesWithTheLargestProbability) {
  const Logits logits = logits_of({0.1, 0.4, 0.2, 0.3});
  expect_distribution(logits, {.min_p = 0.8}, {0.0, 1.0, 0.0, 0.0});
  expect_distribution(logits, {.min_p = 0.7}, {0.0, 4.0 / 7.0, 0.0, 3.0 / 7.0});
  expect_distribution(logits, {.min_p = 0.2}, {0.1, 0.4, 0.2, 0.3});
}

TEST(SamplerTest, MinPOfOneKeepsOnlyTheLargest) {
  EXPECT_THAT(drawn_tokens({2.0f, 1.999f, 2.0f, 0.0f}, {.min_p = 1.0}), ElementsAre(0, 2));
}

// 0.4 / 0.7 is above one half, 0.4 is not: with top-p first two tokens would stay.
TEST(SamplerTest, TopKComesBeforeTopP) {
  const Logits logits = logits_of({0.1, 0.4, 0.2, 0.3});
  EXPECT_THAT(drawn_tokens(logits, {.top_p = 0.5}), ElementsAre(1, 3));
  EXPECT_THAT(drawn_tokens(logits, {.top_k = 2, .top_p = 0.5}), ElementsAre(1));
}

TEST(SamplerTest, TemperatureComesBeforeTopPAndMinP) {
  const Logits logits = logits_of({0.1, 0.7, 0.2});
  EXPECT_THAT(drawn_tokens(logits, {.top_p = 0.65}), ElementsAre(1));
  EXPECT_THAT(drawn_tokens(logits, {.temperature = 2.0, .top_p = 0.65}), ElementsAre(1, 2));
  EXPECT_THAT(drawn_tokens(logits, {.min_p = 0.5}), ElementsAre(1));
  EXPECT_THAT(drawn_tokens(logits, {.temperature = 2.0, .min_p = 0.5}), ElementsAre(1, 2));
}

TEST(SamplerTest, BiasAndPenaltiesComeBeforeTheTemperature) {
  const Logits logits = {0.0f, 0.0f};
  const std::vector<TokenId> output = {1};
  SamplingConfig config = {.temperature = 0.5, .logit_bias = {{0, 1.0}}};
  const double odds = std::exp(2.0);  // 1 / 0.5, not 1
  expect_distribution(logits, config, {odds / (1 + odds), 1 / (1 + odds)});
  config = {.temperature = 0.5, .presence_penalty = 1.0};
  expect_distribution(logits, config, {odds / (1 + odds), 1 / (1 + odds)}, {{}, output});
}

TEST(SamplerTest, LogitBiasAddsUp) {
  SamplingConfig config = greedy();
  config.logit_bias = {{0, 1.5}};
  EXPECT_EQ(pick({1.0f, 2.0f}, config), 0);
  config.logit_bias = {{0, 0.75}, {0, 0.75}};
  EXPECT_EQ(pick({1.0f, 2.0f}, config), 0);
  config.logit_bias = {{0, 1.0}};
  EXPECT_EQ(pick({1.0f, 2.0f}, config), 0) << "a tie goes to the lower id";
  config.logit_bias = {{1, -100.0}};
  EXPECT_EQ(pick({1.0f, 2.0f}, config), 0);
}

TEST(SamplerTest, FrequencyCountsEveryOccurrenceInTheOutput) {
  const std::vector<TokenId> output = {0, 0, 0, 1, -1, 99};
  SamplingConfig config = greedy();
  config.frequency_penalty = 0.5;
  EXPECT_EQ(pick({2.0f, 1.1f}, config, {}, {{}, output}), 1);  // 0.5 against 0.6
  EXPECT_EQ(pick({2.2f, 1.1f}, config, {}, {{}, output}), 0);  // 0.7 against 0.6
  EXPECT_EQ(pick({2.0f, 1.1f}, config, {}, {output, {}}), 0) << "the prompt does not count";
  config.frequency_penalty = -0.5;
  EXPECT_EQ(pick({1.0f, 1.9f}, config, {}, {{}, output}), 0);  // 2.5 against 2.4
}

TEST(SamplerTest, PresenceCountsOnce) {
  const std::vector<TokenId> output = {0, 0, 0};
  SamplingConfig config = greedy();
  config.presence_penalty = 0.5;
  EXPECT_EQ(pick({2.0f, 1.6f}, config, {}, {{}, output}), 1);
  EXPECT_EQ(pick({2.0f, 1.4f}, config, {}, {{}, output}), 0);
  EXPECT_EQ(pick({2.0f, 1.6f}, config, {}, {output, {}}), 0) << "the prompt does not count";
}

TEST(SamplerTest, RepetitionScalesTowardsLessLikely) {
  const std::vector<TokenId> seen = {0, 0, 0};
  SamplingConfig config = greedy();
  config.repetition_penalty = 2.0;
  for (const TokenHistory& history : {TokenHistory{seen, {}}, TokenHistory{{}, seen}}) {
    EXPECT_EQ(pick({2.0f, 1.1f}, config, {}, history), 1);    // 1 against 1.1
    EXPECT_EQ(pick({2.0f, 0.9f}, config, {}, history), 0);    // once, not three times
    EXPECT_EQ(pick({-1.0f, -1.9f}, config, {}, history), 1);  // -2 against -1.9
    EXPECT_EQ(pick({-1.0f, -2.1f}, config, {}, history), 0);
  }
}

TEST(SamplerTest, RepetitionSeesTheBiasAndComesBeforeTheOtherPenalties) {
  const std::vector<TokenId> output = {0};
  SamplingConfig config = greedy();
  config.repetition_penalty = 2.0;
  config.presence_penalty = 1.0;
  config.logit_bias = {{0, 4.0}};
  // (2 + 4) / 2 - 1 = 2; in other orders 1.5, 2.5 or 4.
  EXPECT_EQ(pick({2.0f, 2.1f}, config, {}, {{}, output}), 1);
  EXPECT_EQ(pick({2.0f, 1.9f}, config, {}, {{}, output}), 0);
}

TEST(SamplerTest, TinyTemperatureIsGreedyWithTies) {
  const Logits logits = {1.0f, 2.0f, 1.9999f, 2.0f};
  for (const double temperature : {1e-6, 1e-300, 5e-324}) {
    EXPECT_THAT(drawn_tokens(logits, {.temperature = temperature}), ElementsAre(1, 3));
  }
}

TEST(SamplerTest, HugeTemperatureIsUniformOverWhatIsNotMasked) {
  const Logits logits = {1e30f, -1e30f, -kInfinity, 5.0f};
  const double third = 1.0 / 3.0;
  expect_distribution(logits, {.temperature = 1e300}, {third, third, 0.0, third});
  expect_distribution(logits, {.temperature = std::numeric_limits<double>::max()},
                      {third, third, 0.0, third});
}

TEST(SamplerTest, LargeLogitsDoNotOverflow) {
  const float most = std::numeric_limits<float>::max();
  EXPECT_THAT(drawn_tokens({most, -most, most, 0.0f}, kPlain), ElementsAre(0, 2));
  expect_distribution({1000.0f, 1001.0f}, kPlain, softmax({0.0f, 1.0f}, 1.0));
  expect_distribution({-1001.0f, -1000.0f}, kPlain, softmax({0.0f, 1.0f}, 1.0));
}

// One broken logit at the start, in the middle, at the end: the finite argmax, and a count to warn
// of.
TEST(SamplerTest, BrokenLogitsAreLeftOutAndCounted) {
  for (const float broken : {kNan, -kNan, kInfinity}) {
    for (std::size_t place = 0; place < 5; ++place) {
      Logits logits = {1.0f, 3.0f, 2.0f, 3.5f, 0.0f};
      logits[place] = broken;
      Sampler sampler;
      EXPECT_EQ(sampler.sample(logits, greedy(), {}).value(), place == 3 ? 1 : 3);
      EXPECT_EQ(sampler.broken_logit_count(), 1u);
      const auto drawn = drawn_tokens(logits, {.temperature = 1.0});
      EXPECT_EQ(drawn.size(), 4u);
      EXPECT_FALSE(drawn.contains(static_cast<TokenId>(place)));
    }
  }
}

TEST(SamplerTest, BiasAndPenaltiesDoNotReviveBrokenOrMaskedTokens) {
  const std::vector<TokenId> output = {0, 1, 2};
  SamplingConfig config = {.frequency_penalty = -1e6,
                           .presence_penalty = -1e6,
                           .repetition_penalty = 1e-3,
                           .logit_bias = {{0, 1e6}, {1, 1e6}, {2, 1e6}}};
  const Logits logits = {kNan, kInfinity, -kInfinity, 0.0f};
  for (const double temperature : {0.0, 1e-300, 1.0, 1e300}) {
    config.temperature = temperature;
    for (std::uint64_t seed = 0; seed < 50; ++seed) {
      EXPECT_EQ(pick(logits, config, {seed}, {output, output}), 3);
    }
  }
}

TEST(SamplerTest, NoFiniteLogitIsAnErrorThatSaysWhatWasFound) {
  for (const double temperature : {0.0, 1.0}) {
    const SamplingConfig config = {.temperature = temperature};
    Sampler sampler;
    const auto result = sampler.sample(Logits{kNan, kNan, -kInfinity}, config, {});
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().code, ErrorCode::kInternal);
    EXPECT_THAT(result.error().message, HasSubstr("none of 3 logits"));
    EXPECT_THAT(result.error().message, HasSubstr("2 are NaN or +infinity"));
    EXPECT_FALSE(sampler.sample(Logits{}, config, {}).has_value());
    EXPECT_EQ(sampler.sample(Logits{0.0f, 1.0f}, greedy(), {}).value(), 1) << "and it goes on";
    EXPECT_EQ(sampler.broken_logit_count(), 0u);
  }
}

// A greedy request with a mask beside a sampled one, through one sampler.
TEST(SamplerTest, MaskedTokensAreNeverEmittedBesideOtherRequests) {
  const Logits masked = {-kInfinity, 1.0f, -kInfinity, 0.5f};
  const Logits open = {5.0f, 1.0f, 4.0f, 0.5f};
  Sampler sampler;
  for (std::uint64_t position = 0; position < 500; ++position) {
    const DrawKey key = {.seed = 3, .position = position};
    EXPECT_EQ(sampler.sample(masked, greedy(), key).value(), 1);
    EXPECT_TRUE(sampler.sample(open, {.temperature = 1.5}, key).has_value());
    const TokenId drawn = sampler.sample(masked, {.temperature = 50.0}, key).value();
    EXPECT_TRUE(drawn == 1 || drawn == 3) << drawn;
  }
}

TEST(SamplerTest, AResultDoesNotDependOnEarlierCalls) {
  const Logits small = {0.1f, 0.2f, 0.3f};
  Logits large(3000);
  for (std::size_t i = 0; i < large.size(); ++i) large[i] = static_cast<float>(i % 17) * 0.3f;
  const SamplingConfig config = {.top_p = 0.97, .min_p = 0.01};
  Sampler reused;
  for (std::uint64_t position = 0; position < 200; ++position) {
    const DrawKey key = {.seed = 5, .position = position};
    EXPECT_EQ(reused.sample(large, config, key).value(), pick(large, config, key));
    EXPECT_EQ(reused.sample(small, config, key).value(), pick(small, config, key));
  }
}

// The same rules written plainly: everything sorted, in long double.
TokenId sample_plainly(const Logits& logits, const SamplingConfig& config, double uniform) {
  std::vector<std::size_t> order(logits.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return logits[a] > logits[b]; });
  std::vector<long double> weights;
  for (const std::size_t token : order) {
    const long double distance = static_cast<long double>(logits[token]) - logits[order[0]];
    weights.push_back(std::exp(distance / config.temperature));
  }
  if (config.top_k > 0 && static_cast<std::size_t>(config.top_k) < weights.size()) {
    weights.resize(static_cast<std::size_t>(config.top_k));
  }
  const long double total = std::accumulate(weights.begin(), weights.end(), 0.0L);
  long double sum = 0.0L;
  std::size_t kept = 0;
  while (kept < weights.size() &&
         (kept == 0 || config.top_p >= 1.0 || sum < config.top_p * total)) {
    sum += weights[kept++];
  }
  weights.resize(kept);
  while (weights.back() < config.min_p) weights.pop_back();
  const long double target = std::accumulate(weights.begin(), weights.end(), 0.0L) * uniform;
  sum = 0.0L;
  std::size_t rank = 0;
  while (rank + 1 < weights.size() && (sum += weights[rank]) <= target) ++rank;
  return static_cast<TokenId>(order[rank]);
}

// Vocabularies past every step of the lazy sort, half of the logits equal to another one.
TEST(SamplerTest, AgreesWithThePlainRules) {
  constexpr std::size_t kVocabulary = 6000;
  Sampler sampler;
  std::uint64_t draw = 0;
  const auto next = [&draw] { return uniform_draw({.seed = 99, .position = draw++}); };
  std::set<TokenId> ranks_seen;
  for (int round = 0; round < 600; ++round) {
    const double spread = 12.0 * next();
    Logits logits(kVocabulary);
    for (float& logit : logits)
      logit = static_cast<float>(std::round(next() * 3000) / 3000 * spread);
    SamplingConfig config = {.temperature = 0.2 + 2.0 * next()};
    if (round % 2 == 1) config.top_k = static_cast<std::int64_t>(1 + next() * kVocabulary);
    if (round % 3 == 1) config.top_p = next();
    if (round % 5 == 1) config.min_p = next() * 0.3;
    const DrawKey key = {.seed = 77, .position = static_cast<std::uint64_t>(round)};
    const TokenId expected = sample_plainly(logits, config, uniform_draw(key));
    ASSERT_EQ(sampler.sample(logits, config, key).value(), expected) << "round " << round;
    ranks_seen.insert(expected);
  }
  EXPECT_GT(ranks_seen.size(), 400u);
}

// Pinned: another machine, compiler or library must draw the same tokens.
TEST(SamplerTest, DrawsTheSameTokensEverywhere) {
  Logits logits(257);
  for (std::size_t i = 0; i < logits.size(); ++i) {
    logits[i] = static_cast<float>((i * 7919) % 257) / 64.0f;
  }
  const auto draw_ten = [&](const SamplingConfig& config) {
    std::vector<TokenId> tokens;
    for (std::uint64_t position = 0; position < 10; ++position) {
      tokens.push_back(pick(logits, config, {.seed = 42, .choice = 1, .position = position}));
    }
    return tokens;
  };
  EXPECT_THAT(draw_ten(kPlain), ElementsAre(209, 128, 209, 221, 226, 95, 49, 38, 78, 97));
  EXPECT_THAT(draw_ten({.temperature = 0.7, .top_k = 20}),
              ElementsAre(241, 236, 241, 102, 27, 236, 209, 225, 161, 134));
  EXPECT_THAT(draw_ten({.temperature = 1.3, .top_p = 0.9, .min_p = 0.05}),
              ElementsAre(118, 180, 118, 205, 119, 153, 33, 113, 174, 172));
}

struct BadSampling {
  const char* name;
  SamplingConfig config;
  const char* message;
};

class BadSamplingConfigTest : public testing::TestWithParam<BadSampling> {};

TEST_P(BadSamplingConfigTest, IsRefusedByName) {
  const auto result = Sampler().sample(Logits{0.0f, 1.0f}, GetParam().config, {});
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code, ErrorCode::kBadRequest);
  EXPECT_THAT(result.error().message, HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Fields, BadSamplingConfigTest,
    testing::Values(
        BadSampling{"NegativeTemperature", {.temperature = -1.0}, "temperature is -1, must be"},
        BadSampling{"NanTemperature", {.temperature = std::nan("")}, "temperature is nan"},
        BadSampling{"InfiniteTemperature", {.temperature = HUGE_VAL}, "temperature is inf"},
        BadSampling{"NegativeTopK", {.top_k = -1}, "top_k is -1, must be 0 (off) or more"},
        BadSampling{"TopPAboveOne", {.top_p = 1.01}, "top_p is 1.01, must be 0 to 1"},
        BadSampling{"NanTopP", {.top_p = std::nan("")}, "top_p is nan"},
        BadSampling{"NegativeMinP", {.min_p = -0.1}, "min_p is -0.1, must be 0 to 1"},
        BadSampling{"Frequency", {.frequency_penalty = 1e7}, "frequency_penalty is"},
        BadSampling{"Presence", {.presence_penalty = -HUGE_VAL}, "presence_penalty is -inf"},
        BadSampling{"Repetition", {.repetition_penalty = 0.0}, "repetition_penalty is 0"},
        BadSampling{"BiasToken", {.logit_bias = {{2, 1.0}}}, "names token 2, the vocabulary has 2"},
        BadSampling{"NegativeBiasToken", {.logit_bias = {{-1, 1.0}}}, "names token -1"},
        BadSampling{"BiasValue", {.logit_bias = {{1, HUGE_VAL}}}, "logit_bias of token 1 is inf"}),
    [](const auto& instance) { return std::string(instance.param.name); });

}  // namespace
}  // namespace locket::engine
