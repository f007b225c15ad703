#include "base/system_memory.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

namespace locket {
namespace {

constexpr std::uint64_t kUnknown = std::numeric_limits<std::uint64_t>::max();

// The number in a file that holds nothing else; "max" and unreadable files give kUnknown.
std::uint64_t read_number(const char* path) {
  std::ifstream file(path);
  std::uint64_t value = 0;
  return file >> value ? value : kUnknown;
}

std::uint64_t machine_available() {
  std::ifstream file("/proc/meminfo");
  std::string key;
  std::uint64_t kib = 0;
  std::string unit;
  while (file >> key >> kib && std::getline(file, unit)) {
    if (key == "MemAvailable:") return kib * 1024;
  }
  return kUnknown;
}

std::uint64_t cgroup_available() {
  const std::uint64_t limit = read_number("/sys/fs/cgroup/memory.max");
  const std::uint64_t used = read_number("/sys/fs/cgroup/memory.current");
  if (limit == kUnknown || used == kUnknown) return kUnknown;
  return limit > used ? limit - used : 0;
}

}  // namespace

std::uint64_t available_memory_bytes() {
  const std::uint64_t least = std::min(machine_available(), cgroup_available());
  return least == kUnknown ? 0 : least;
}

}  // namespace locket
