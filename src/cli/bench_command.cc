// locket bench: ratios of what the program does to what the machine can do.
#include <algorithm>
#include <cstdio>
#include <fmt/format.h>
#include <memory>
#include <optional>
#include <system_error>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "cli/bench_parts.h"
#include "cli/bench_report.h"
#include "cli/commands.h"
#include "cli/model_path.h"
#include "cli/model_setup.h"
#include "cli/progress_line.h"
#include "cli/slice_writer.h"
#include "cli/text_table.h"
#include "kernels/kernel_table.h"

namespace locket::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kRuns = 7;
constexpr std::size_t kQuickRuns = 3;
constexpr std::size_t kReadBytes = std::size_t{1} << 30;
constexpr std::size_t kDiskBytes = std::size_t{1} << 30;
constexpr std::size_t kQuickDiskBytes = std::size_t{1} << 27;

// What is being measured: written over on a terminal, a line each elsewhere; on standard error.
class PartProgress {
 public:
  PartProgress() : is_terminal_(::isatty(STDERR_FILENO) == 1) {}
  PartProgress(const PartProgress&) = delete;
  PartProgress& operator=(const PartProgress&) = delete;
  ~PartProgress() {
    if (is_terminal_) std::fputs("\r\033[K", stderr);
  }
  void show(const std::string& what) const {
    const char* pattern = is_terminal_ ? "\r\033[Kmeasuring {} ..." : "measuring {}\n";
    std::fputs(fmt::format(fmt::runtime(pattern), what).c_str(), stderr);
  }

 private:
  bool is_terminal_;
};

Status make_slice(const BenchOptions& options) {
  LOCKET_TRY(const fs::path small_model, resolve_model({}));
  ProgressLine progress(fmt::format("writing {}", options.make_slice.string()));
  const double begin = monotonic_seconds();
  LOCKET_TRY(
      const WrittenSlice written,
      write_slice(options.make_slice, {.seed = options.seed,
                                       .tokenizer_folder = small_model,
                                       .progress = [&](std::uint64_t done, std::uint64_t total) {
                                         progress.show(done, total);
                                       }}));
  fmt::print("{}: {} tensors, {} bytes, in {:.0f} s\n", options.make_slice.string(),
             grouped(written.tensors), grouped(written.bytes), monotonic_seconds() - begin);
  return {};
}

bool is_wanted(const BenchOptions& options, const BenchPart& part) {
  return options.only.empty() || std::ranges::count(options.only, part.group) > 0;
}

bool needs_slice(const BenchPart& part) { return part.needs == BenchPart::Needs::kSlice; }

Result<std::optional<ModelSetup>> load_slice(const BenchOptions& options) {
  const bool is_needed = std::ranges::any_of(bench_parts(), [&](const BenchPart& part) {
    return needs_slice(part) && is_wanted(options, part);
  });
  if (options.slice.empty() || !is_needed) return std::nullopt;
  ModelOptions model;
  model.model = options.slice;
  model.threads = options.threads;
  LOCKET_TRY(ModelSetup setup, set_up_model(model));
  return setup;
}

// A part that this machine cannot run is left out, as one without its slice.
Status run_parts(const BenchOptions& options, const BenchSetup& setup, PartProgress& progress,
                 BenchReport& report) {
  for (const BenchPart& part : bench_parts()) {
    if (!is_wanted(options, part)) continue;
    const std::string name = fmt::format("{} {}", part.group, part.what);
    if (needs_slice(part) && setup.slice == nullptr) {
      report.left_out.push_back(name + ": needs --slice DIR, made by --make-slice DIR");
      continue;
    }
    progress.show(name);
    Result<BenchRows> rows = part.run(setup);
    if (!rows && rows.error().code == ErrorCode::kUnsupported) {
      report.left_out.push_back(fmt::format("{}: {}", name, rows.error().message));
      continue;
    }
    if (!rows) return tl::make_unexpected(rows.error());
    std::ranges::move(*rows, std::back_inserter(report.rows));
  }
  return {};
}

Result<BenchReport> measure(const BenchOptions& options) {
  PartProgress progress;
  const std::size_t threads =
      options.threads > 0 ? options.threads : WorkerPool::hardware_threads();
  WorkerPool workers(threads);
  BenchReport report = {.machine = fmt::format("{}-{}t", kernels::cpu_class(), threads),
                        .kernels = std::string(kernels::active_kernels().name),
                        .is_quick = options.quick,
                        .runs = options.quick ? kQuickRuns : kRuns,
                        .limits = {},
                        .rows = {},
                        .left_out = {}};
  progress.show("the machine");
  LOCKET_TRY(report.limits, kernels::measure_machine_limits(
                                {.runs = report.runs,
                                 .read_bytes = kReadBytes,
                                 .disk_folder = options.scratch,
                                 .disk_bytes = options.quick ? kQuickDiskBytes : kDiskBytes},
                                workers));
  LOCKET_TRY(const fs::path small_model, resolve_model({}));
  LOCKET_TRY(std::optional<ModelSetup> slice, load_slice(options));
  PlainReader plain(kReadBytes, workers);
  const BenchSetup setup = {.runs = report.runs,
                            .is_quick = options.quick,
                            .scratch = options.scratch,
                            .small_model = small_model,
                            .threads = threads,
                            .workers = workers,
                            .plain = plain,
                            .slice = slice ? &*slice : nullptr};
  LOCKET_TRY_STATUS(run_parts(options, setup, progress, report));
  return report;
}

Status bench(BenchOptions options) {
  if (!options.make_slice.empty()) return make_slice(options);
  std::error_code ignored;
  if (options.scratch.empty()) options.scratch = fs::temp_directory_path(ignored);
  LOCKET_TRY(const BenchReport report, measure(options));
  fmt::print("{}", bench_text(report));
  if (options.json.empty()) return {};
  const std::string text = bench_json(report);
  return write_whole_file(options.json, std::as_bytes(std::span(text)));
}

}  // namespace

const std::vector<BenchPart>& bench_parts() {
  using Needs = BenchPart::Needs;
  static const std::vector<BenchPart> kParts = {
      {"H1", "decode", Needs::kSlice, bench_decode},
      {"H2", "experts", Needs::kNothing, bench_experts},
      {"H3", "prefill", Needs::kNothing, bench_prefill},
      {"H4", "long context", Needs::kSlice, bench_context},
      {"H4", "index scan", Needs::kNothing, bench_index},
      {"H5", "restore", Needs::kNothing, bench_restore},
      {"H6", "streaming experts", Needs::kSlice, bench_stream},
      {"H7", "verifying drafts", Needs::kSlice, bench_verify},
      {"H8", "same bits", Needs::kNothing, bench_same_bits},
      {"small", "small model", Needs::kNothing, bench_small_model}};
  return kParts;
}

int run_bench(const BenchOptions& options) {
  const Status status = bench(options);
  return status ? 0 : report(status.error());
}

}  // namespace locket::cli
