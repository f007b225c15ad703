#include "numerics/e8m0.h"

#include <cmath>
#include <cstdint>
#include <gtest/gtest.h>

namespace locket::numerics {
namespace {

E8m0 code_of(std::uint32_t code) { return {static_cast<std::uint8_t>(code)}; }

TEST(E8m0Test, IsAPowerOfTwoForEveryCode) {
  for (int code = 0; code < 255; ++code) {
    EXPECT_EQ(static_cast<double>(to_float(code_of(static_cast<std::uint32_t>(code)))),
              std::ldexp(1.0, code - 127))
        << code;
  }
  EXPECT_TRUE(std::isnan(to_float(code_of(255))));
}

TEST(E8m0Test, GivesBackEveryNormalPowerOfTwo) {
  for (std::uint32_t code = 1; code < 255; ++code) {
    EXPECT_EQ(round_up_to_e8m0(to_float(code_of(code))), code_of(code)) << code;
  }
}

TEST(E8m0Test, RoundsEverythingElseUp) {
  for (std::uint32_t code = 1; code < 254; ++code) {
    const float power = to_float(code_of(code));
    EXPECT_EQ(round_up_to_e8m0(std::nextafter(power, HUGE_VALF)), code_of(code + 1)) << code;
    EXPECT_EQ(round_up_to_e8m0(1.5f * power), code_of(code + 1)) << code;
    EXPECT_EQ(round_up_to_e8m0(std::nextafter(2.0f * power, 0.0f)), code_of(code + 1)) << code;
  }
}

}  // namespace
}  // namespace locket::numerics
