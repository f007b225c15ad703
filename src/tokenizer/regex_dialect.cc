#include "tokenizer/regex_dialect.h"

#include <fmt/format.h>

#include "tokenizer/tokenizer.h"
#include "tokenizer/unicode_additions.h"
#include "tokenizer/utf8.h"

namespace locket::tokenizer {
namespace {

// White_Space of Unicode; PCRE2's own \s has U+180E as well.
constexpr std::string_view kSpaceRanges =
    "\\x{9}-\\x{d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}"
    "\\x{205f}\\x{3000}";
constexpr std::string_view kKnownCategories = "LMNPS";
constexpr std::string_view kKnownGroups[] = {"(?:", "(?=", "(?!", "(?<=", "(?<!"};

bool is_ascii_letter_or_digit(char byte) {
  return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
         (byte >= '0' && byte <= '9');
}

// \p{X} as class content.
std::string category_ranges(char category) {
  std::string ranges = fmt::format("\\p{{{}}}", category);
  for (const UnicodeAddition& addition : unicode_additions()) {
    if (addition.category != category) continue;
    ranges += fmt::format("\\x{{{:x}}}-\\x{{{:x}}}", static_cast<unsigned>(addition.first),
                          static_cast<unsigned>(addition.last));
  }
  return ranges;
}

class Translator {
 public:
  explicit Translator(std::string_view pattern) : pattern_(pattern) {}

  Result<std::string> translate() {
    while (place_ < pattern_.size()) {
      LOCKET_TRY_STATUS(in_class_ ? step_in_class() : step_outside());
    }
    return std::move(translated_);
  }

 private:
  std::string_view rest() const { return pattern_.substr(place_); }
  bool sees(std::string_view text) const { return rest().starts_with(text); }

  void copy(std::size_t bytes) {
    translated_ += pattern_.substr(place_, bytes);
    place_ += bytes;
  }

  tl::unexpected<Error> unknown(std::size_t bytes) const {
    return fail(ErrorCode::kBadCheckpoint,
                fmt::format("\"{}\" at byte {} is not syntax that is known here",
                            repair_utf8(rest().substr(0, bytes)), place_));
  }

  Status step_outside() {
    if (sees("\\")) return escape();
    if (sees("^") || sees("}+")) return unknown(2);
    if (sees("(?")) return group();
    if (!sees("[")) {
      copy(1);
      return {};
    }
    in_class_ = true;
    copy(sees("[^") ? 2 : 1);
    // Where a class begins with ] the dialects differ.
    if (sees("]")) return unknown(1);
    return {};
  }

  // Oniguruma has nested classes, named classes and intersections; PCRE2 reads them as characters.
  Status step_in_class() {
    if (sees("\\")) return escape();
    if (sees("[") || sees("&&")) return unknown(2);
    if (sees("]")) in_class_ = false;
    copy(1);
    return {};
  }

  Status group() {
    for (const std::string_view known : kKnownGroups) {
      if (!sees(known)) continue;
      copy(known.size());
      return {};
    }
    return unknown(3);
  }

  Status escape() {
    if (rest().size() < 2) return unknown(1);
    const char letter = rest()[1];
    if (letter == 's' || letter == 'S') return shorthand(kSpaceRanges, letter == 'S', 2);
    if (letter == 'p' || letter == 'P') return property(letter == 'P');
    const bool same_meaning = letter == 'r' || letter == 'n' || letter == 't';
    if (is_ascii_letter_or_digit(letter) && !same_meaning) return unknown(2);
    copy(2);
    return {};
  }

  Status property(bool negated) {
    constexpr std::size_t kBytes = 5;  // \p{L}
    const bool known = rest().size() >= kBytes && rest()[2] == '{' && rest()[4] == '}' &&
                       kKnownCategories.find(rest()[3]) != std::string_view::npos;
    if (!known) return unknown(kBytes);
    return shorthand(category_ranges(rest()[3]), negated, kBytes);
  }

  // Writes a class for the `bytes` of shorthand that stand here; inside a class only its content.
  Status shorthand(std::string_view ranges, bool negated, std::size_t bytes) {
    if (in_class_ && negated) return unknown(bytes);
    const std::string_view opening = negated ? "[^" : "[";
    translated_ += in_class_ ? std::string(ranges) : fmt::format("{}{}]", opening, ranges);
    place_ += bytes;
    return {};
  }

  std::string_view pattern_;
  std::size_t place_ = 0;
  bool in_class_ = false;
  std::string translated_;
};

}  // namespace

Result<std::string> to_pcre2_pattern(std::string_view pattern) {
  return Translator(pattern).translate();
}

}  // namespace locket::tokenizer
