// The promise of the program for every generation: the logits are the same bits with the memory as
// without it, under random traffic, with pages in memory and on disk.
#include <algorithm>
#include <filesystem>
#include <gtest/gtest.h>
#include <iostream>
#include <string>

#include "tests/support/lineage_oracle.h"
#include "tests/support/memory_soak.h"
#include "tests/support/sanitizer.h"

namespace locket::engine {
namespace {

class LineageMemoryTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(::testing::TempDir()) / ("locket_lineage_" + GetParam());
    std::filesystem::remove_all(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // `count` operations, fewer where everything takes ten times as long.
  void run(model::NumericsMode mode, test_support::SoakOptions options, std::int64_t count) const {
    constexpr std::int64_t kFewest = 10;  // fewer could end before anything is asked for twice
    const bool is_slow = test_support::runs_with_sanitizer();
    options.operations = is_slow ? std::max(count / 5, kFewest) : count;
    const model::LanguageModel& model = test_support::LineageModel::get(GetParam(), mode).model();
    // With windows, long enough that a start without rings begins behind the first token.
    const std::int64_t restart = model.shape().restart_tokens();
    if (restart > 0) {
      options.longest = restart + 400;
      options.operations = std::max(options.operations / 2, kFewest);
    }
    const test_support::SoakReport report = test_support::run_soak(model, options);
    for (const std::string& failure : report.failures) ADD_FAILURE() << failure;
    EXPECT_EQ(report.differences, 0);
    EXPECT_GT(report.hit_tokens, report.prompt_tokens / 10) << "the memory was hardly used";
    std::cout << "[figures] " << GetParam() << ": " << report.text() << "\n";
  }

  std::filesystem::path folder_;
};

TEST_P(LineageMemoryTest, SameBitsWithPagesInMemory) {
  run(model::NumericsMode::kWide, {.seed = 41}, 50);
}

TEST_P(LineageMemoryTest, SameBitsWithPagesOnDisk) {
  run(model::NumericsMode::kWide, {.seed = 42, .directory = folder_}, 50);
}

TEST_P(LineageMemoryTest, SameBitsOfPlainRows) {
  run(model::NumericsMode::kPlain, {.seed = 43, .longest = 300, .directory = folder_}, 15);
}

INSTANTIATE_TEST_SUITE_P(Generations, LineageMemoryTest,
                         ::testing::Values("v1", "v2", "v2lite", "v3", "v32", "v4flash", "v4pro"),
                         [](const auto& test_case) { return test_case.param; });

}  // namespace
}  // namespace locket::engine
