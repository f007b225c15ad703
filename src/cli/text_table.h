// Tables of text for people: columns as wide as their widest cell, and numbers with commas.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace locket::cli {

// 113920 -> "113,920".
std::string grouped(std::uint64_t value);
// At most four decimals: 5031.4375 -> "5,031.4375", 389120.0 -> "389,120".
std::string grouped_decimal(double value);
// Words in lines of at most `width` columns, each after `indent`, which does not count.
std::string folded(std::string_view text, std::size_t width, std::string_view indent);

class TextTable {
 public:
  enum class Align { kLeft, kRight };

  explicit TextTable(std::vector<Align> columns);

  // One cell per column; the first row is the head.
  void add_row(std::vector<std::string> cells);
  // Every line starts with `indent` blanks and ends without any; two blanks between columns.
  std::string text(std::size_t indent) const;

 private:
  std::vector<Align> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace locket::cli
