// The measured half of `locket memory`; the measurement is tested in
// tests/engine/live_cache_test.cc.
#include "cli/live_memory.h"

#include <filesystem>
#include <gtest/gtest.h>

#include "cli/commands.h"
#include "tests/support/tiny_models.h"

namespace locket::cli {
namespace {

TEST(LiveMemoryTest, MeasuresAConfigWithoutWeights) {
  const auto path = std::filesystem::path(LOCKET_TEST_DATA) / "configs/v41_flash_config.json";
  const auto text = live_memory_text(path, 1280);
  ASSERT_TRUE(text) << text.error().message;
  for (const char* part :
       {"1,280 tokens", "  computed      1,139,200        890  ",
        "  pages in use  1,139,200     890.00  ", "  rings         2,703,360          -  "}) {
    EXPECT_NE(text->find(part), std::string::npos) << part << *text;
  }
}

TEST(LiveMemoryTest, RunsACheckpoint) {
  const auto text = live_memory_text(test_support::tiny_checkpoint("micro"), 256);
  ASSERT_TRUE(text) << text.error().message;
  for (const char* part : {"256 tokens: random ids", "  pages in use ", " 106.00  "}) {
    EXPECT_NE(text->find(part), std::string::npos) << part << *text;
  }
}

TEST(LiveMemoryTest, GoesOnAfterAModelThatCannotBeRead) {
  const auto config = std::filesystem::path(LOCKET_TEST_DATA) / "configs/v41_flash_config.json";
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  EXPECT_EQ(
      run_memory({.models = {"/nothing/here", config}, .tokens = 128, .is_computed_only = true}),
      1);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("/nothing/here"), std::string::npos);
  EXPECT_NE(testing::internal::GetCapturedStdout().find("890.00"), std::string::npos);
}

}  // namespace
}  // namespace locket::cli
