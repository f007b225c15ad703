// A regular expression as a tree. The parts of regex.h; plain data and a pure function.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "chat/internal/char_set.h"

namespace locket::chat {

inline constexpr std::size_t kWithoutEnd = std::numeric_limits<std::size_t>::max();

struct RegexNode {
  enum class Kind { kSet, kSequence, kChoice, kRepeat, kCount };

  Kind kind = Kind::kSequence;
  CharSet set;                   // kSet
  std::vector<RegexNode> parts;  // kSequence, kChoice; one for kRepeat
  std::size_t min = 0;           // kRepeat
  std::size_t max = kWithoutEnd;
};

// One alternative of the whole expression.
struct RegexBranch {
  RegexNode node;
  bool begins_text = false;  // ^
  bool ends_text = false;    // $
};

// REQUIRES: at most kMaxPatternBytes.
[[nodiscard]] Result<std::vector<RegexBranch>> parse_regex(std::string_view pattern);

}  // namespace locket::chat
