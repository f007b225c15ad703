// The machine and its kernels.
#include <algorithm>
#include <cmath>
#include <ctime>
#include <fmt/chrono.h>
#include <fmt/format.h>

#include "cli/cache_parts.h"
#include "cli/doctor_checks.h"
#include "cli/kernel_pin.h"
#include "kernels/kernel_check.h"
#include "kernels/kernel_choice.h"

namespace locket::cli {
namespace {

using Level = Finding::Level;

constexpr std::size_t kCasesPerKernel = 300;
constexpr std::uint64_t kUsefulMemory = std::uint64_t{2} << 30;
constexpr std::uint64_t kUsefulOpenFiles = 4096;
// 2024 and 2100: before and after, ages of what is remembered make no sense.
constexpr double kEarliest = 1.704e9;
constexpr double kLatest = 4.102e9;

Finding finding(Level level, const char* name, std::string text, std::string advice = {}) {
  return {.level = level,
          .area = "machine",
          .name = name,
          .text = std::move(text),
          .advice = std::move(advice)};
}

Finding check_processor(const MachineFacts& facts) {
  const std::string name = facts.processor.empty() ? "unknown" : facts.processor;
  const std::string text = fmt::format("{}, {} of {} hardware threads", name, facts.allowed_threads,
                                       facts.online_threads);
  if (kernels::available_kernels().size() > 1) return finding(Level::kOk, "processor", text);
  return finding(Level::kWarning, "processor", text + ", without AVX2",
                 "plain kernels run anywhere, and are many times slower");
}

Finding check_threads(const MachineFacts& facts, std::size_t threads) {
  const std::size_t used = threads > 0 ? threads : facts.online_threads;
  const double quota = facts.quota_threads;
  const std::size_t most = facts.allowed_threads > 0 ? facts.allowed_threads : facts.online_threads;
  const std::string text =
      fmt::format("{} to compute with, {} allowed{}", used, most,
                  quota > 0 ? fmt::format(", processor time for {:.4g}", quota) : std::string());
  const auto least = static_cast<std::size_t>(
      quota > 0 ? std::min(std::max(1.0, std::floor(quota)), static_cast<double>(most))
                : static_cast<double>(most));
  if (used <= least) return finding(Level::kOk, "threads", text);
  return finding(
      Level::kWarning, "threads", text,
      fmt::format("more threads than processors wait for each other: --threads {}", least));
}

Finding check_ram(const MachineFacts& facts) {
  std::string text = fmt::format("{} free of {}", bytes_text(facts.memory_available),
                                 bytes_text(facts.memory_bytes));
  if (facts.memory_limit > 0) {
    text += fmt::format(", {} allowed by the control group", bytes_text(facts.memory_limit));
  }
  if (facts.memory_bytes == 0) {
    return finding(Level::kWarning, "memory", "its size cannot be read",
                   "/proc/meminfo is needed to plan");
  }
  const bool is_hidden = facts.memory_limit > 0 && facts.memory_limit < facts.memory_bytes &&
                         facts.memory_available > facts.memory_limit;
  if (is_hidden) {
    return finding(Level::kWarning, "memory", text,
                   "the group's limit ends a process that grows beyond it: --memory-budget");
  }
  if (facts.memory_available < kUsefulMemory) {
    return finding(Level::kWarning, "memory", text, "little is left for weights and texts");
  }
  return finding(Level::kOk, "memory", text);
}

Finding check_swap(const MachineFacts& facts) {
  if (facts.swapped_bytes < kUsefulMemory / 8) {
    return finding(Level::kOk, "swap", fmt::format("{} in use", bytes_text(facts.swapped_bytes)));
  }
  return finding(Level::kWarning, "swap", fmt::format("{} in use", bytes_text(facts.swapped_bytes)),
                 "weights that the system pages out are many times slower: leave more memory free");
}

Finding check_large_pages(const MachineFacts& facts) {
  switch (facts.large_pages) {
    case LargePages::kAlways:
      return finding(Level::kOk, "large pages", "always");
    case LargePages::kOnRequest:
      return finding(Level::kOk, "large pages", "on request");
    case LargePages::kNever:
      return finding(Level::kWarning, "large pages", "never",
                     "reading weights is some 10 % slower; as root: echo madvise > "
                     "/sys/kernel/mm/transparent_hugepage/enabled");
    case LargePages::kUnknown:
    case LargePages::kCount:
      break;
  }
  return finding(Level::kWarning, "large pages", "the system does not say",
                 "reading weights may be some 10 % slower");
}

Finding check_open_files(const MachineFacts& facts) {
  const std::string text = fmt::format("{} may be open", facts.open_files);
  if (facts.open_files >= kUsefulOpenFiles) return finding(Level::kOk, "files", text);
  return finding(
      Level::kWarning, "files", text,
      fmt::format("a server with many clients needs more: ulimit -n {}", kUsefulOpenFiles));
}

Finding check_clock_source(const MachineFacts& facts) {
  const std::string& source = facts.clock_source;
  const bool is_slow = source == "hpet" || source == "acpi_pm" || source == "jiffies";
  if (!is_slow) {
    return finding(Level::kOk, "clock source", source.empty() ? "not named" : source);
  }
  return finding(
      Level::kWarning, "clock source", source,
      "reading the time is slow; timings in logs and metrics cost more than they should");
}

}  // namespace

std::vector<Finding> check_machine(const MachineFacts& facts, std::size_t threads) {
  return {check_processor(facts),   check_threads(facts, threads), check_ram(facts),
          check_swap(facts),        check_large_pages(facts),      check_open_files(facts),
          check_clock_source(facts)};
}

Finding check_clock(double now_seconds) {
  const std::string text =
      fmt::format("{:%Y-%m-%d %H:%M} UTC", fmt::gmtime(static_cast<std::time_t>(now_seconds)));
  if (now_seconds > kEarliest && now_seconds < kLatest) return finding(Level::kOk, "clock", text);
  return finding(Level::kWarning, "clock", text,
                 "that cannot be: set the clock, or ages of what is remembered make no sense");
}

std::vector<Finding> check_table(const kernels::KernelTable& table, std::size_t cases) {
  std::vector<Finding> findings;
  const std::vector<kernels::KernelCheck> checks = kernels::check_kernels(table, cases);
  for (const kernels::KernelCheck& check : checks) {
    if (check.different == 0) continue;
    findings.push_back(
        {.level = Level::kFailure,
         .area = "kernels",
         .name = std::string(table.name),
         .text = fmt::format("{}: {} of {} cases are not the reference's bits; {}", check.kernel,
                             check.different, check.cases, check.first),
         .advice = "this processor or this build computes wrongly: LOCKET_TARGET=reference does "
                   "without them"});
  }
  if (!findings.empty()) return findings;
  return {
      {.level = Level::kOk,
       .area = "kernels",
       .name = std::string(table.name),
       .text = fmt::format("{} kernels, {} cases each: the reference's bits", checks.size(), cases),
       .advice = {}}};
}

std::vector<Finding> check_all_kernels() {
  const std::string chosen = kernels_are_pinned() ? "pinned by LOCKET_TARGET" : "the fastest";
  std::vector<Finding> findings = {
      {.level = Level::kOk,
       .area = "kernels",
       .name = "active",
       .text = fmt::format("{} ({}) of {}", kernels::active_kernels().name, chosen,
                           kernels::available_kernel_names()),
       .advice = {}}};
  for (const kernels::KernelTable* table : kernels::available_kernels()) {
    if (table == &kernels::reference_kernels()) continue;
    const std::vector<Finding> found = check_table(*table, kCasesPerKernel);
    findings.insert(findings.end(), found.begin(), found.end());
  }
  return findings;
}

}  // namespace locket::cli
