// How much memory this process may still take.
#pragma once

#include <cstdint>

namespace locket {

// The least of the machine's available memory and what the process's cgroup leaves; 0 if neither
// can be read.
std::uint64_t available_memory_bytes();

}  // namespace locket
