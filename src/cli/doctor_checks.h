// The checks of `locket doctor`. Each looks at one thing and gives its findings; none prints, and
// what a check looks at is given to it, so that tests can give it something that is wrong.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/machine_facts.h"
#include "cli/doctor_report.h"
#include "cli/memory_path.h"
#include "kernels/kernel_table.h"
#include "kernels/machine_limits.h"

namespace locket::cli {

// `threads` are meant to compute; 0: one per core.
std::vector<Finding> check_machine(const MachineFacts& facts, std::size_t threads);
// The wall clock, in seconds since 1970.
Finding check_clock(double now_seconds);

// Every kernel of `table` against the reference on `cases` random inputs each.
std::vector<Finding> check_table(const kernels::KernelTable& table, std::size_t cases);
// Every table of this machine, and which one is active.
std::vector<Finding> check_all_kernels();

// Files, headers, sizes, shapes against the config, samples of the values, the tokenizer; and, of a
// model that is small enough, one answer.
std::vector<Finding> check_checkpoint(const std::filesystem::path& folder);

// The folder, its format, and a sample of what it keeps. `quota_bytes` 0: the default.
std::vector<Finding> check_memory(const MemoryChoice& choice, std::uint64_t quota_bytes);

// How near the kernels come to what the machine can do, measured in turn with it.
struct KernelRates {
  double decode = 0;  // bytes of weights for one token, over a plain read of them
  double prefill =
      0;  // products of many tokens, over the peak of bfloat16; 0: the machine has none
};
std::vector<Finding> check_limits(const kernels::MachineLimits& limits, const KernelRates& rates);
// Measures both, some seconds; `threads` 0: one per core. `disk_folder` empty: no disk.
std::vector<Finding> measure_machine(std::size_t threads, const std::filesystem::path& disk_folder);

}  // namespace locket::cli
