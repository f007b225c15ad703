// The limits that control groups set to this process, of version 1 or 2, its own group's and those
// above it. Nothing here fails: what cannot be read is no limit. Thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace locket {

struct GroupLimits {
  double quota_threads = 0;        // processor time per time; 0: any
  std::uint64_t memory_bytes = 0;  // the least limit; 0: none
  // What the tightest group still leaves, files that the system keeps for speed counted as free;
  // empty: no limit.
  std::optional<std::uint64_t> memory_left;
};

// `root` is "/" but for tests.
GroupLimits read_group_limits(const std::filesystem::path& root);

}  // namespace locket
