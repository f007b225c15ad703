// The promise of the program under random traffic: the logits are the same bits with the memory as
// without it. bench/memory_soak_bench runs the same for longer.
#include <algorithm>
#include <filesystem>
#include <gtest/gtest.h>
#include <iostream>
#include <string>

#include "tests/support/memory_soak.h"
#include "tests/support/sanitizer.h"
#include "tests/support/tiny_models.h"

namespace locket::engine {
namespace {

void run(const std::string& model, model::NumericsMode mode,
         const test_support::SoakOptions& options) {
  const test_support::SoakReport report =
      test_support::run_soak(test_support::tiny_model(model, mode), options);
  for (const std::string& failure : report.failures) ADD_FAILURE() << failure;
  EXPECT_EQ(report.differences, 0);
  EXPECT_GT(report.hit_tokens, report.prompt_tokens / 10) << "the memory was hardly used";
  std::cout << "[figures] " << model << ": " << report.text() << "\n";
}

// Fewer could end before anything is asked for twice.
constexpr std::int64_t kFewestOperations = 10;

std::int64_t operations(std::int64_t count) {
  return test_support::runs_with_sanitizer() ? std::max(count / 5, kFewestOperations) : count;
}

class Folder {
 public:
  explicit Folder(const std::string& name)
      : path_(std::filesystem::path(::testing::TempDir()) / ("locket_property_" + name)) {
    std::filesystem::remove_all(path_);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path_); }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

TEST(MemoryPropertyTest, SameBitsWithPagesInMemory) {
  run("odd", model::NumericsMode::kReference, {.seed = 11, .operations = operations(100)});
  if (test_support::runs_with_sanitizer()) return;
  run("micro", model::NumericsMode::kReference, {.seed = 12, .operations = operations(50)});
}

TEST(MemoryPropertyTest, SameBitsWithPagesOnDisk) {
  const Folder odd("odd");
  run("odd", model::NumericsMode::kReference,
      {.seed = 21, .operations = operations(100), .directory = odd.path()});
  const Folder micro("micro");
  run("micro", model::NumericsMode::kReference,
      {.seed = 22, .operations = operations(40), .directory = micro.path()});
}

TEST(MemoryPropertyTest, SameBitsInWideMode) {
  const Folder folder("wide");
  run("odd", model::NumericsMode::kWide,
      {.seed = 31, .operations = operations(10), .longest = 300, .directory = folder.path()});
}

}  // namespace
}  // namespace locket::engine
