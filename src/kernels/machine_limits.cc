#include "kernels/machine_limits.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <utility>
#include <vector>

#include "base/append_file.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/direct_file.h"
#include "base/folder.h"
#include "base/hash.h"
#include "base/memory_region.h"
#include "base/system_memory.h"
#include "base/thread_group.h"
#include "kernels/cpu/machine_loops.h"

namespace locket::kernels {
namespace {

constexpr std::size_t kLine = 64;
constexpr std::size_t kFillGrain = std::size_t{1} << 15;  // lines
constexpr std::size_t kDiskBlock = std::size_t{1} << 20;
constexpr std::size_t kDiskThreads = 4;
// Short trials, so that some of them are not interrupted.
constexpr std::size_t kPeakTrials = 8;
constexpr std::size_t kForkJoins = 200;

enum class Better { kHigher, kLower };

BestAndMedian sum_up(std::vector<double> trials, Better better) {
  std::sort(trials.begin(), trials.end());
  return {.best = better == Better::kHigher ? trials.back() : trials.front(),
          .median = trials[trials.size() / 2]};
}

// `trial` returns what it did; the rate is that per second.
BestAndMedian rate_of(std::size_t runs, const std::function<double()>& trial) {
  std::vector<double> rates;
  static_cast<void>(trial());  // the first one finds cold pages and sleeping cores
  for (std::size_t run = 0; run < runs; ++run) {
    const double begin = monotonic_seconds();
    const double done = trial();
    rates.push_back(done / (monotonic_seconds() - begin));
  }
  return sum_up(std::move(rates), Better::kHigher);
}

ThreadedRate threaded_rate(std::size_t runs, WorkerPool& workers,
                           const std::function<double(WorkerPool&)>& trial) {
  WorkerPool alone(1);
  ThreadedRate rate;
  rate.one = rate_of(runs, [&] { return trial(alone); });
  rate.all = workers.thread_count() == 1 ? rate.one : rate_of(runs, [&] { return trial(workers); });
  return rate;
}

// Bytes that were written once, in large pages.
class ReadSubject {
 public:
  ReadSubject(std::size_t bytes, WorkerPool& workers)
      : region_(bytes, MemoryRegion::Pages::kLarge) {
    workers.parallel_for(bytes / kLine, kFillGrain, [&](std::size_t begin, std::size_t end) {
      std::fill(region_.data() + begin * kLine, region_.data() + end * kLine, std::byte{1});
    });
  }
  std::span<const std::byte> bytes() const { return {region_.data(), region_.size()}; }

 private:
  MemoryRegion region_;
};

BestAndMedian measure_fork_join(std::size_t runs, WorkerPool& workers) {
  const std::size_t threads = workers.thread_count();
  std::vector<double> seconds;
  std::atomic<std::size_t> calls = 0;
  for (std::size_t run = 0; run <= runs; ++run) {
    const double begin = monotonic_seconds();
    for (std::size_t i = 0; i < kForkJoins; ++i) {
      workers.parallel_for(threads, 1, [&](std::size_t, std::size_t) { ++calls; });
    }
    const double each = (monotonic_seconds() - begin) / kForkJoins;
    if (run > 0) seconds.push_back(each);  // the first one wakes the threads
  }
  return sum_up(std::move(seconds), Better::kLower);
}

// A file that goes away again.
class TrialFile {
 public:
  static Result<TrialFile> make(const std::filesystem::path& folder, std::size_t bytes) {
    std::array<std::byte, 8> unique = {};
    random_bytes(unique);
    TrialFile made(folder / ("locket-disk-trial-" + to_hex(unique)));
    LOCKET_TRY(AppendFile file, AppendFile::create(made.path_));
    std::vector<std::byte> block(kDiskBlock);
    for (std::size_t at = 0; at < bytes; at += block.size()) {
      random_bytes(std::span(block).first(kLine));  // no two blocks are alike
      LOCKET_TRY_STATUS(file.append(block));
    }
    LOCKET_TRY_STATUS(file.sync());
    drop_cached_file(made.path_);
    return made;
  }
  TrialFile(TrialFile&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  TrialFile& operator=(TrialFile&&) = delete;
  TrialFile(const TrialFile&) = delete;
  TrialFile& operator=(const TrialFile&) = delete;
  ~TrialFile() {
    // Nobody can be told if it stays.
    if (!path_.empty()) static_cast<void>(remove_file(path_));
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  explicit TrialFile(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

// What the threads found that read one file.
struct DirectReads {
  std::atomic<std::uint64_t> next = 0;
  std::atomic<bool> has_failed = false;
};

void read_blocks(const DirectFile& file, std::uint64_t bytes, DirectReads& reads) {
  const DirectBuffer buffer(kDiskBlock);
  for (std::uint64_t at = kDiskBlock * reads.next++; at < bytes; at = kDiskBlock * reads.next++) {
    if (!file.read(at, buffer.bytes())) reads.has_failed = true;
  }
}

}  // namespace

std::string_view peak_unit_name(PeakUnit unit) {
  switch (unit) {
    case PeakUnit::kF32:
      return "float32";
    case PeakUnit::kBf16:
      return "bf16";
    case PeakUnit::kInt8:
      return "int8";
    case PeakUnit::kAmxBf16:
      return "AMX bf16";
    case PeakUnit::kAmxInt8:
      return "AMX int8";
    case PeakUnit::kCount:
      break;
  }
  return "";
}

bool has_peak_unit(PeakUnit unit) { return cpu::has_unit(unit); }

std::uint64_t read_plainly(std::span<const std::byte> bytes, WorkerPool& workers) {
  LOCKET_CHECK(reinterpret_cast<std::uintptr_t>(bytes.data()) % kLine == 0);
  LOCKET_CHECK(bytes.size() % kLine == 0);
  std::atomic<std::uint64_t> sum = 0;
  workers.parallel_for(bytes.size() / kLine, kLine, [&](std::size_t begin, std::size_t end) {
    sum += cpu::read_wide(bytes.subspan(begin * kLine, (end - begin) * kLine));
  });
  return sum;
}

double run_peak(PeakUnit unit, std::size_t rounds, WorkerPool& workers) {
  LOCKET_CHECK(has_peak_unit(unit));
  const std::size_t threads = workers.thread_count();
  std::atomic<double> operations = 0;
  workers.parallel_for(threads, 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) operations += cpu::keep_busy(unit, rounds);
  });
  return operations;
}

std::size_t peak_rounds_per_millisecond(PeakUnit unit) {
  // Rounds are 768 instructions of the vector units, 256 of 16 cycles each of the tiles.
  const bool is_tiles = unit == PeakUnit::kAmxBf16 || unit == PeakUnit::kAmxInt8;
  return is_tiles ? 700 : 4000;
}

Status read_directly(const std::filesystem::path& path, std::uint64_t bytes) {
  LOCKET_TRY(const DirectFile file, DirectFile::open(path));
  DirectReads reads;
  {
    const ThreadGroup readers(kDiskThreads, [&] { read_blocks(file, bytes, reads); });
  }
  if (!reads.has_failed) return {};
  return fail(ErrorCode::kIo, "cannot read " + path.string());
}

Result<BestAndMedian> measure_disk_read(const std::filesystem::path& folder, std::size_t bytes,
                                        std::size_t runs) {
  const std::size_t whole = std::max<std::size_t>(1, bytes / kDiskBlock) * kDiskBlock;
  LOCKET_TRY(const TrialFile trial, TrialFile::make(folder, whole));
  std::vector<double> rates;
  for (std::size_t run = 0; run < runs; ++run) {
    const double begin = monotonic_seconds();
    LOCKET_TRY_STATUS(read_directly(trial.path(), whole));
    rates.push_back(static_cast<double>(whole) / (monotonic_seconds() - begin));
  }
  return sum_up(std::move(rates), Better::kHigher);
}

Result<MachineLimits> measure_machine_limits(const LimitOptions& options, WorkerPool& workers) {
  LOCKET_CHECK(options.runs >= 1);
  const std::uint64_t available = available_memory_bytes();
  if (available > 0 && options.read_bytes > available / 2) {
    return fail(ErrorCode::kOverBudget, "reading memory takes " +
                                            std::to_string(options.read_bytes) +
                                            " bytes, more than half of the " +
                                            std::to_string(available) + " bytes that are free");
  }
  MachineLimits limits;
  limits.threads = workers.thread_count();
  for (std::size_t i = 0; i < static_cast<std::size_t>(PeakUnit::kCount); ++i) {
    const auto unit = static_cast<PeakUnit>(i);
    if (!has_peak_unit(unit)) continue;
    const std::size_t rounds = peak_rounds_per_millisecond(unit);
    limits.peaks[i] = threaded_rate(kPeakTrials * options.runs, workers,
                                    [&](WorkerPool& pool) { return run_peak(unit, rounds, pool); });
  }
  {
    const ReadSubject subject(options.read_bytes / kLine * kLine, workers);
    limits.read = threaded_rate(options.runs, workers, [&](WorkerPool& pool) {
      static_cast<void>(read_plainly(subject.bytes(), pool));
      return static_cast<double>(subject.bytes().size());
    });
  }
  limits.fork_join = measure_fork_join(options.runs, workers);
  if (options.disk_folder.empty()) return limits;
  LOCKET_TRY(limits.disk_read,
             measure_disk_read(options.disk_folder, options.disk_bytes, options.runs));
  return limits;
}

std::string cpu_class() { return cpu::processor_class(); }

}  // namespace locket::kernels
