#include "chat/internal/number_range.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <tuple>

#include "chat/internal/state_explorer.h"
#include "chat/json_number.h"

namespace locket::chat {
namespace {

constexpr std::size_t kMaxNumberStates = 30'000;
constexpr std::size_t kMaxDigits = 60;
constexpr std::size_t kWholeDigits = 18;
constexpr std::size_t kFractionDigits = 18;

enum class Phase { kStart, kSigned, kZero, kWhole, kPoint, kFraction, kCount };
enum class Order { kLess, kEqual, kGreater };

// What is known of a number after some of its characters. The size is compared with two bounds.
struct NumberState {
  Phase phase = Phase::kStart;
  bool is_negative = false;
  std::size_t digits = 0;  // of the part that the phase is in
  std::array<Order, 2> order = {Order::kEqual, Order::kEqual};
  std::uint64_t remainder = 0;

  friend bool operator<(const NumberState& one, const NumberState& other) {
    return std::tie(one.phase, one.is_negative, one.digits, one.order, one.remainder) <
           std::tie(other.phase, other.is_negative, other.digits, other.order, other.remainder);
  }
};

// The bounds of the size, without its sign.
struct SizeBounds {
  std::optional<NumberBound> low;
  std::optional<NumberBound> high;
};

class NumberAutomaton {
 public:
  explicit NumberAutomaton(const NumberLimits& limits) : limits_(limits) {
    for (const auto& bound : {limits.low, limits.high}) {
      if (bound) whole_digits_ = std::max(whole_digits_, bound->value.whole.size() + 1);
    }
    if (limits.step != 0) fraction_digits_ = limits.step_places;
    // The size of a negative number is bounded the other way round.
    if (limits.low && !limits.low->value.is_negative) sizes_[0].low = limits.low;
    const bool has_size =
        limits.high && (limits.high->value.is_negative || limits.high->value.is_zero());
    if (has_size) sizes_[1].low = limits.high;
    sizes_[0].high = limits.high;
    sizes_[1].high = limits.low;
    allows_positive_ = !limits.high || !limits.high->value.is_negative;
    allows_negative_ = !limits.low || limits.low->value.is_negative;
  }

  std::optional<NumberState> step(const NumberState& state, unsigned char byte) const {
    switch (state.phase) {
      case Phase::kStart:
        if (byte == '-' && allows_negative_) return begin(true);
        return allows_positive_ ? first_digit(begin(false), byte) : std::nullopt;
      case Phase::kSigned:
        return first_digit(state, byte);
      case Phase::kZero:
      case Phase::kWhole:
        if (byte == '.') return point(state);
        return state.phase == Phase::kWhole ? whole_digit(state, byte) : std::nullopt;
      case Phase::kPoint:
      case Phase::kFraction:
        return fraction_digit(state, byte);
      case Phase::kCount:
        break;
    }
    return std::nullopt;
  }

  bool is_final(const NumberState& state) const {
    const bool is_whole = state.phase == Phase::kZero || state.phase == Phase::kWhole;
    if (!is_whole && state.phase != Phase::kFraction) return false;
    const SizeBounds& bounds = bounds_of(state);
    const std::size_t places = is_whole ? 0 : state.digits;
    const Order low = final_order(state, 0, bounds.low);
    const Order high = final_order(state, 1, bounds.high);
    if (bounds.low && !fits(low, Order::kGreater, *bounds.low)) return false;
    if (bounds.high && !fits(high, Order::kLess, *bounds.high)) return false;
    if (limits_.step == 0) return true;
    std::uint64_t remainder = state.remainder;
    for (std::size_t place = places; place < limits_.step_places; ++place) remainder *= 10;
    return remainder % limits_.step == 0;
  }

 private:
  static NumberState begin(bool is_negative) {
    NumberState state;
    state.phase = Phase::kSigned;
    state.is_negative = is_negative;
    return state;
  }

  static bool fits(Order order, Order wanted, const NumberBound& bound) {
    return order == wanted || (order == Order::kEqual && !bound.is_exclusive);
  }

  const SizeBounds& bounds_of(const NumberState& state) const {
    return sizes_[state.is_negative ? 1 : 0];
  }

  static Order compare(char digit, char bound) {
    if (digit == bound) return Order::kEqual;
    return digit < bound ? Order::kLess : Order::kGreater;
  }

  std::optional<NumberState> first_digit(NumberState state, unsigned char byte) const {
    if (byte < '0' || byte > '9') return std::nullopt;
    // An integer has one zero.
    const bool is_bare_zero = byte == '0' && limits_.fraction == NumberLimits::Fraction::kNone;
    if (is_bare_zero && state.is_negative) return std::nullopt;
    state.phase = byte == '0' ? Phase::kZero : Phase::kWhole;
    return add_whole_digit(state, static_cast<char>(byte));
  }

  std::optional<NumberState> whole_digit(const NumberState& state, unsigned char byte) const {
    if (byte < '0' || byte > '9' || state.digits >= whole_digits_) return std::nullopt;
    const std::optional<NumberBound>& high = bounds_of(state).high;
    if (high && state.digits >= high->value.whole.size()) return std::nullopt;
    return add_whole_digit(state, static_cast<char>(byte));
  }

  NumberState add_whole_digit(NumberState state, char digit) const {
    const SizeBounds& bounds = bounds_of(state);
    const std::array<const std::optional<NumberBound>*, 2> both = {&bounds.low, &bounds.high};
    for (std::size_t which = 0; which < both.size(); ++which) {
      const std::optional<NumberBound>& bound = *both[which];
      if (!bound || state.order[which] != Order::kEqual) continue;
      const std::string& whole = bound->value.whole;
      if (state.digits < whole.size()) {
        state.order[which] = compare(digit, whole[state.digits]);
      }
    }
    ++state.digits;
    return with_digit(state, digit);
  }

  NumberState with_digit(NumberState state, char digit) const {
    if (limits_.step == 0) return state;
    state.remainder = (state.remainder * 10 + static_cast<unsigned>(digit - '0')) % limits_.step;
    return state;
  }

  // How the whole part compares, now that its length is known.
  static Order whole_order(const NumberState& state, std::size_t which,
                           const std::optional<NumberBound>& bound) {
    if (!bound) return Order::kEqual;
    const std::size_t length = bound->value.whole.size();
    if (state.digits == length) return state.order[which];
    return state.digits < length ? Order::kLess : Order::kGreater;
  }

  Order final_order(const NumberState& state, std::size_t which,
                    const std::optional<NumberBound>& bound) const {
    if (!bound) return Order::kEqual;
    const bool is_fraction = state.phase == Phase::kFraction;
    const Order order = is_fraction ? state.order[which] : whole_order(state, which, bound);
    const std::size_t places = is_fraction ? state.digits : 0;
    const bool has_more = places < bound->value.fraction.size();
    return order == Order::kEqual && has_more ? Order::kLess : order;
  }

  std::optional<NumberState> point(NumberState state) const {
    if (limits_.fraction == NumberLimits::Fraction::kNone || fraction_digits_ == 0) {
      return std::nullopt;
    }
    const SizeBounds& bounds = bounds_of(state);
    state.order = {whole_order(state, 0, bounds.low), whole_order(state, 1, bounds.high)};
    state.phase = Phase::kPoint;
    state.digits = 0;
    return state;
  }

  std::optional<NumberState> fraction_digit(NumberState state, unsigned char byte) const {
    if (byte < '0' || byte > '9' || state.digits >= fraction_digits_) return std::nullopt;
    const char digit = static_cast<char>(byte);
    const SizeBounds& bounds = bounds_of(state);
    const std::array<const std::optional<NumberBound>*, 2> both = {&bounds.low, &bounds.high};
    for (std::size_t which = 0; which < both.size(); ++which) {
      const std::optional<NumberBound>& bound = *both[which];
      if (!bound || state.order[which] != Order::kEqual) continue;
      const std::string& fraction = bound->value.fraction;
      state.order[which] =
          compare(digit, state.digits < fraction.size() ? fraction[state.digits] : '0');
    }
    state.phase = Phase::kFraction;
    ++state.digits;
    return with_digit(state, digit);
  }

  const NumberLimits& limits_;
  std::size_t whole_digits_ = kWholeDigits;
  std::size_t fraction_digits_ = kFractionDigits;
  std::array<SizeBounds, 2> sizes_;  // of positive and of negative numbers
  bool allows_positive_ = true;
  bool allows_negative_ = true;
};

}  // namespace

std::optional<Decimal> read_decimal(std::string_view digits) {
  Decimal out;
  out.is_negative = digits.starts_with('-');
  if (out.is_negative) digits.remove_prefix(1);
  const std::size_t exponent_at = digits.find_first_of("eE");
  std::int64_t exponent = 0;
  if (exponent_at != std::string_view::npos) {
    std::string_view text = digits.substr(exponent_at + 1);
    if (text.starts_with('+')) text.remove_prefix(1);
    const std::optional<std::int64_t> value = read_int64(text);
    if (!value || *value > 60 || *value < -60) return std::nullopt;
    exponent = *value;
    digits = digits.substr(0, exponent_at);
  }
  const std::size_t point = digits.find('.');
  std::string all(digits.substr(0, point));
  std::int64_t places = 0;
  if (point != std::string_view::npos) {
    all += digits.substr(point + 1);
    places = static_cast<std::int64_t>(digits.size() - point - 1);
  }
  places -= exponent;
  if (places < 0) all.append(static_cast<std::size_t>(-places), '0');
  const std::size_t fraction_digits = places < 0 ? 0 : static_cast<std::size_t>(places);
  if (all.size() <= fraction_digits) all.insert(0, fraction_digits + 1 - all.size(), '0');
  out.whole = all.substr(0, all.size() - fraction_digits);
  out.fraction = all.substr(all.size() - fraction_digits);
  out.whole.erase(0, std::min(out.whole.find_first_not_of('0'), out.whole.size() - 1));
  out.fraction.erase(out.fraction.find_last_not_of('0') + 1);
  if (out.whole.size() > kMaxDigits || out.fraction.size() > kMaxDigits) return std::nullopt;
  if (out.is_zero()) out.is_negative = false;
  return out;
}

Result<RuleId> add_number_range(AutomatonBuilder& builder, const NumberLimits& limits) {
  const NumberAutomaton numbers(limits);
  const RuleId rule = builder.add_rule(Nesting::kSame);
  const std::optional<StateId> start = explore_states(
      builder, NumberState{}, {'-', '9'}, kMaxNumberStates,
      [&](const NumberState& state, unsigned char byte) { return numbers.step(state, byte); },
      [&](const NumberState& state, StateId id) {
        if (numbers.is_final(state)) builder.set_accepting(id);
      });
  if (!start) {
    return fail(ErrorCode::kBadRequest,
                fmt::format("needs more than {} states for its digits; use a smaller multipleOf",
                            kMaxNumberStates));
  }
  builder.add_jump(builder.rule(rule).start, *start);
  return rule;
}

}  // namespace locket::chat
