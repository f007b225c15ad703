#include "cli/text_table.h"

#include <algorithm>
#include <fmt/format.h>

#include "base/check.h"

namespace locket::cli {
namespace {

// Commas between the digits before `point`.
std::string with_commas(std::string text, std::size_t point) {
  const std::size_t first_digit = text.front() == '-' ? 1 : 0;
  for (std::size_t place = point; place > first_digit + 3; place -= 3)
    text.insert(place - 3, 1, ',');
  return text;
}

}  // namespace

std::string grouped(std::uint64_t value) {
  const std::string text = fmt::format("{}", value);
  return with_commas(text, text.size());
}

std::string grouped_decimal(double value) {
  std::string text = fmt::format("{:.4f}", value);
  text.erase(text.find_last_not_of('0') + 1);
  const std::size_t point = text.find('.');
  if (text.back() == '.') text.pop_back();
  return with_commas(text, point);
}

std::string folded(std::string_view text, std::size_t width, std::string_view indent) {
  std::string out;
  std::size_t column = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const bool starts_line = column == 0 || column + 1 + end > width;
    if (starts_line) out += (out.empty() ? "" : "\n") + std::string(indent);
    if (!starts_line) out += ' ';
    out += text.substr(0, end);
    column = starts_line ? end : column + 1 + end;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out + "\n";
}

TextTable::TextTable(std::vector<Align> columns) : columns_(std::move(columns)) {}

void TextTable::add_row(std::vector<std::string> cells) {
  LOCKET_CHECK(cells.size() == columns_.size());
  rows_.push_back(std::move(cells));
}

std::string TextTable::text(std::size_t indent) const {
  std::vector<std::size_t> widths(columns_.size());
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows_) {
    std::string line(indent, ' ');
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i > 0) line += "  ";
      const bool is_right = columns_[i] == Align::kRight;
      line += is_right ? fmt::format("{:>{}}", row[i], widths[i])
                       : fmt::format("{:<{}}", row[i], widths[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace locket::cli
