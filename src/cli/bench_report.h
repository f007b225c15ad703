// What `locket bench` says: a table for people, and JSON for the gate (tools/check_bench.py), which
// compares the ratios of two runs on machines of one kind.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "cli/bench_rows.h"
#include "kernels/machine_limits.h"

namespace locket::cli {

struct BenchReport {
  std::string machine;  // kernels::cpu_class() and the threads
  std::string kernels;  // the table that was used
  bool is_quick = false;
  std::size_t runs = 0;
  kernels::MachineLimits limits;
  std::vector<BenchRow> rows;
  std::vector<std::string> left_out;  // "H1 decode: needs --slice"
};

std::string bench_text(const BenchReport& report);
std::string bench_json(const BenchReport& report);

}  // namespace locket::cli
