// The loops behind machine_limits.h for this architecture: reads with the widest loads, and blocks
// of independent instructions that keep one unit busy. Plain functions; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "kernels/machine_limits.h"

namespace locket::kernels::cpu {

// As read_plainly(), in the calling thread.
std::uint64_t read_wide(std::span<const std::byte> bytes);

bool has_unit(PeakUnit unit);
// As run_peak(), in the calling thread; the operations of all rounds.
double keep_busy(PeakUnit unit, std::size_t rounds);

// As cpu_class().
std::string processor_class();

}  // namespace locket::kernels::cpu
