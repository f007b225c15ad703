// A conversation survives kill -9 at any moment: at most the turn that was being written is lost.
#include <filesystem>
#include <gtest/gtest.h>
#include <iostream>

#include "tests/support/memory_kills.h"
#include "tests/support/sanitizer.h"
#include "tests/support/tiny_models.h"

namespace locket::engine {
namespace {

TEST(MemoryKillTest, B20_FiftyKillsLoseNothingThatWasWritten) {
  const std::filesystem::path folder =
      std::filesystem::path(::testing::TempDir()) / "locket_memory_kill";
  std::filesystem::remove_all(folder);
  const auto report = test_support::run_kills(
      test_support::tiny_model("odd", model::NumericsMode::kReference),
      {.seed = 4, .kills = test_support::runs_with_sanitizer() ? 10 : 50, .directory = folder});
  std::filesystem::remove_all(folder);
  std::cout << "[figures] " << report.text() << "\n";
  EXPECT_TRUE(report.is_good()) << report.text();
  EXPECT_GT(report.turns, report.kills / 2) << "the kills came too early to mean anything";
}

}  // namespace
}  // namespace locket::engine
