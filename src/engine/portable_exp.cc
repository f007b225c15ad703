#include "engine/portable_exp.h"

#include <array>
#include <cmath>
#include <cstddef>

#include "base/check.h"

namespace locket::engine {
namespace {

// 1/0!, 1/1!, ...: for |x| <= ln(2) / 2 the first term left out is below 2^-60.
constexpr std::array<double, 15> kInverseFactorials = [] {
  std::array<double, 15> table{};
  double factorial = 1.0;
  for (std::size_t i = 0; i < table.size(); ++i) {
    factorial *= i == 0 ? 1.0 : static_cast<double>(i);
    table[i] = 1.0 / factorial;
  }
  return table;
}();

}  // namespace

double portable_exp(double x) {
  LOCKET_DCHECK(x <= 0.0);
  // Below this the result is less than half of the smallest denormal number.
  constexpr double kSmallest = -745.1332191019412;
  constexpr double kOneOverLn2 = 0x1.71547652b82fep+0;
  // ln 2 in two parts: the first has 33 bits, so a whole number of up to 20 bits times it is exact.
  constexpr double kLn2High = 0x1.62e42feep-1;
  constexpr double kLn2Low = 0x1.a39ef35793c76p-33;
  if (x < kSmallest) return 0.0;
  const double power = std::floor(x * kOneOverLn2 + 0.5);
  const double rest = (x - power * kLn2High) - power * kLn2Low;
  double sum = kInverseFactorials.back();
  for (std::size_t i = kInverseFactorials.size() - 1; i > 0; --i) {
    sum = sum * rest + kInverseFactorials[i - 1];
  }
  return std::ldexp(sum, static_cast<int>(power));
}

}  // namespace locket::engine
