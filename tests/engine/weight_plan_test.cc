#include "engine/weight_plan.h"

#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>

#include "checkpoint/checkpoint.h"
#include "checkpoint/config_json.h"
#include "model/generations/v41_bytes.h"
#include "model/generations/v41_layout.h"
#include "tests/support/tiny_models.h"

namespace locket::engine {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t kGB = 1'000'000'000;

model::V41Config release_config() {
  const auto file = checkpoint::ConfigFile::open(std::filesystem::path(LOCKET_TEST_DATA) /
                                                 "configs" / "v41_flash_config.json");
  return *model::read_v41_config(file->root());
}

Result<WeightPlan> plan_release(const WeightPlanWishes& wishes) {
  const model::V41Config config = release_config();
  return plan_weights(model::estimate_v41_bytes(config),
                      model::make_v41_memory(config, model::NumericsMode::kReference).layout,
                      wishes);
}

void expect_refused(const WeightPlanWishes& wishes, std::initializer_list<std::string> words) {
  const auto plan = plan_release(wishes);
  ASSERT_FALSE(plan);
  EXPECT_EQ(error_code_name(plan.error().code), error_code_name(ErrorCode::kOverBudget));
  for (const std::string& word : words) EXPECT_THAT(plan.error().message, HasSubstr(word));
}

// The sums of the release's own shard headers: dense tensors, Engram tables and experts.
TEST(WeightPlanTest, TheReleaseIsCountedFromItsConfigAlone) {
  const model::WeightBytes bytes = model::estimate_v41_bytes(release_config());
  EXPECT_TRUE(bytes.is_estimate);
  EXPECT_EQ(bytes.expert_read, 18'800'640U);
  // Three matrices of three large pages each, their scales among them.
  EXPECT_EQ(bytes.expert, 9 * (std::uint64_t{2} << 20));
  EXPECT_EQ(bytes.engram_on_disk, 202'758'032'400U);
  EXPECT_EQ(bytes.engram_resident, 0U);
  // Encoder, decoder, Engram projections, embedding and head, without 15,360 experts.
  const double dense = 147'838'599'136.0 + 147'823'271'392.0 + 315'043'840.0 + 2'647'664'640.0 -
                       15'360.0 * 18'800'640.0;
  EXPECT_NEAR(static_cast<double>(bytes.dense), dense * 1.04, dense * 0.005);
  // performance: 8.53 GB without routed experts, 13.04 GB with them.
  EXPECT_NEAR(static_cast<double>(bytes.token_dense), 8.53e9, 0.05e9);
}

TEST(WeightPlanTest, AMachineThatHoldsEverythingHoldsEverything) {
  const auto plan = plan_release({.available_bytes = 512 * kGB});
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_FALSE(plan->streams);
  EXPECT_EQ(plan->expert_bytes, plan->all_expert_bytes());
  EXPECT_EQ(plan->slice_tokens, 512U);
  EXPECT_LE(plan->peak_bytes(), plan->available_bytes);
}

TEST(WeightPlanTest, ASmallerMachineHoldsAsManyExpertsAsAreSafe) {
  for (const std::uint64_t available : {24 * kGB, 64 * kGB, 128 * kGB, 300 * kGB}) {
    const auto plan = plan_release({.available_bytes = available});
    ASSERT_TRUE(plan) << plan.error().message;
    EXPECT_TRUE(plan->streams);
    EXPECT_GE(plan->expert_bytes, plan->working_set_bytes());
    EXPECT_LE(plan->peak_bytes(), available);
    EXPECT_GE(plan->peak_bytes(), available / 10 * 9) << "memory is left unused";
    EXPECT_GE(plan->slice_tokens, 2048U);
  }
}

TEST(WeightPlanTest, WishesAreTakenAsTheyAre) {
  const auto plan =
      plan_release({.available_bytes = 64 * kGB, .expert_bytes = 20 * kGB, .pool_bytes = 3 * kGB});
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_TRUE(plan->streams);
  EXPECT_EQ(plan->expert_bytes, 20 * kGB);
  EXPECT_EQ(plan->pool_bytes, 3 * kGB);
}

TEST(WeightPlanTest, ExpertsBelowOneTokensWorkingSetAreRefusedWithTheNumbers) {
  expect_refused({.available_bytes = 64 * kGB, .expert_bytes = kGB},
                 {"1.00 GB", "hold 52", "240 (6 in each of 40 layers)", "at least 4.53 GB"});
}

TEST(WeightPlanTest, ExpertsAboveWhatIsAvailableAreRefusedWithTheNumbers) {
  expect_refused({.available_bytes = 64 * kGB, .expert_bytes = 60 * kGB},
                 {"64.00 GB are available", "60.00 GB experts", "experts may take at most"});
}

TEST(WeightPlanTest, AMachineThatIsTooSmallIsRefusedWithTheNumbers) {
  expect_refused({.available_bytes = 12 * kGB},
                 {"12.00 GB are available", "one token needs 4.53 GB"});
}

TEST(WeightPlanTest, WithoutAnyKnowledgeOfTheMachineEverythingIsHeldUnlessAsked) {
  EXPECT_FALSE(plan_release({})->streams);
  EXPECT_TRUE(plan_release({.expert_bytes = 10 * kGB})->streams);
}

TEST(WeightPlanTest, TheBoundIsTheSlowerOfMemoryAndDisk) {
  const auto plan = plan_release({.available_bytes = 64 * kGB});
  ASSERT_TRUE(plan);
  const double bytes = static_cast<double>(plan->model.token_dense + plan->routed_token_bytes());
  EXPECT_DOUBLE_EQ(plan->tokens_per_second({.memory = 58e9}, 0), 58e9 / bytes);
  EXPECT_EQ(plan->tokens_per_second({}, 0), 0);
  EXPECT_EQ(plan->tokens_per_second({.memory = 58e9}, 1), 0);
  // 2.8 GB/s over 4.51 GB.
  EXPECT_NEAR(plan->tokens_per_second({.memory = 58e9, .disk = 2.8e9}, 1), 0.62, 0.005);
}

TEST(WeightPlanTest, TheLinesSayWhatGoesWhere) {
  const auto plan = plan_release({.available_bytes = 64 * kGB, .expert_bytes = 20 * kGB});
  std::string text;
  for (const std::string& line : describe_plan(*plan, {})) text += line + "\n";
  for (const char* words :
       {"20.00 GB of 289.91 GB in memory (1059 of 15360), the others read from disk",
        "202.76 GB on disk", "890 B a token", "2048 prompt tokens at once",
        "64.00 GB that are available", "not known"}) {
    EXPECT_THAT(text, HasSubstr(words));
  }
}

TEST(WeightPlanTest, ACheckpointIsCountedFromItsTensors) {
  for (const std::string& name : test_support::tiny_names()) {
    const auto checkpoint = checkpoint::Checkpoint::open(test_support::tiny_checkpoint(name));
    const auto config = model::read_v41_config(checkpoint->config().root());
    const model::WeightBytes counted = model::count_v41_bytes(*config, *checkpoint);
    const model::WeightBytes estimated = model::estimate_v41_bytes(*config);
    EXPECT_FALSE(counted.is_estimate);
    EXPECT_EQ(counted.expert, estimated.expert);
    EXPECT_EQ(counted.expert_read, estimated.expert_read);
    EXPECT_EQ(counted.engram_resident > 0, !config->engram.layer_ids.empty());
    EXPECT_EQ(counted.engram_on_disk, 0U);
    EXPECT_NEAR(static_cast<double>(counted.dense), static_cast<double>(estimated.dense),
                static_cast<double>(estimated.dense) * 0.3);
  }
}

}  // namespace
}  // namespace locket::engine
