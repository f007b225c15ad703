// Does the replay count rightly? A small trace is replayed and compared with the longest common
// prefix of every request with everything seen before, found by comparing all of it.
#pragma once

#include <cstdint>
#include <string>

namespace locket::agent_trace {

// Empty if all is well, else what is wrong.
std::string self_check(std::uint64_t seed);

}  // namespace locket::agent_trace
