// Finds the first of several byte strings in text that comes in pieces, and holds back exactly what
// may still be the start of one. The match that ends first wins; of those that end at the same
// byte, the first in the list. Nothing depends on how the text was cut. Used for stop strings and
// for the marks of reasoning and tool markup. Not thread-safe.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace locket::chat {

class StopScanner {
 public:
  // REQUIRES: no pattern is empty.
  explicit StopScanner(std::vector<std::string> patterns);

  struct Step {
    // Text that is certain now and belongs to no match. Valid until the next call.
    std::string_view released;
    // Index of the pattern that ends with this byte; its text is left out, and the scanner starts
    // afresh behind it.
    std::optional<std::size_t> match;
  };

  Step push(char byte);

  // The pattern that a match names.
  const std::string& pattern(std::size_t index) const { return patterns_[index].text; }

  // What is held back, which no longer can become a match. The scanner starts afresh.
  std::string take_rest();

 private:
  // Knuth-Morris-Pratt: how much of the pattern the text ends with.
  struct Pattern {
    std::string text;
    std::vector<std::size_t> fallback;  // [text.size()] longest border of the first i + 1 bytes
    std::size_t matched = 0;
  };

  static void advance(Pattern& pattern, char byte);

  std::vector<Pattern> patterns_;
  std::string held_;
  std::size_t released_ = 0;  // bytes of held_ that the last step gave out
};

}  // namespace locket::chat
