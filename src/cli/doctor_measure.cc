// What the machine can do, and how near the kernels come.
#include <algorithm>
#include <fmt/format.h>
#include <functional>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/system_memory.h"
#include "base/worker_pool.h"
#include "cli/doctor_checks.h"
#include "kernels/matmul.h"

namespace locket::cli {
namespace {

using Level = Finding::Level;
using kernels::PeakUnit;

constexpr std::size_t kRuns = 5;
constexpr std::size_t kMatrices = 8;
constexpr std::size_t kRows = 8192;
constexpr std::size_t kColumns = 8192;
constexpr std::size_t kPromptTokens = 192;
constexpr std::size_t kDiskBytes = std::size_t{256} << 20;
constexpr std::uint64_t kReadBytes = std::uint64_t{1} << 30;
// Below these something is wrong: another process, or another machine on the same processor.
constexpr double kUsualDecode = 0.5;
constexpr double kUsualPrefill = 0.25;
constexpr double kSlowForkJoin = 100e-6;

Finding finding(Level level, std::string name, std::string text, std::string advice = {}) {
  return {.level = level,
          .area = "measured",
          .name = std::move(name),
          .text = std::move(text),
          .advice = std::move(advice)};
}

double seconds_of(const std::function<void()>& work) {
  const double start = monotonic_seconds();
  work();
  return monotonic_seconds() - start;
}

// What the active kernels multiply many tokens with.
PeakUnit prompt_unit() {
  const std::string_view name = kernels::active_kernels().name;
  if (name == "avx512_amx") return PeakUnit::kAmxBf16;
  return name == "avx512_bf16" ? PeakUnit::kBf16 : PeakUnit::kF32;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

// FP4 weights that no cache holds, all of them finite.
Result<std::vector<kernels::WeightMatrix>> make_weights() {
  std::vector<std::byte> values(kRows * kColumns / 2);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::byte>(i * 37 >> 3);
  const std::vector<std::byte> scales(kRows * kColumns / 32, std::byte{120});
  std::vector<kernels::WeightMatrix> matrices;
  for (std::size_t i = 0; i < kMatrices; ++i) {
    LOCKET_TRY(kernels::WeightMatrix matrix,
               kernels::pack_weights({.format = kernels::WeightFormat::kFp4,
                                      .rows = kRows,
                                      .columns = kColumns,
                                      .values = values,
                                      .scales = scales}));
    matrices.push_back(std::move(matrix));
  }
  return matrices;
}

class KernelMeasure {
 public:
  KernelMeasure(const std::vector<kernels::WeightMatrix>& matrices, WorkerPool& workers)
      : matrices_(matrices),
        workers_(workers),
        x_(kPromptTokens * kColumns, 1.0f),
        out_(kPromptTokens * kRows) {}

  double decode() {
    const kernels::WeightMatrix& one = matrices_.front();
    const double share =
        static_cast<double>(one.byte_count()) / static_cast<double>(one.tiles.size());
    std::vector<double> ratios;
    for (std::size_t run = 0; run < kRuns; ++run) {
      const double read = seconds_of([&] {
        for (const auto& matrix : matrices_) {
          kernels::read_plainly(matrix.tiles.bytes(), workers_);
        }
      });
      const double product = seconds_of([&] {
        for (const auto& matrix : matrices_) multiply(matrix, 1);
      });
      ratios.push_back(share * read / product);
    }
    return median(std::move(ratios));
  }

  double prefill() {
    const PeakUnit unit = prompt_unit();
    if (!kernels::has_peak_unit(unit)) return 0;
    const std::size_t rounds = 20 * kernels::peak_rounds_per_millisecond(unit);
    const double operations = 2.0 * static_cast<double>(kPromptTokens * kRows * kColumns);
    std::vector<double> ratios;
    for (std::size_t run = 0; run < kRuns; ++run) {
      double done = 0;
      const double peak = seconds_of([&] { done = kernels::run_peak(unit, rounds, workers_); });
      const double product = seconds_of([&] { multiply(matrices_[run], kPromptTokens); });
      ratios.push_back(operations / product / (done / peak));
    }
    return median(std::move(ratios));
  }

 private:
  void multiply(const kernels::WeightMatrix& matrix, std::size_t tokens) {
    kernels::matmul(matrix,
                    {.data = x_.data(),
                     .stride = kColumns,
                     .tokens = tokens,
                     .values = kernels::ActivationValues::kBf16},
                    out_.data(), kRows, workers_);
  }

  const std::vector<kernels::WeightMatrix>& matrices_;
  WorkerPool& workers_;
  std::vector<float> x_;    // [prompt tokens, columns]
  std::vector<float> out_;  // [prompt tokens, rows]
};

std::string rate_text(const kernels::BestAndMedian& rate, double unit) {
  return fmt::format("{:.3g} at best, {:.3g} usually", rate.best / unit, rate.median / unit);
}

}  // namespace

std::vector<Finding> check_limits(const kernels::MachineLimits& limits, const KernelRates& rates) {
  std::vector<Finding> findings;
  findings.push_back(finding(
      Level::kOk, "memory",
      fmt::format("GB/s read by {} threads: {}", limits.threads, rate_text(limits.read.all, 1e9))));
  for (std::size_t i = 0; i < static_cast<std::size_t>(PeakUnit::kCount); ++i) {
    const auto unit = static_cast<PeakUnit>(i);
    if (limits.peak(unit).all.best <= 0) continue;
    findings.push_back(finding(Level::kOk, std::string(kernels::peak_unit_name(unit)),
                               fmt::format("Gop/s of {} threads: {}", limits.threads,
                                           rate_text(limits.peak(unit).all, 1e9))));
  }
  if (limits.disk_read.best > 0) {
    findings.push_back(finding(
        Level::kOk, "disk",
        fmt::format("GB/s read past the page cache: {}", rate_text(limits.disk_read, 1e9))));
  }
  const bool is_slow = limits.threads > 1 && limits.fork_join.median > kSlowForkJoin;
  findings.push_back(finding(
      is_slow ? Level::kWarning : Level::kOk, "fork and join",
      fmt::format("microseconds: {}", rate_text(limits.fork_join, 1e-6)),
      is_slow ? "threads wait for processors that others use: leave them free, or give --threads"
              : ""));
  const auto add_ratio = [&](const char* name, double ratio, double usual, std::string_view of) {
    if (ratio <= 0) return;
    const bool is_low = ratio < usual;
    findings.push_back(finding(is_low ? Level::kWarning : Level::kOk, name,
                               fmt::format("{:.2f} of {}", ratio, of),
                               is_low ? "less than is usual; is the machine busy?" : ""));
  };
  add_ratio("one token", rates.decode, kUsualDecode, "a plain read of the weights");
  add_ratio("many tokens", rates.prefill, kUsualPrefill,
            fmt::format("the peak of {}", kernels::peak_unit_name(prompt_unit())));
  return findings;
}

std::vector<Finding> measure_machine(std::size_t threads,
                                     const std::filesystem::path& disk_folder) {
  WorkerPool workers(threads > 0 ? threads : WorkerPool::hardware_threads());
  const std::uint64_t free_bytes = available_memory_bytes();
  const auto limits = kernels::measure_machine_limits(
      {.runs = kRuns,
       .read_bytes = std::min(kReadBytes, free_bytes / 4) / 4096 * 4096,
       .disk_folder = disk_folder,
       .disk_bytes = kDiskBytes},
      workers);
  if (!limits) return {finding(Level::kWarning, "machine", limits.error().message)};
  const Result<std::vector<kernels::WeightMatrix>> weights = make_weights();
  if (!weights) return {finding(Level::kFailure, "kernels", weights.error().message)};
  KernelMeasure measure(*weights, workers);
  const double decode = measure.decode();
  return check_limits(*limits, {.decode = decode, .prefill = measure.prefill()});
}

}  // namespace locket::cli
