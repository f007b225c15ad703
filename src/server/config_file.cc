#include "server/config_file.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace locket::server {
namespace {

bool is_space(char letter) { return letter == ' ' || letter == '\t' || letter == '\r'; }

bool is_digit(char letter) { return letter >= '0' && letter <= '9'; }

bool is_name_letter(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') || is_digit(letter) ||
         letter == '-' || letter == '_';
}

// The rest of one line, read from the left. Functions that fail return what would be right.
class Line {
 public:
  explicit Line(std::string_view text) : rest_(text) {}

  void skip_space() {
    while (!rest_.empty() && is_space(rest_.front())) rest_.remove_prefix(1);
  }
  // At the end, or at a comment.
  bool is_over() {
    skip_space();
    return rest_.empty() || rest_.front() == '#';
  }
  bool take(char letter) {
    skip_space();
    if (rest_.empty() || rest_.front() != letter) return false;
    rest_.remove_prefix(1);
    return true;
  }
  std::string take_name() {
    skip_space();
    const auto* const end = std::ranges::find_if_not(rest_, is_name_letter);
    std::string name(rest_.begin(), end);
    rest_.remove_prefix(name.size());
    std::ranges::replace(name, '_', '-');
    return name;
  }

  std::string take_value(std::string& value) {
    skip_space();
    if (take('"')) return take_escaped(value);
    if (take('\'')) return take_literal(value);
    const auto* const end = std::ranges::find_if(rest_, [](char letter) {
      return is_space(letter) || letter == ',' || letter == ']' || letter == '#';
    });
    value.assign(rest_.begin(), end);
    rest_.remove_prefix(value.size());
    const bool is_number = !value.empty() && (is_digit(value.front()) || value.front() == '-') &&
                           value.find_first_not_of("0123456789.eE+-") == std::string::npos;
    const bool is_known = is_number || value == "true" || value == "false";
    return is_known ? "" : "a value is a number, true, false, a list, or text in quotes";
  }

  std::string take_values(std::vector<std::string>& values) {
    if (!take('[')) return take_value(values.emplace_back());
    while (!take(']')) {
      std::string fault = take_value(values.emplace_back());
      if (!fault.empty()) return fault;
      if (!take(',') && (rest_.empty() || rest_.front() != ']')) {
        return "a list ends on its line with ], and commas stand between its values";
      }
    }
    return "";
  }

 private:
  std::string take_escaped(std::string& value) {
    while (!rest_.empty() && rest_.front() != '"') {
      char letter = rest_.front();
      rest_.remove_prefix(1);
      if (letter == '\\') {
        constexpr std::string_view kEscapes = "\"\\nt";
        constexpr std::string_view kMeanings = "\"\\\n\t";
        const std::size_t index = rest_.empty() ? kEscapes.npos : kEscapes.find(rest_.front());
        if (index == kEscapes.npos) return R"(a backslash is followed by one of " \ n t)";
        letter = kMeanings[index];
        rest_.remove_prefix(1);
      }
      value.push_back(letter);
    }
    return take('"') ? "" : "text ends on its line with a quote";
  }

  std::string take_literal(std::string& value) {
    const std::size_t end = rest_.find('\'');
    if (end == std::string_view::npos) return "text ends on its line with a quote";
    value = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return "";
  }

  std::string_view rest_;
};

// Empty, or what would be right.
std::string read_setting(Line& line, ConfigSetting& setting) {
  setting.name = line.take_name();
  if (setting.name.empty() || !line.take('=')) {
    return "a line is name = value, with the name of a flag without its dashes; there are no "
           "tables";
  }
  std::string fault = line.take_values(setting.values);
  if (fault.empty() && !line.is_over()) fault = "nothing but a comment stands behind a value";
  return fault;
}

}  // namespace

Result<std::vector<ConfigSetting>> read_config(std::string_view text, std::string_view where) {
  std::vector<ConfigSetting> settings;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    Line line(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.is_over()) continue;
    ConfigSetting setting = {.name = {}, .values = {}, .line = number};
    const std::string fault = read_setting(line, setting);
    if (!fault.empty()) {
      return fail(ErrorCode::kBadRequest, fmt::format("{}, line {}: {}", where, number, fault));
    }
    const auto same = std::ranges::find(settings, setting.name, &ConfigSetting::name);
    if (same != settings.end()) {
      return fail(
          ErrorCode::kBadRequest,
          fmt::format("{}, line {}: \"{}\" is set on line {} already; each name stands once", where,
                      number, setting.name, same->line));
    }
    settings.push_back(std::move(setting));
  }
  return settings;
}

}  // namespace locket::server
