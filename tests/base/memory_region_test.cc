#include "base/memory_region.h"

#include <algorithm>
#include <cstring>
#include <gtest/gtest.h>
#include <span>
#include <utility>

#include "base/system_memory.h"

namespace locket {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

bool is_zero(std::span<const std::byte> bytes) {
  return std::ranges::all_of(bytes, [](std::byte byte) { return byte == std::byte{0}; });
}

TEST(MemoryRegionTest, CostsMemoryOnlyWhereItIsTouched) {
  const std::uint64_t before = resident_memory_bytes();
  MemoryRegion region(std::size_t{1} << 40);
  EXPECT_LT(resident_memory_bytes(), before + 4 * kMiB);
  std::memset(region.data() + (std::size_t{1} << 39), 1, 32 * kMiB);
  EXPECT_GE(resident_memory_bytes(), before + 31 * kMiB);
}

TEST(MemoryRegionTest, ForgottenBytesAreZeroAndTheirMemoryIsGivenBack) {
  MemoryRegion region(64 * kMiB);
  std::memset(region.data(), 7, region.size());
  const std::uint64_t full = resident_memory_bytes();
  region.forget(kMiB + 100, 32 * kMiB);
  EXPECT_LE(resident_memory_bytes() + 31 * kMiB, full);
  EXPECT_TRUE(is_zero({region.data() + kMiB + 4096, 32 * kMiB - 4096}));
  EXPECT_EQ(region.data()[kMiB + 99], std::byte{7});
  EXPECT_EQ(region.data()[kMiB + 100 + 32 * kMiB], std::byte{7});
  region.forget(5, 10);
  EXPECT_EQ(region.data()[7], std::byte{7}) << "less than a page of the system stays";
}

TEST(MemoryRegionTest, MovesWithItsBytes) {
  MemoryRegion first(kMiB);
  first.data()[3] = std::byte{9};
  const MemoryRegion second = std::move(first);
  EXPECT_EQ(second.data()[3], std::byte{9});
  EXPECT_EQ(second.size(), kMiB);
}

TEST(MemoryRegionDeathTest, RangesOutsideAreRefused) {
  MemoryRegion region(kMiB);
  EXPECT_DEATH(region.forget(kMiB, 1), "check failed");
  EXPECT_DEATH(MemoryRegion(0), "check failed");
}

}  // namespace
}  // namespace locket
