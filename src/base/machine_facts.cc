#include "base/machine_facts.h"

#include <filesystem>
#include <fstream>
#include <sched.h>
#include <sstream>
#include <string_view>
#include <thread>

#include "base/group_limits.h"
#include "base/open_file_limit.h"
#include "base/system_memory.h"

namespace locket {
namespace {

namespace fs = std::filesystem;

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
