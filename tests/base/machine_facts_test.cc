#include "base/machine_facts.h"

#include <gtest/gtest.h>

namespace locket {
namespace {

TEST(MachineFactsTest, ReadsThisMachine) {
  const MachineFacts facts = read_machine_facts();
  EXPECT_GE(facts.online_threads, 1U);
  EXPECT_GE(facts.allowed_threads, 1U);
  EXPECT_LE(facts.allowed_threads, 1U << 16);
  EXPECT_GT(facts.memory_bytes, std::uint64_t{1} << 26);
  EXPECT_LE(facts.memory_available, facts.memory_bytes);
  EXPECT_GT(facts.open_files, 0U);
}

}  // namespace
}  // namespace locket
