#include "engine/counter_random.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <set>

namespace locket::engine {
namespace {

using testing::ElementsAre;

// The known answers that the authors of the generator publish for philox4x32 with 10 rounds.
TEST(CounterRandomTest, GivesThePublishedBlocks) {
  EXPECT_THAT(philox_block({0, 0, 0, 0}, {0, 0}),
              ElementsAre(0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u));
  EXPECT_THAT(philox_block({0xffffffffu, 0xffffffffu, 0xffffffffu, 0xffffffffu},
                           {0xffffffffu, 0xffffffffu}),
              ElementsAre(0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu));
  EXPECT_THAT(philox_block({0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u},
                           {0xa4093822u, 0x299f31d0u}),
              ElementsAre(0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u));
}

TEST(CounterRandomTest, MakesTheNumberOfTheFirstTwoWords) {
  const std::uint64_t bits = (std::uint64_t{0xe169c58du} << 32 | 0x6627e8d5u) >> 11;
  EXPECT_EQ(uniform_draw({}), std::ldexp(static_cast<double>(bits), -53));
}

TEST(CounterRandomTest, PutsEveryWordOfTheKeyInItsPlace) {
  const DrawKey key = {
      .seed = 0x299f31d0a4093822u, .choice = 0x0370734413198a2eu, .position = 0x85a308d3243f6a88u};
  const std::uint64_t bits = (std::uint64_t{0x94fdccebu} << 32 | 0xd16cfe09u) >> 11;
  EXPECT_EQ(uniform_draw(key), std::ldexp(static_cast<double>(bits), -53));
}

TEST(CounterRandomTest, SeedChoiceAndPositionAllCount) {
  std::set<double> numbers;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    for (std::uint64_t choice = 0; choice < 20; ++choice) {
      for (std::uint64_t position = 0; position < 20; ++position) {
        numbers.insert(uniform_draw({seed, choice, position}));
      }
    }
  }
  EXPECT_EQ(numbers.size(), 8000u);
}

// 64 equal bins: the 63 degrees of freedom stay below the one-in-a-million bound, along each axis.
TEST(CounterRandomTest, IsEvenAlongEveryAxis) {
  constexpr std::uint64_t kDraws = 64000;
  for (int axis = 0; axis < 3; ++axis) {
    std::array<double, 64> bins{};
    for (std::uint64_t i = 0; i < kDraws; ++i) {
      const double number = uniform_draw({axis == 0 ? i : 7, axis == 1 ? i : 7, axis == 2 ? i : 7});
      ASSERT_GE(number, 0.0);
      ASSERT_LT(number, 1.0);
      bins[static_cast<std::size_t>(number * 64.0)] += 1.0;
    }
    double chi_square = 0.0;
    for (const double count : bins) chi_square += (count - 1000.0) * (count - 1000.0) / 1000.0;
    EXPECT_LT(chi_square, 131.0) << "axis " << axis;
    EXPECT_GT(chi_square, 20.0) << "axis " << axis << " is too even to be random";
  }
}

}  // namespace
}  // namespace locket::engine
