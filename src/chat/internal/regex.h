// Regular expressions of schemas, as an automaton over characters that is run without ever going
// back, so that its time is linear in the text.
//
// The dialect is what ECMA-262 and most other engines agree on: literals, `.`, classes with ranges,
// \d \w \s and their opposites, escapes of characters, groups, alternatives, the repeats * + ? {n}
// {n,} {n,m}, and ^ and $ at the ends of the expression or of its top alternatives. Classes are
// those of ASCII. Without ^ or $ the text may go on there. Lookaround, references, word boundaries
// and \p{} are refused. Pure functions; CharAutomaton is plain data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "chat/internal/char_set.h"

namespace locket::chat {

inline constexpr std::size_t kMaxPatternBytes = 2048;
inline constexpr std::size_t kMaxPatternStates = 5000;
inline constexpr std::size_t kMaxPatternDepth = 32;

struct CharAutomaton {
  struct Edge {
    std::uint32_t set = 0;  // index into sets
    std::uint32_t target = 0;
  };
  struct State {
    std::vector<Edge> edges;
    std::vector<std::uint32_t> jumps;
  };

  std::vector<State> states;
  std::vector<CharSet> sets;
  std::uint32_t start = 0;
  std::uint32_t end = 0;  // the one accepting state
};

// kBadRequest says what in the pattern is not understood, or which limit it passes; the caller adds
// the place.
[[nodiscard]] Result<CharAutomaton> compile_regex(std::string_view pattern);

}  // namespace locket::chat
