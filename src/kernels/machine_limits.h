// What this machine can do at best, measured with the plainest loops there are: reading memory,
// multiplying in registers, reading a disk, waking the threads of a pool. Kernels are judged by the
// ratio to these, always within one run, because machines are shared and change by the minute.
//
// read_plainly() and run_peak() are single trials, for who measures something beside them in turn;
// measure_machine_limits() is the whole list. Free functions without state, safe to call from the
// thread that owns the pool; nothing else should run at the same time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/worker_pool.h"

namespace locket::kernels {

// Arithmetic units that kernels use. An operation is one multiplication or one addition.
enum class PeakUnit {
  kF32,      // fused multiply-adds of float32, the widest that the machine has
  kBf16,     // vdpbf16ps, 512 bits
  kInt8,     // vpdpbusd, 512 bits
  kAmxBf16,  // tdpbf16ps
  kAmxInt8,  // tdpbssd
  kCount
};

// "float32", "bf16", "int8", "AMX bf16", "AMX int8".
std::string_view peak_unit_name(PeakUnit unit);
// Whether this machine has it and the system lets us use it.
bool has_peak_unit(PeakUnit unit);

// Reads every byte once with wide loads, a contiguous part per thread; the result only keeps the
// loads alive. REQUIRES: 64-byte aligned; a multiple of 64 bytes.
std::uint64_t read_plainly(std::span<const std::byte> bytes, WorkerPool& workers);

// Keeps every thread's unit busy with independent operations on registers, `rounds` times a block
// of a few thousand operations. Returns the operations that were done, of all threads.
// REQUIRES: has_peak_unit(unit).
double run_peak(PeakUnit unit, std::size_t rounds, WorkerPool& workers);
// Rounds that take about a millisecond.
std::size_t peak_rounds_per_millisecond(PeakUnit unit);

// Of several trials. Rates are units a second, costs are seconds; 0: not measured, or the machine
// has no such thing.
struct BestAndMedian {
  double best = 0;
  double median = 0;
};

struct ThreadedRate {
  BestAndMedian one;  // one thread
  BestAndMedian all;  // all threads of the pool together
};

struct LimitOptions {
  std::size_t runs = 7;                           // trials of everything; at least 1
  std::size_t read_bytes = std::size_t{1} << 30;  // must exceed what caches can keep
  std::filesystem::path disk_folder = {};         // empty: the disk is not measured
  std::size_t disk_bytes = std::size_t{1} << 30;  // of a file that is made there and removed
};

struct MachineLimits {
  std::size_t threads = 0;
  ThreadedRate read;                                               // bytes/s
  ThreadedRate peaks[static_cast<std::size_t>(PeakUnit::kCount)];  // operations/s
  BestAndMedian disk_read;  // bytes/s past the page cache, 1 MiB blocks, 4 threads
  BestAndMedian fork_join;  // seconds until all threads have begun and ended an empty task

  const ThreadedRate& peak(PeakUnit unit) const { return peaks[static_cast<std::size_t>(unit)]; }
};

// A few seconds. kIo if the disk cannot be measured; kOverBudget if `read_bytes` is more than half
// of the free memory.
[[nodiscard]] Result<MachineLimits> measure_machine_limits(const LimitOptions& options,
                                                           WorkerPool& workers);

// Bytes/s of direct reads of 1 MiB by four threads, of a file of `bytes` that is made in `folder`
// and removed again. kIo.
[[nodiscard]] Result<BestAndMedian> measure_disk_read(const std::filesystem::path& folder,
                                                      std::size_t bytes, std::size_t runs);

// Reads the file from its beginning, as measure_disk_read() does; at most `bytes`. kIo.
[[nodiscard]] Status read_directly(const std::filesystem::path& path, std::uint64_t bytes);

// Machines that are alike have the same name: "genuineintel-6-143" (vendor, family, model as the
// processor states them).
std::string cpu_class();

}  // namespace locket::kernels
