// `locket bench` as a user runs it: what needs no slice, and what it refuses.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "tests/cli/program_cases.h"

namespace locket::cli {
namespace {

using test_support::run_program;

TEST(BenchCommandTest, SaysThatTheBitsAreTheSameAndWritesJson) {
  const test_support::TempFolder folder;
  const std::string json = (folder / "bench.json").string();
  const auto result = run_program(
      {"bench", "--quick", "--only", "H8", "--scratch", folder.path().string(), "--json", json});
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  expect_parts(result.output, {"limits of this machine", "plain read", "O_DIRECT", "H8", "goal"});
  // Not on a terminal: one line for each part.
  expect_parts(result.errors, {"measuring the machine\n", "measuring H8 same bits\n"});
  const auto parsed = nlohmann::json::parse(read_whole_file(json).value());
  ASSERT_EQ(parsed.at("rows").size(), 1U);
  EXPECT_EQ(parsed.at("rows").at(0).at("key"), "same_bits");
  EXPECT_EQ(parsed.at("rows").at(0).at("median"), 1);
  EXPECT_GT(parsed.at("limits").at("disk_bytes_per_second"), 0);
  // Nothing but the JSON is left behind.
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    files += entry.path().filename() == "bench.json" ? 0 : 1;
  }
  EXPECT_EQ(files, 0U);
}

TEST(BenchCommandTest, SaysWhatItLeavesOutWithoutASlice) {
  const auto result = run_program({"bench", "--quick", "--only", "H1"});
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  expect_parts(result.output, {"left out: H1 decode: needs --slice DIR"});
}

TEST(BenchCommandTest, RefusesASliceThatIsNotThere) {
  const auto result =
      run_program({"bench", "--quick", "--only", "H1", "--slice", "/nowhere/slice"});
  EXPECT_EQ(result.exit_code, 1);
  expect_parts(result.errors, {"/nowhere/slice"});
}

TEST(BenchCommandTest, MakesNoSliceInAFolderThatIsInUse) {
  const test_support::TempFolder folder;
  folder.write("note.txt", "mine");
  expect_failure(run_program({"bench", "--make-slice", folder.path().string()}),
                 {"bad_request", "is not empty"});
}

TEST(BenchCommandTest, RefusesRowsThatItDoesNotHave) {
  const auto result = run_program({"bench", "--only", "H10"});
  EXPECT_EQ(result.exit_code, 2);
  expect_parts(result.errors, {"--only", "H10"});
}

TEST(BenchCommandTest, MakingASliceTakesNoOptionOfMeasuring) {
  EXPECT_EQ(run_program({"bench", "--make-slice", "/tmp/x", "--quick"}).exit_code, 2);
  EXPECT_EQ(run_program({"bench", "--seed", "3"}).exit_code, 2);
}

}  // namespace
}  // namespace locket::cli
