#include "base/system_memory.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <malloc.h>
#include <sstream>
#include <string>
#include <string_view>

#include "base/group_limits.h"

namespace locket {
namespace {

constexpr std::uint64_t kUnknown = std::numeric_limits<std::uint64_t>::max();

// The value of "key: 123 kB" in a file of such lines, in bytes.
std::uint64_t read_kib_line(const char* path, std::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    std::istringstream value(line.substr(key.size()));
    std::uint64_t kib = 0;
    if (value >> kib) return kib * 1024;
  }
  return kUnknown;
}

std::uint64_t machine_available() { return read_kib_line("/proc/meminfo", "MemAvailable:"); }

}  // namespace

std::uint64_t available_memory_bytes() {
  const std::uint64_t least =
      std::min(machine_available(), read_group_limits("/").memory_left.value_or(kUnknown));
  return least == kUnknown ? 0 : least;
}

std::uint64_t resident_memory_bytes() {
  // The first one walks the page tables and is exact; the counter behind the second may lag.
  const std::uint64_t walked = read_kib_line("/proc/self/smaps_rollup", "Rss:");
  if (walked != kUnknown) return walked;
  const std::uint64_t counted = read_kib_line("/proc/self/status", "VmRSS:");
  return counted == kUnknown ? 0 : counted;
}

void return_freed_memory() { ::malloc_trim(0); }

void tune_allocator() {
  ::mallopt(M_MXFAST, 0);
  ::mallopt(M_ARENA_MAX, 1);
}

}  // namespace locket
