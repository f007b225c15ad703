// Known answers of numpy 2.4: raw PCG64 output and default_rng(seed).integers().
#include "model/numpy_random.h"

#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>

namespace locket::model {
namespace {

nlohmann::json load_answers() {
  std::ifstream file(std::string(LOCKET_TEST_DATA) + "/engram/numpy_draws.json");
  return nlohmann::json::parse(file);
}

TEST(NumpyRandomTest, GivesTheRawStreamOfEverySeed) {
  std::size_t compared = 0;
  for (const auto& answer : load_answers()) {
    NumpyRandom random(answer.at("seed").get<std::uint64_t>());
    for (const auto& expected : answer.at("raw")) {
      ASSERT_EQ(random.next(), expected.get<std::uint64_t>()) << "seed " << answer.at("seed");
      ++compared;
    }
  }
  EXPECT_EQ(compared, 48u);
}

// The bound just above 2^64 / 3 rejects every third draw, the one above 2^32 nearly none.
TEST(NumpyRandomTest, DrawsTheIntegersOfEveryBound) {
  std::size_t compared = 0;
  for (const auto& answer : load_answers()) {
    for (const auto& list : answer.at("integers")) {
      NumpyRandom random(answer.at("seed").get<std::uint64_t>());
      const auto bound = list.at("bound").get<std::uint64_t>();
      for (const auto& expected : list.at("draws")) {
        ASSERT_EQ(random.below(bound), expected.get<std::uint64_t>())
            << "seed " << answer.at("seed") << " bound " << bound;
        ++compared;
      }
    }
  }
  EXPECT_EQ(compared, 8u * 6u * 12u);
}

TEST(NumpyRandomTest, DrawsBelowTheLargestBound) {
  NumpyRandom random(1);
  for (int i = 0; i < 1000; ++i) EXPECT_LT(random.below(~std::uint64_t{0}), ~std::uint64_t{0});
}

TEST(NumpyRandomDeathTest, RefusesABoundThatNumpyDrawsInAnotherWay) {
  NumpyRandom random(1);
  EXPECT_DEATH(random.below(std::uint64_t{1} << 32), "bound");
}

}  // namespace
}  // namespace locket::model
