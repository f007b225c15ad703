#include "chat/stop_scanner.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace locket::chat {

StopScanner::StopScanner(std::vector<std::string> patterns) {
  for (std::string& text : patterns) {
    LOCKET_CHECK(!text.empty());
    Pattern pattern;
    pattern.fallback.assign(text.size(), 0);
    std::size_t border = 0;
    for (std::size_t end = 1; end < text.size(); ++end) {
      while (border > 0 && text[border] != text[end]) border = pattern.fallback[border - 1];
      if (text[border] == text[end]) ++border;
      pattern.fallback[end] = border;
    }
    pattern.text = std::move(text);
    patterns_.push_back(std::move(pattern));
  }
}

void StopScanner::advance(Pattern& pattern, char byte) {
  std::size_t matched = pattern.matched;
  while (matched > 0 && pattern.text[matched] != byte) matched = pattern.fallback[matched - 1];
  if (pattern.text[matched] == byte) ++matched;
  pattern.matched = matched;
}

StopScanner::Step StopScanner::push(char byte) {
  held_.erase(0, released_);
  released_ = 0;
  held_.push_back(byte);
  std::optional<std::size_t> match;
  std::size_t needed = 0;
  for (std::size_t index = 0; index < patterns_.size(); ++index) {
    Pattern& pattern = patterns_[index];
    advance(pattern, byte);
    needed = std::max(needed, pattern.matched);
    if (!match && pattern.matched == pattern.text.size()) match = index;
  }
  if (!match) {
    released_ = held_.size() - needed;
    return {std::string_view(held_).substr(0, released_), std::nullopt};
  }
  const std::size_t text_bytes = held_.size() - patterns_[*match].text.size();
  for (Pattern& pattern : patterns_) pattern.matched = 0;
  released_ = held_.size();
  return {std::string_view(held_).substr(0, text_bytes), match};
}

std::string StopScanner::take_rest() {
  held_.erase(0, released_);
  released_ = 0;
  for (Pattern& pattern : patterns_) pattern.matched = 0;
  return std::exchange(held_, {});
}

}  // namespace locket::chat
