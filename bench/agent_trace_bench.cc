// Agent traffic replayed against the prefix tree: hit rate, recomputed tokens and the bill for five
// memory budgets and the row sizes of V4.1, V4-Flash and V1. What the traffic is made of is in
// agent_trace/traffic.h. Exit code 1 if a check of the counting fails.
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fmt/format.h>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "agent_trace/plot.h"
#include "agent_trace/replay.h"
#include "agent_trace/report.h"
#include "agent_trace/self_check.h"
#include "agent_trace/traffic.h"
#include "base/file.h"
#include "cli/byte_size.h"

namespace locket::agent_trace {
namespace {

constexpr std::string_view kHelp =
    "agent_trace_bench [--seed N] [--days N] [--users N] [--budgets SIZE,SIZE,...] [--out FOLDER]\n"
    "\n"
    "Replays made-up traffic of coding agents against the prefix tree, once per budget and row\n"
    "size, and prints hit rates, recomputed tokens and bills.\n"
    "\n"
    "  --seed N       another seed, other traffic (1)\n"
    "  --days N       days of traffic, from a Monday, 00:00 UTC (10)\n"
    "  --users N      users of the one operator (8)\n"
    "  --budgets ...  memory for prefixes, ascending (64M,512M,4G,32G,256G)\n"
    "  --out FOLDER   writes agent_trace.csv and agent_trace.svg there\n"
    "  --self-check   only checks the counting\n"
    "  --benchmark_min_time=...  a tiny trace: does the program still work?\n";

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

struct Options {
  TrafficOptions traffic;
  std::vector<std::uint64_t> budgets = {64 * kMiB, 512 * kMiB, 4 * kGiB, 32 * kGiB, 256 * kGiB};
  std::string folder;
  bool checks_only = false;
  bool wants_help = false;
};

// Nothing if `text` is not a whole number from 1 up.
std::optional<std::uint64_t> read_number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value == 0) return std::nullopt;
  return value;
}

bool read_budgets(std::string_view text, std::vector<std::uint64_t>& budgets) {
  budgets.clear();
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    std::string size(text.substr(0, comma));
    if (!cli::read_size(size).empty()) return false;
    const std::optional<std::uint64_t> bytes = read_number(size);
    if (!bytes || (!budgets.empty() && *bytes <= budgets.back())) return false;
    budgets.push_back(*bytes);
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return !budgets.empty();
}

bool read_count(std::string_view text, std::int64_t most, std::int64_t& count) {
  const std::optional<std::uint64_t> value = read_number(text);
  if (!value || *value > static_cast<std::uint64_t>(most)) return false;
  count = static_cast<std::int64_t>(*value);
  return true;
}

bool read_pair(std::string_view name, std::string_view value, Options& options) {
  if (name == "--days") return read_count(value, 365, options.traffic.days);
  if (name == "--users") return read_count(value, 1000, options.traffic.users);
  if (name == "--budgets") return read_budgets(value, options.budgets);
  if (name == "--out") options.folder = value;
  if (name == "--out") return !value.empty();
  const std::optional<std::uint64_t> seed = read_number(value);
  if (name != "--seed" || !seed) return false;
  options.traffic.seed = *seed;
  return true;
}

// What is wrong with the arguments; empty if nothing is.
std::string read_options(std::span<char*> arguments, Options& options) {
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    const std::string_view name = arguments[i];
    if (name == "--help") {
      options.wants_help = true;
    } else if (name == "--self-check") {
      options.checks_only = true;
    } else if (name.starts_with("--benchmark_min_time=")) {
      options.traffic.days = 1;
      options.traffic.users = 2;
      options.budgets = {64 * kMiB, 4 * kGiB};
    } else if (i + 1 == arguments.size() || !read_pair(name, arguments[++i], options)) {
      return fmt::format("cannot read {} {}", name, i < arguments.size() ? arguments[i] : "");
    }
  }
  return {};
}

Results replay_all(const Trace& trace, const Options& options) {
  Results results;
  results.kinds = row_kinds();
  results.budgets = options.budgets;
  const std::vector<std::int64_t> ideal = ideal_hits(trace);
  double found = 0;
  double wanted = 0;
  for (std::size_t i = 0; i < ideal.size(); ++i) {
    found += static_cast<double>(ideal[i]);
    wanted += static_cast<double>(count_tokens(trace.requests[i].prompt));
  }
  results.ceiling = wanted > 0 ? found / wanted : 0;
  for (const RowKind& kind : results.kinds) {
    std::vector<Tally>& tallies = results.tallies.emplace_back();
    for (const std::uint64_t budget : results.budgets) {
      tallies.push_back(replay_trace(trace, kind, budget, ideal));
      fmt::print(stderr, "{}, {}: {:.2f} %\n", kind.name, budget_text(budget),
                 100 * tallies.back().hit_rate());
    }
  }
  return results;
}

bool stayed_in_budget(const Results& results) {
  for (const std::vector<Tally>& tallies : results.tallies) {
    for (const Tally& tally : tallies) {
      if (tally.times_over_budget > 0) return false;
    }
  }
  return true;
}

Status write_text(const std::filesystem::path& path, const std::string& text) {
  return write_whole_file(path, std::as_bytes(std::span<const char>(text)));
}

Status write_files(const Results& results, const Trace& trace, const std::string& folder) {
  std::error_code ignored;  // writing says what is wrong
  std::filesystem::create_directories(folder, ignored);
  const std::string subtitle = fmt::format(
      "{} users, {} days, {} requests (seed {}); bench/agent_trace replayed against the prefix "
      "tree",
      trace.options.users, trace.options.days, trace.requests.size(), trace.options.seed);
  const std::filesystem::path path(folder);
  LOCKET_TRY_STATUS(write_text(path / "agent_trace.csv", csv(results)));
  return write_text(path / "agent_trace.svg", plot_svg(results, subtitle));
}

int run(const Options& options) {
  const std::string fault = self_check(options.traffic.seed);
  if (!fault.empty()) {
    fmt::print(stderr, "self-check failed: {}\n", fault);
    return 1;
  }
  fmt::print("self-check: hits are the longest common prefixes, budgets are kept\n");
  if (options.checks_only) return 0;
  const Trace trace = make_trace(options.traffic);
  fmt::print("{}{}", describe_traffic(trace), describe_kinds(row_kinds()));
  std::fflush(stdout);
  const Results results = replay_all(trace, options);
  fmt::print("{}{}", table(results), compare_content(results));
  if (!stayed_in_budget(results)) {
    fmt::print(stderr, "the memory grew above its budget\n");
    return 1;
  }
  if (options.folder.empty()) return 0;
  const Status written = write_files(results, trace, options.folder);
  if (written) return 0;
  fmt::print(stderr, "{}\n", written.error().message);
  return 1;
}

}  // namespace
}  // namespace locket::agent_trace

int main(int count, char** arguments) {
  locket::agent_trace::Options options;
  const std::string fault = locket::agent_trace::read_options(
      std::span(arguments, static_cast<std::size_t>(count)), options);
  if (!fault.empty() || options.wants_help) {
    fmt::print(fault.empty() ? stdout : stderr, "{}{}{}", fault, fault.empty() ? "" : "\n",
               locket::agent_trace::kHelp);
    return fault.empty() ? 0 : 2;
  }
  return locket::agent_trace::run(options);
}
