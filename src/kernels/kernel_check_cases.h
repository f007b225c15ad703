// Random inputs for the check of kernels, and what one case gives. Deterministic: a case follows
// from its number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/kernel_table.h"
#include "kernels/rounding.h"

namespace locket::kernels {

class CheckDraws {
 public:
  explicit CheckDraws(std::uint32_t number);

  std::size_t below(std::size_t count) { return engine_() % count; }
  bool flip() { return below(2) == 0; }
  Rounding rounding() { return flip() ? Rounding::kBf16 : Rounding::kNone; }

  // Finite numbers, as large as those of this case are: usual ones, such whose products lie on both
  // sides of the least or of the largest float, or denormals.
  float value();
  std::vector<float> values(std::size_t count);
  std::vector<float> bf16_values(std::size_t count);
  // Bfloat16 values where a mode with this rounding has them.
  std::vector<float> values(std::size_t count, Rounding rounding);
  // Like activations, whatever the case.
  std::vector<float> usual_values(std::size_t count);
  // Codes of a power of two, none of them NaN.
  std::byte scale_code();

 private:
  enum class Range { kUsual, kTiny, kHuge, kDenormal, kCount };

  std::uint32_t exponent();

  std::mt19937 engine_;
  Range range_;
};

// What a kernel gives beside what it must give.
struct CheckOutcome {
  std::vector<float> actual;
  std::vector<float> expected;
  std::string shape;
};

struct CheckCase {
  std::string_view kernel;
  CheckOutcome (*run)(const KernelTable& table, CheckDraws& draws);
};

// "3 tokens, 17 rows".
std::string check_shape(std::initializer_list<std::pair<const char*, std::size_t>> facts);
// Integers among the values of an outcome: every one becomes floats that are equal if it is.
void append_exactly(std::uint64_t value, std::vector<float>& list);

// Products with weights, and attention; scores of index keys; everything that works on values one
// by one. Together they call every function of a KernelTable.
std::span<const CheckCase> product_checks();
std::span<const CheckCase> index_checks();
std::span<const CheckCase> value_checks();

}  // namespace locket::kernels
