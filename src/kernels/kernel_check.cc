#include "kernels/kernel_check.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <utility>

#include "kernels/kernel_check_cases.h"

namespace locket::kernels {
namespace {

bool is_same(float left, float right) {
  if (std::isnan(left) || std::isnan(right)) return std::isnan(left) && std::isnan(right);
  return std::bit_cast<std::uint32_t>(left) == std::bit_cast<std::uint32_t>(right);
}

bool is_same(const CheckOutcome& outcome) {
  return std::ranges::equal(outcome.actual, outcome.expected,
                            [](float left, float right) { return is_same(left, right); });
}

std::string describe(const CheckOutcome& outcome, std::size_t number) {
  const std::string where = "case " + std::to_string(number) + " (" + outcome.shape + ")";
  if (outcome.actual.size() != outcome.expected.size()) {
    return where + ": " + std::to_string(outcome.actual.size()) + " values, not " +
           std::to_string(outcome.expected.size());
  }
  std::size_t at = 0;
  while (is_same(outcome.actual[at], outcome.expected[at])) ++at;
  const auto hex = [](float value) {
    std::array<char, 40> text = {};
    std::snprintf(text.data(), text.size(), "%a", static_cast<double>(value));
    return std::string(text.data());
  };
  return where + ", value " + std::to_string(at) + ": " + hex(outcome.actual[at]) + ", not " +
         hex(outcome.expected[at]);
}

KernelCheck check_kernel(const CheckCase& kernel, const KernelTable& table, std::size_t cases) {
  KernelCheck check = {.kernel = kernel.kernel, .cases = cases, .different = 0, .first = {}};
  for (std::size_t number = 0; number < cases; ++number) {
    CheckDraws draws(static_cast<std::uint32_t>(number));
    const CheckOutcome outcome = kernel.run(table, draws);
    if (is_same(outcome)) continue;
    if (check.different == 0) check.first = describe(outcome, number);
    ++check.different;
  }
  return check;
}

}  // namespace

std::vector<KernelCheck> check_kernels(const KernelTable& table, std::size_t cases) {
  std::vector<KernelCheck> checks;
  for (const auto& kernels : {product_checks(), index_checks(), value_checks()}) {
    for (const CheckCase& kernel : kernels) {
      checks.push_back(check_kernel(kernel, table, cases));
    }
  }
  return checks;
}

}  // namespace locket::kernels
