// Memory of the process and the machine, as the kernel tells it.
#include "base/system_memory.h"

#include <cstddef>
#include <gtest/gtest.h>
#include <vector>

namespace locket {
namespace {

TEST(SystemMemoryTest, KnowsWhatIsFree) { EXPECT_GT(available_memory_bytes(), 0U); }

TEST(SystemMemoryTest, SeesMemoryThatIsUsed) {
  constexpr std::size_t kBytes = std::size_t{64} << 20;
  const std::uint64_t before = resident_memory_bytes();
  ASSERT_GT(before, 0U);
  const std::vector<std::byte> used(kBytes, std::byte{1});
  EXPECT_EQ(used.back(), std::byte{1});
  EXPECT_GE(resident_memory_bytes(), before + kBytes * 9 / 10);
}

}  // namespace
}  // namespace locket
