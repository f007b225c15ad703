// `locket inspect --plan`: what would go where, from a config alone and from a checkpoint.
#include "cli/inspect_plan.h"

#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sstream>
#include <string>

#include "tests/support/run_program.h"
#include "tests/support/tiny_models.h"

namespace locket::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

InspectOptions options_for(const fs::path& model) {
  InspectOptions options;
  options.model.model = model;
  options.plan = true;
  return options;
}

// Whether the release fits depends on the machine; either way the numbers are told.
TEST(InspectPlanTest, TheReleaseIsPlannedFromItsConfigAlone) {
  const fs::path config = fs::path(LOCKET_TEST_DATA) / "configs/v41_flash_config.json";
  const auto plan = inspect_plan(options_for(config));
  if (!plan) {
    EXPECT_EQ(plan.error().code, ErrorCode::kOverBudget);
    EXPECT_THAT(plan.error().message, HasSubstr("one token needs 4.53 GB"));
    return;
  }
  for (const char* part : {"estimated from", "routed experts", "202.76 GB on disk, read by rows",
                           "890 B a token", "4.51 GB experts", "that are available"}) {
    EXPECT_THAT(*plan, HasSubstr(part));
  }
}

TEST(InspectPlanTest, ACheckpointIsCounted) {
  const auto plan = inspect_plan(options_for(test_support::tiny_checkpoint("micro")));
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_THAT(*plan, HasSubstr("counted from the "));
  EXPECT_THAT(*plan, HasSubstr("in memory, all 80"));
  std::istringstream lines(*plan);
  std::string line;
  std::getline(lines, line);  // the path, which may be long
  for (; std::getline(lines, line);) EXPECT_LE(line.size(), 100U) << line;
}

TEST(InspectPlanTest, ABudgetForExpertsIsPlannedWith) {
  InspectOptions options = options_for(test_support::tiny_checkpoint("micro"));
  options.model.expert_memory_bytes = 600'000;
  const auto plan = inspect_plan(options);
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_THAT(*plan, HasSubstr("of 80), the others read from disk"));
}

TEST(InspectPlanTest, ABudgetThatIsTooSmallIsRefusedByInspectAndByRunAlike) {
  const std::string model = test_support::tiny_checkpoint("micro").string();
  for (const auto& arguments :
       {std::vector<std::string>{"inspect", model, "--plan", "--expert-memory", "64K"},
        std::vector<std::string>{"run", model, "-p", "Hello", "--expert-memory", "64K"}}) {
    const auto result =
        test_support::run_program(test_support::ProgramCall{.arguments = arguments});
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_THAT(result.errors, HasSubstr("over_budget"));
    EXPECT_THAT(result.errors, HasSubstr("30 (3 in each of 10 layers)"));
    EXPECT_EQ(result.output, "");
  }
}

TEST(InspectPlanTest, StreamedExpertsGiveTheSameAnswerAndThePlanIsToldBeforehand) {
  const auto call = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"run", (fs::path(LOCKET_MODELS) / "mini").string(), "-p",
                                         "My cat is called Milo.", "--max-tokens", "8"});
    return test_support::run_program(test_support::ProgramCall{.arguments = std::move(arguments)});
  };
  const auto resident = call({});
  const auto streamed = call({"--expert-memory", "500K"});
  EXPECT_EQ(resident.exit_code, 0);
  EXPECT_EQ(streamed.exit_code, 0) << streamed.errors;
  EXPECT_EQ(streamed.output, resident.output);
  EXPECT_THAT(streamed.errors, HasSubstr("plan: routed experts"));
}

}  // namespace
}  // namespace locket::cli
