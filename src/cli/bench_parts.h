// The parts of `locket bench`, each of which gives some rows. A part keeps what it measures within
// its own run and gives its memory back before the next one begins.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/memory_region.h"
#include "base/result.h"
#include "base/worker_pool.h"
#include "cli/bench_rows.h"
#include "cli/model_setup.h"

namespace locket::cli {

// Memory for plain reads, larger than what caches keep; reads go round in it.
class PlainReader {
 public:
  PlainReader(std::size_t bytes, WorkerPool& workers);

  std::size_t size() const { return region_.size(); }
  // Reads so many bytes, rounded up to 64, with the threads of `workers`.
  void read(std::uint64_t bytes, WorkerPool& workers);

 private:
  MemoryRegion region_;
  std::size_t next_ = 0;
};

struct BenchSetup {
  std::size_t runs = 7;
  bool is_quick = false;
  std::filesystem::path scratch;      // for files that are made and removed
  std::filesystem::path small_model;  // the one that ships
  std::size_t threads = 1;
  WorkerPool& workers;  // of the kernels' parts
  PlainReader& plain;
  ModelSetup* slice = nullptr;  // none: parts that need it are left out
};

using BenchRows = std::vector<BenchRow>;

struct BenchPart {
  std::string group;  // "H1", or "small"
  std::string what;
  enum class Needs { kNothing, kSlice } needs = Needs::kNothing;
  Result<BenchRows> (*run)(const BenchSetup& setup) = nullptr;
};

// In the order of the table.
const std::vector<BenchPart>& bench_parts();

[[nodiscard]] Result<BenchRows> bench_decode(const BenchSetup& setup);       // H1
[[nodiscard]] Result<BenchRows> bench_experts(const BenchSetup& setup);      // H2
[[nodiscard]] Result<BenchRows> bench_prefill(const BenchSetup& setup);      // H3
[[nodiscard]] Result<BenchRows> bench_index(const BenchSetup& setup);        // H4, kernel
[[nodiscard]] Result<BenchRows> bench_context(const BenchSetup& setup);      // H4, slice
[[nodiscard]] Result<BenchRows> bench_restore(const BenchSetup& setup);      // H5
[[nodiscard]] Result<BenchRows> bench_stream(const BenchSetup& setup);       // H6
[[nodiscard]] Result<BenchRows> bench_verify(const BenchSetup& setup);       // H7
[[nodiscard]] Result<BenchRows> bench_same_bits(const BenchSetup& setup);    // H8
[[nodiscard]] Result<BenchRows> bench_small_model(const BenchSetup& setup);  // small

}  // namespace locket::cli
