#include "server/compact_arguments.h"

#include <array>
#include <charconv>
#include <fmt/format.h>
#include <optional>

#include "base/check.h"
#include "chat/json_number.h"
#include "chat/python_json.h"
#include "chat/utf8.h"

namespace locket::server {
namespace {

bool is_blank(char byte) { return byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t'; }
bool is_digit(char byte) { return byte >= '0' && byte <= '9'; }
bool is_high_surrogate(std::uint32_t unit) { return unit >= 0xD800 && unit < 0xDC00; }
bool is_low_surrogate(std::uint32_t unit) { return unit >= 0xDC00 && unit < 0xE000; }

std::size_t count_digits(std::string_view text) {
  std::size_t count = 0;
  while (count < text.size() && is_digit(text[count])) ++count;
  return count;
}

bool is_json_number(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  const std::size_t whole = count_digits(text);
  if (whole == 0 || (whole > 1 && text.front() == '0')) return false;
  text.remove_prefix(whole);
  if (text.starts_with('.')) {
    const std::size_t fraction = count_digits(text.substr(1));
    if (fraction == 0) return false;
    text.remove_prefix(fraction + 1);
  }
  if (text.empty()) return true;
  if (text.front() != 'e' && text.front() != 'E') return false;
  text.remove_prefix(1);
  if (text.starts_with('+') || text.starts_with('-')) text.remove_prefix(1);
  return !text.empty() && count_digits(text) == text.size();
}

std::string rewrite_number(const std::string& digits) {
  if (digits.find_first_of(".eE") == std::string::npos) return digits == "-0" ? "0" : digits;
  const std::optional<double> value = chat::read_double(digits);
  return value ? javascript_number(*value) : digits;
}

std::string_view literal_of(char first) {
  if (first == 't') return "true";
  if (first == 'f') return "false";
  if (first == 'n') return "null";
  return {};
}

}  // namespace

std::string javascript_number(double value) {
  if (value == 0.0) return "0";
  std::array<char, 64> buffer{};
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                          std::chars_format::scientific);
  LOCKET_CHECK(error == std::errc());
  const std::string_view written(buffer.data(), static_cast<std::size_t>(end - buffer.data()));
  const std::size_t mark = written.find('e');
  std::string digits;
  for (const char byte : written.substr(0, mark)) {
    if (is_digit(byte)) digits.push_back(byte);
  }
  std::string_view exponent_text = written.substr(mark + 1);
  if (exponent_text.starts_with('+')) exponent_text.remove_prefix(1);
  // Where the point stands, counted in digits from the first one.
  const auto point = static_cast<int>(chat::read_int64(exponent_text).value_or(0)) + 1;
  const auto count = static_cast<int>(digits.size());

  std::string out = written.front() == '-' ? "-" : "";
  if (point > 21 || point <= -6) {
    out += digits.substr(0, 1);
    if (count > 1) out += "." + digits.substr(1);
    out += fmt::format("e{:+}", point - 1);
  } else if (point <= 0) {
    out += "0." + std::string(static_cast<std::size_t>(-point), '0') + digits;
  } else if (point >= count) {
    out += digits + std::string(static_cast<std::size_t>(point - count), '0');
  } else {
    digits.insert(static_cast<std::size_t>(point), 1, '.');
    out += digits;
  }
  return out;
}

std::string compact_arguments(std::string_view text) {
  CompactArguments compact;
  std::string out = compact.push(text);
  out += compact.finish();
  return out;
}

std::string CompactArguments::push(std::string_view text) {
  std::string out;
  for (const char byte : text) step(byte, out);
  return out;
}

std::string CompactArguments::finish() {
  std::string out;
  if (mode_ == Mode::kNumber && end_number(out)) return out;
  release_surrogate(out);
  const bool is_whole = mode_ == Mode::kBetween && expected_ == Expected::kEnd;
  if (!is_whole) out += pending_;
  pending_.clear();
  return out;
}

void CompactArguments::step(char byte, std::string& out) {
  switch (mode_) {
    case Mode::kBetween:
      return step_between(byte, out);
    case Mode::kString:
      return step_string(byte, out);
    case Mode::kEscape:
      return step_escape(byte, out);
    case Mode::kUnicode:
      return step_unicode(byte, out);
    case Mode::kNumber:
      if (is_digit(byte) || std::string_view("+-.eE").find(byte) != std::string_view::npos) {
        pending_.push_back(byte);
        return;
      }
      return end_number(out) ? step_between(byte, out) : break_off(byte, out);
    case Mode::kLiteral:
      return step_literal(byte, out);
    case Mode::kBroken:
      out.push_back(byte);
      return;
    case Mode::kCount:
      break;
  }
  LOCKET_CHECK(false);
}

void CompactArguments::step_between(char byte, std::string& out) {
  if (is_blank(byte)) {
    pending_.push_back(byte);
    return;
  }
  const std::string blanks = pending_;
  pending_.clear();
  if (!step_next(byte, out)) {
    pending_ = blanks;
    break_off(byte, out);
  }
}

bool CompactArguments::step_next(char byte, std::string& out) {
  switch (expected_) {
    case Expected::kFirstItem:
      if (byte == ']') return close('[', out);
      return step_value(byte, out);
    case Expected::kValue:
      return step_value(byte, out);
    case Expected::kFirstKey:
      if (byte == '}') return close('{', out);
      [[fallthrough]];
    case Expected::kKey:
      if (byte != '"') return false;
      open_string(Expected::kColon, out);
      return true;
    case Expected::kColon:
      if (byte != ':') return false;
      out.push_back(byte);
      expected_ = Expected::kValue;
      return true;
    case Expected::kNext:
      if (byte == '}') return close('{', out);
      if (byte == ']') return close('[', out);
      if (byte != ',') return false;
      out.push_back(byte);
      expected_ = open_.back() == '{' ? Expected::kKey : Expected::kValue;
      return true;
    case Expected::kEnd:
      return false;
    case Expected::kCount:
      break;
  }
  LOCKET_CHECK(false);
}

bool CompactArguments::step_value(char byte, std::string& out) {
  if (byte == '{') {
    open(byte, Expected::kFirstKey, out);
  } else if (byte == '[') {
    open(byte, Expected::kFirstItem, out);
  } else if (byte == '"') {
    open_string(open_.empty() ? Expected::kEnd : Expected::kNext, out);
  } else if (byte == '-' || is_digit(byte)) {
    mode_ = Mode::kNumber;
    pending_.push_back(byte);
  } else if (!literal_of(byte).empty()) {
    mode_ = Mode::kLiteral;
    pending_.push_back(byte);
  } else {
    return false;
  }
  return true;
}

void CompactArguments::step_literal(char byte, std::string& out) {
  const std::string_view literal = literal_of(pending_.front());
  if (byte != literal[pending_.size()]) return break_off(byte, out);
  pending_.push_back(byte);
  if (pending_.size() < literal.size()) return;
  out += pending_;
  pending_.clear();
  end_value();
}

void CompactArguments::step_string(char byte, std::string& out) {
  if (byte == '\\') {
    mode_ = Mode::kEscape;
    pending_.push_back(byte);
    return;
  }
  release_surrogate(out);
  if (static_cast<unsigned char>(byte) < 0x20) return break_off(byte, out);
  out.push_back(byte);
  if (byte != '"') return;
  mode_ = Mode::kBetween;
  expected_ = behind_string_;
}

void CompactArguments::step_escape(char byte, std::string& out) {
  constexpr std::string_view kLetters = "\"\\/bfnrt";
  constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
  if (byte == 'u') {
    mode_ = Mode::kUnicode;
    pending_.push_back(byte);
    return;
  }
  const std::size_t which = kLetters.find(byte);
  if (which == std::string_view::npos) return break_off(byte, out);
  release_surrogate(out);
  chat::append_escaped(kMeanings.substr(which, 1), out);
  pending_.clear();
  mode_ = Mode::kString;
}

void CompactArguments::step_unicode(char byte, std::string& out) {
  constexpr std::string_view kHexDigits = "0123456789abcdefABCDEF";
  constexpr std::size_t kWholeEscape = 6;
  if (kHexDigits.find(byte) == std::string_view::npos) return break_off(byte, out);
  pending_.push_back(byte);
  if (pending_.size() < kWholeEscape) return;
  std::uint32_t unit = 0;
  std::from_chars(pending_.data() + 2, pending_.data() + kWholeEscape, unit, 16);
  pending_.clear();
  mode_ = Mode::kString;
  add_code_unit(unit, out);
}

void CompactArguments::add_code_unit(std::uint32_t unit, std::string& out) {
  std::string character;
  if (high_surrogate_ != 0 && is_low_surrogate(unit)) {
    chat::append_utf8(0x10000 + ((high_surrogate_ - 0xD800) << 10) + (unit - 0xDC00), character);
    high_surrogate_ = 0;
    out += character;
    return;
  }
  release_surrogate(out);
  if (is_high_surrogate(unit)) {
    high_surrogate_ = unit;
  } else if (is_low_surrogate(unit)) {
    out += fmt::format("\\u{:04x}", unit);
  } else {
    chat::append_utf8(unit, character);
    chat::append_escaped(character, out);
  }
}

// A half without the other one stays an escape, as JavaScript writes it.
void CompactArguments::release_surrogate(std::string& out) {
  if (high_surrogate_ != 0) out += fmt::format("\\u{:04x}", high_surrogate_);
  high_surrogate_ = 0;
}

void CompactArguments::open(char bracket, Expected expected, std::string& out) {
  out.push_back(bracket);
  open_.push_back(bracket);
  expected_ = expected;
}

void CompactArguments::open_string(Expected behind, std::string& out) {
  out.push_back('"');
  mode_ = Mode::kString;
  behind_string_ = behind;
}

bool CompactArguments::close(char bracket, std::string& out) {
  if (open_.back() != bracket) return false;
  open_.pop_back();
  out.push_back(bracket == '{' ? '}' : ']');
  end_value();
  return true;
}

void CompactArguments::end_value() {
  mode_ = Mode::kBetween;
  expected_ = open_.empty() ? Expected::kEnd : Expected::kNext;
}

bool CompactArguments::end_number(std::string& out) {
  if (!is_json_number(pending_)) return false;
  out += rewrite_number(pending_);
  pending_.clear();
  end_value();
  return true;
}

void CompactArguments::break_off(char byte, std::string& out) {
  release_surrogate(out);
  out += pending_;
  pending_.clear();
  out.push_back(byte);
  mode_ = Mode::kBroken;
}

}  // namespace locket::server
