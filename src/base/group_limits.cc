#include "base/group_limits.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

namespace locket {
namespace {

namespace fs = std::filesystem;

// Version 1 writes a number near 2^63 where there is no limit.
constexpr std::uint64_t kNoLimit = std::uint64_t{1} << 60;

// Files of the memory limit, by version.
struct MemoryFiles {
  const char* limit;
  const char* used;
  const char* reclaimable;  // a line of memory.stat
};
constexpr MemoryFiles kMemoryFiles[] = {
    {"memory.max", "memory.current", "inactive_file "},
    {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file "}};

std::string first_line(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

template <class Number>
Number number_in(const fs::path& path) {
  std::istringstream text(first_line(path));
  Number value = 0;
  return text >> value ? value : 0;
}

// The number after `key`, which begins a line.
std::uint64_t stat_value(const fs::path& path, std::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    std::istringstream text(line.substr(key.size()));
    std::uint64_t value = 0;
    return text >> value ? value : 0;
  }
  return 0;
}

void take_least(double found, double& least) {
  if (found > 0 && (least == 0 || found < least)) least = found;
}

void read_memory(const fs::path& folder, const MemoryFiles& files, GroupLimits& limits) {
  const auto limit = number_in<std::uint64_t>(folder / files.limit);
  if (limit == 0 || limit >= kNoLimit) return;
  if (limits.memory_bytes == 0 || limit < limits.memory_bytes) limits.memory_bytes = limit;
  const auto used = number_in<std::uint64_t>(folder / files.used);
  const std::uint64_t kept = stat_value(folder / "memory.stat", files.reclaimable);
  const std::uint64_t held = used > kept ? used - kept : 0;
  const std::uint64_t left = limit > held ? limit - held : 0;
  limits.memory_left = std::min(limits.memory_left.value_or(left), left);
}

// The limits that stand in one folder of a control group, whichever version it is.
void read_folder(const fs::path& folder, GroupLimits& limits) {
  std::istringstream cpu(first_line(folder / "cpu.max"));
  double quota = 0;
  double period = 0;
  if (cpu >> quota >> period && period > 0) take_least(quota / period, limits.quota_threads);
  quota = number_in<double>(folder / "cpu.cfs_quota_us");
  period = number_in<double>(folder / "cpu.cfs_period_us");
  if (quota > 0 && period > 0) take_least(quota / period, limits.quota_threads);
  for (const MemoryFiles& files : kMemoryFiles) read_memory(folder, files, limits);
}

// The folder of a group and all above it, up to the mount.
void read_group(const fs::path& mount, const std::string& group, GroupLimits& limits) {
  fs::path folder = mount / fs::path(group).relative_path();
  while (true) {
    read_folder(folder, limits);
    if (folder == mount || folder == folder.parent_path()) break;
    folder = folder.parent_path();
  }
}

}  // namespace

GroupLimits read_group_limits(const fs::path& root) {
  GroupLimits limits;
  const fs::path mounts = root / "sys/fs/cgroup";
  std::ifstream groups(root / "proc/self/cgroup");
  // Lines are "number:controllers:path"; version 2 has one without controllers.
  for (std::string line; std::getline(groups, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string group = line.substr(second + 1);
    std::istringstream controllers(line.substr(first + 1, second - first - 1));
    if (second == first + 1) read_group(mounts, group, limits);
    for (std::string name; std::getline(controllers, name, ',');) {
      if (name == "cpu" || name == "memory") read_group(mounts / name, group, limits);
    }
  }
  // In a container the path may be the host's, and what counts stands at the top.
  read_folder(mounts, limits);
  read_folder(mounts / "memory", limits);
  read_folder(mounts / "cpu", limits);
  return limits;
}

}  // namespace locket
