#include "cache/snapshot_policy.h"

#include <algorithm>

#include "cache/kv_layout.h"

namespace locket::cache {

std::int64_t boundary_at(std::int64_t position) {
  return std::max<std::int64_t>(0, position) / kTokensPerPage * kTokensPerPage;
}

std::set<std::int64_t> stored_boundaries(const TurnLengths& lengths) {
  std::set<std::int64_t> boundaries;
  constexpr std::int64_t kSpacing = kPagesPerSpacedSnapshot * kTokensPerPage;
  for (std::int64_t at = kSpacing; at <= lengths.total_tokens; at += kSpacing) {
    boundaries.insert(at);
  }
  for (const std::int64_t position : {lengths.prompt_tokens - lengths.window, lengths.prompt_tokens,
                                      lengths.system_tokens, lengths.total_tokens}) {
    boundaries.insert(boundary_at(std::min(position, lengths.total_tokens)));
  }
  boundaries.erase(0);
  return boundaries;
}

std::int64_t next_stop(std::int64_t position, std::int64_t end,
                       const std::set<std::int64_t>& boundaries) {
  const auto next = boundaries.upper_bound(position);
  return next == boundaries.end() ? end : std::min(end, *next);
}

}  // namespace locket::cache
