// The tiny checkpoint "micro" with experts so wide that they are most of its bytes: to see what is
// held in memory. Random weights; the same on every machine.
#pragma once

#include <cstddef>
#include <filesystem>

namespace locket::test_support {

// 80 routed experts of about this many bytes each in memory: 10 layers of 8, of which a token goes
// through 3 in each layer.
inline constexpr std::size_t kWideExperts = 80;
inline constexpr std::size_t kWideWorkingSet = 30;
inline constexpr std::size_t kWideExpertBytes = 3 * 128 * 6144 * 17 / 32;

// Writes it into `folder`, which exists. Throws std::runtime_error if that fails.
void write_wide_experts(const std::filesystem::path& folder);

}  // namespace locket::test_support
