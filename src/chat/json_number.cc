#include "chat/json_number.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <system_error>

#include "base/check.h"

namespace locket::chat {
namespace {

template <class T>
std::optional<T> read_integer(std::string_view digits) {
  T value = 0;
  const char* end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

// Whether a number outside of double's range is outside at the small end.
bool is_tiny(std::string_view digits) {
  const std::size_t mark = digits.find_first_of("eE");
  const std::string_view mantissa = digits.substr(0, mark);
  const std::size_t point = std::min(mantissa.find('.'), mantissa.size());
  const std::size_t first = mantissa.find_first_of("123456789");
  if (first == std::string_view::npos) return true;
  // Decimal exponent of the first digit that counts, without the written exponent.
  const auto place = static_cast<std::int64_t>(point) - static_cast<std::int64_t>(first);
  if (mark == std::string_view::npos) return place < 0;
  std::string_view written = digits.substr(mark + 1);
  const bool negative = written.starts_with('-');
  if (negative || written.starts_with('+')) written.remove_prefix(1);
  const std::optional<std::int64_t> exponent = read_int64(written);
  if (!exponent) return negative;
  return (negative ? -*exponent : *exponent) < -place;
}

}  // namespace

std::optional<double> read_double(std::string_view digits) {
  double value = 0.0;
  const char* end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, value);
  if (error == std::errc::result_out_of_range) {
    if (!is_tiny(digits)) return std::nullopt;
    return digits.starts_with('-') ? -0.0 : 0.0;
  }
  if (error != std::errc() || stop != end || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::optional<std::int64_t> read_int64(std::string_view digits) {
  return read_integer<std::int64_t>(digits);
}

std::optional<std::uint64_t> read_uint64(std::string_view digits) {
  return read_integer<std::uint64_t>(digits);
}

std::string python_repr(double value) {
  LOCKET_CHECK(std::isfinite(value));
  // Shortest round-trip digits, as d.ddde[+-]xx; Python only places the point elsewhere.
  std::array<char, 64> buffer{};
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                          std::chars_format::scientific);
  LOCKET_CHECK(error == std::errc());
  const std::string_view written(buffer.data(), static_cast<std::size_t>(end - buffer.data()));
  const std::size_t mark = written.find('e');
  const bool negative = written.front() == '-';
  std::string digits;
  for (const char byte : written.substr(0, mark)) {
    if (byte >= '0' && byte <= '9') digits.push_back(byte);
  }
  std::string_view exponent_text = written.substr(mark + 1);
  if (exponent_text.starts_with('+')) exponent_text.remove_prefix(1);
  const auto exponent = static_cast<int>(read_int64(exponent_text).value_or(0));

  std::string out = negative ? "-" : "";
  if (exponent < -4 || exponent >= 16) {
    out += digits.substr(0, 1);
    if (digits.size() > 1) out += "." + digits.substr(1);
    out += fmt::format("e{}{:02}", exponent < 0 ? '-' : '+', std::abs(exponent));
  } else if (exponent < 0) {
    out += "0." + std::string(static_cast<std::size_t>(-exponent - 1), '0') + digits;
  } else {
    const auto whole = static_cast<std::size_t>(exponent) + 1;
    if (digits.size() <= whole) digits.append(whole - digits.size() + 1, '0');
    out += digits.substr(0, whole) + "." + digits.substr(whole);
  }
  return out;
}

}  // namespace locket::chat
