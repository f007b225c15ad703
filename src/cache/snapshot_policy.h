// At which page boundaries a sequence's rings are worth keeping. Pure functions.
#pragma once

#include <cstdint>
#include <set>

namespace locket::cache {

inline constexpr std::int64_t kPagesPerSpacedSnapshot = 64;
inline constexpr std::int64_t kNewestSnapshots = 3;  // a live sequence keeps so many of the newest

struct TurnLengths {
  std::int64_t prompt_tokens = 0;
  std::int64_t system_tokens = 0;  // instructions and tools at the prompt's start; 0: not known
  std::int64_t total_tokens = 0;   // prompt and what was generated
  std::int64_t window = 0;
};

// The last page boundary at or before `position`.
std::int64_t boundary_at(std::int64_t position);

// Boundaries that are stored at the end of a turn, ascending, 0 left out: the last ones at or
// before N - W, N, the end of instructions and tools, and the end of the turn; and every 64th page.
std::set<std::int64_t> stored_boundaries(const TurnLengths& lengths);

// The next position after `position` and at most `end` where the encoder should stand so that a
// stored boundary can be copied; `end` if there is none.
std::int64_t next_stop(std::int64_t position, std::int64_t end,
                       const std::set<std::int64_t>& boundaries);

}  // namespace locket::cache
