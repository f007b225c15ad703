// The table that `locket memory` prints; its numbers are tested in
// tests/model/lineage_bytes_test.cc.
#include <gtest/gtest.h>
#include <sstream>
#include <string>

#include "cli/commands.h"

namespace locket::cli {
namespace {

std::string printed_table() {
  testing::internal::CaptureStdout();
  EXPECT_EQ(run_memory({}), 0);
  return testing::internal::GetCapturedStdout();
}

TEST(MemoryCommandTest, ShowsBytesRatioAndFormulaOfEachGeneration) {
  const std::string table = printed_table();
  for (const char* text :
       {"V1 67B\n", "389,120   437.21    380.000          -\n      = 95 x 2048 / 1 + 95 x 2048 / 1",
        "5,031.4375     5.65      4.914      22.19\n", "V4.1-Flash\n",
        "   890     1.00      0.869       2.58\n",
        "= 3 x 288 / 2 + 3 x 68 / 2 + 1 x 288 / 1 + 1 x 68 / 1\n",
        "    584 B  448 e4m3 + 64 bf16 + 7 UE8M0 + 1 pad\n"}) {
    EXPECT_NE(table.find(text), std::string::npos) << text;
  }
}

TEST(MemoryCommandTest, FitsAHundredColumns) {
  std::istringstream lines(printed_table());
  std::size_t count = 0;
  for (std::string line; std::getline(lines, line); ++count) EXPECT_LE(line.size(), 100U) << line;
  EXPECT_GT(count, 40U);
}

}  // namespace
}  // namespace locket::cli
