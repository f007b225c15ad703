// Random traffic against the memory for long, every logit compared with a run that has none: the
// property test of the engine, with as many operations as are asked for.
//
//   build/release/bench/memory_soak_bench --operations 20000
//   build/release/bench/memory_soak_bench --kills 500
//
// With --kills a process that writes its memory is killed again and again instead, and the next one
// checks what is left.
//
// Exit code 1 if a single bit differs.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fmt/format.h>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "measure.h"
#include "tests/support/memory_kills.h"
#include "tests/support/memory_soak.h"
#include "tests/support/tiny_models.h"

namespace {

constexpr std::int64_t kOperationsAtOnce = 1000;

struct Options {
  std::string model = "odd";
  std::int64_t operations = 20'000;
  std::int64_t kills = 0;
  std::uint64_t seed = 1;
  std::filesystem::path folder = std::filesystem::temp_directory_path() / "locket_memory_soak";
};

// True if all arguments are understood.
bool read_options(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    if (name.starts_with("--benchmark_min_time")) {
      options.operations = 20;  // does it still work?
      continue;
    }
    if (i + 1 == argc) return false;
    const std::string_view value = argv[++i];
    if (name == "--operations" && locket::read_number(value, options.operations)) continue;
    if (name == "--kills" && locket::read_number(value, options.kills)) continue;
    if (name == "--seed" && locket::read_number(value, options.seed)) continue;
    if (name == "--model") {
      options.model = value;
      continue;
    }
    if (name == "--folder") {
      options.folder = value;
      continue;
    }
    return false;
  }
  return true;
}

int run_kills(const locket::model::V41Model& model, const Options& options) {
  std::filesystem::remove_all(options.folder);
  const auto report = locket::test_support::run_kills(
      model, {.seed = options.seed, .kills = options.kills, .directory = options.folder});
  std::filesystem::remove_all(options.folder);
  fmt::print("{}\n", report.text());
  return report.is_good() ? 0 : 1;
}

int run_soak(const locket::model::V41Model& model, const Options& options) {
  const double start = locket::monotonic_seconds();
  std::int64_t differences = 0;
  std::int64_t done = 0;
  for (std::uint64_t part = 0; done < options.operations; ++part) {
    std::filesystem::remove_all(options.folder);
    // One part in four lives in memory alone.
    const locket::test_support::SoakReport report = locket::test_support::run_soak(
        model, {.seed = options.seed * 1'000'003 + part,
                .operations = std::min(kOperationsAtOnce, options.operations - done),
                .directory = part % 4 == 3 ? std::filesystem::path() : options.folder});
    done += report.operations;
    differences += report.differences;
    fmt::print("{:>6} of {} in {:.0f} s; {}\n", done, options.operations,
               locket::monotonic_seconds() - start, report.text());
    for (const std::string& failure : report.failures) fmt::print("  {}\n", failure);
    std::fflush(stdout);
    if (!report.failures.empty()) break;
  }
  std::filesystem::remove_all(options.folder);
  fmt::print("{} operations, {} differences\n", done, differences);
  return differences == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  if (!read_options(argc, argv, options)) {
    fmt::print(stderr,
               "usage: memory_soak_bench [--operations N | --kills N] [--seed N]\n"
               "                         [--model odd|micro|thin]\n"
               "                         [--folder DIR]   (emptied before and after)\n");
    return 2;
  }
  const auto& model =
      locket::test_support::tiny_model(options.model, locket::model::NumericsMode::kReference);
  return options.kills > 0 ? run_kills(model, options) : run_soak(model, options);
}
