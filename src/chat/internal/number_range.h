// Numbers between bounds and multiples of a number, as an automaton over their digits. Pure
// functions on their builder.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "chat/internal/byte_automaton.h"

namespace locket::chat {

// A number by its digits: no leading zero in `whole` (but "0"), no trailing zero in `fraction`.
struct Decimal {
  bool is_negative = false;
  std::string whole = "0";
  std::string fraction;

  bool is_zero() const { return whole == "0" && fraction.empty(); }
};

// Nothing if it has more than 60 digits on a side. REQUIRES: `digits` is a JSON number.
std::optional<Decimal> read_decimal(std::string_view digits);

struct NumberBound {
  Decimal value;
  bool is_exclusive = false;
};

struct NumberLimits {
  enum class Fraction { kNone, kAllowed, kCount };

  Fraction fraction = Fraction::kAllowed;
  std::optional<NumberBound> low;
  std::optional<NumberBound> high;
  // The number is a multiple of step / 10^step_places. 0: of nothing.
  std::uint32_t step = 0;
  std::size_t step_places = 0;
};

inline constexpr std::uint32_t kMaxStep = 1000;
inline constexpr std::size_t kMaxStepPlaces = 6;

// A rule for the numbers within `limits`, written without an exponent. kBadRequest says that the
// automaton would be too large. REQUIRES: step <= kMaxStep, step_places <= kMaxStepPlaces.
[[nodiscard]] Result<RuleId> add_number_range(AutomatonBuilder& builder,
                                              const NumberLimits& limits);

}  // namespace locket::chat
