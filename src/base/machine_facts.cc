#include "base/machine_facts.h"

#include <algorithm>
#include <fstream>
#include <sched.h>
#include <sstream>
#include <string_view>
#include <thread>
#include <vector>

#include "base/open_file_limit.h"
#include "base/system_memory.h"

namespace locket {
namespace {

namespace fs = std::filesystem;

// Version 1 writes a number near 2^63 where there is no limit.
constexpr std::uint64_t kNoLimit = std::uint64_t{1} << 60;

std::string first_line(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// The value of the first line "key ... : value".
std::string line_value(const fs::path& path, std::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(':');
    if (!line.starts_with(key) || colon == std::string::npos) continue;
    const std::size_t start = line.find_first_not_of(" \t", colon + 1);
    return start == std::string::npos ? "" : line.substr(start);
  }
  return "";
}

std::uint64_t kib_value(std::string_view key) {
  std::istringstream text(line_value("/proc/meminfo", key));
  std::uint64_t kib = 0;
  text >> kib;
  return kib * 1024;
}

double number_in(const fs::path& path) {
  std::istringstream text(first_line(path));
  double value = 0;
  return text >> value ? value : 0;
}

void take_least(double found, double& least) {
  if (found > 0 && (least == 0 || found < least)) least = found;
}

void take_least(std::uint64_t found, std::uint64_t& least) {
  if (found > 0 && found < kNoLimit && (least == 0 || found < least)) least = found;
}

// The limits that stand in one folder of a control group, whichever version it is.
void read_folder(const fs::path& folder, GroupLimits& limits) {
  std::istringstream cpu(first_line(folder / "cpu.max"));
  double quota = 0;
  double period = 0;
  if (cpu >> quota >> period && period > 0) take_least(quota / period, limits.quota_threads);
  quota = number_in(folder / "cpu.cfs_quota_us");
  period = number_in(folder / "cpu.cfs_period_us");
  if (quota > 0 && period > 0) take_least(quota / period, limits.quota_threads);
  for (const char* name : {"memory.max", "memory.limit_in_bytes"}) {
    std::istringstream memory(first_line(folder / name));
    std::uint64_t bytes = 0;
    if (memory >> bytes) take_least(bytes, limits.memory_bytes);
  }
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

LargePages read_large_pages() {
  const std::string text = first_line("/sys/kernel/mm/transparent_hugepage/enabled");
  if (text.find("[always]") != std::string::npos) return LargePages::kAlways;
  if (text.find("[madvise]") != std::string::npos) return LargePages::kOnRequest;
  if (text.find("[never]") != std::string::npos) return LargePages::kNever;
  return LargePages::kUnknown;
}

std::size_t count_allowed_threads() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof(set), &set) != 0) return 0;
  return static_cast<std::size_t>(CPU_COUNT(&set));
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
  return limits;
}

MachineFacts read_machine_facts() {
  const GroupLimits limits = read_group_limits("/");
  MachineFacts facts;
  facts.processor = line_value("/proc/cpuinfo", "model name");
  facts.online_threads = std::thread::hardware_concurrency();
  facts.allowed_threads = count_allowed_threads();
  facts.quota_threads = limits.quota_threads;
  facts.memory_bytes = kib_value("MemTotal");
  facts.memory_limit = limits.memory_bytes;
  facts.memory_available = available_memory_bytes();
  facts.swapped_bytes = kib_value("SwapTotal") - kib_value("SwapFree");
  facts.large_pages = read_large_pages();
  facts.clock_source =
      first_line("/sys/devices/system/clocksource/clocksource0/current_clocksource");
  facts.open_files = raise_open_file_limit().now;
  return facts;
}

}  // namespace locket
