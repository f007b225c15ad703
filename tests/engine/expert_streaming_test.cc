// Experts that do not fit, through the engine: the memory that is taken, what is refused before
// anything is read, and what a second start knows.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/system_memory.h"
#include "engine/engine.h"
#include "tests/support/checkpoint_files.h"
#include "tests/support/sanitizer.h"
#include "tests/support/tiny_models.h"
#include "tests/support/wide_experts.h"

namespace locket::engine {
namespace {

using test_support::kWideExpertBytes;
using test_support::kWideExperts;
using test_support::kWideWorkingSet;
using ::testing::HasSubstr;

constexpr std::uint64_t kMB = 1'000'000;
constexpr std::size_t kPromptTokens = 100;

std::vector<std::int32_t> token_map(std::size_t vocabulary) {
  constexpr std::size_t kClasses = 400;  // engram_compressed_vocab_size
  std::vector<std::int32_t> map(vocabulary);
  for (std::size_t i = 0; i < map.size(); ++i) map[i] = static_cast<std::int32_t>(i % kClasses);
  return map;
}

// The most memory this process has had since the last call of reset_peak().
std::uint64_t peak_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stoull(line.substr(6)) * 1024;
  }
  return 0;
}

bool reset_peak() {
  std::ofstream file("/proc/self/clear_refs");
  file << "5";
  file.flush();
  return file.good();
}

class ExpertStreamingTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<test_support::TempFolder>();
    test_support::write_wide_experts(folder_->path());
  }
  static void TearDownTestSuite() { folder_.reset(); }

  static EngineOptions options(std::uint64_t expert_bytes) {
    return {.threads = 2,
            .pool_budget_bytes = 64 * kMB,
            .expert_budget_bytes = expert_bytes,
            .memory = {.keeps = MemoryOptions::Keeps::kNothing}};
  }
  static Result<std::unique_ptr<Engine>> open(const EngineOptions& options) {
    return Engine::open(folder_->path(), token_map(480), options);
  }
  static std::vector<TokenId> prompt(std::uint32_t seed, std::size_t count = kPromptTokens) {
    return test_support::random_ids(seed, count, 480);
  }
  static std::vector<float> logits(Engine& engine, std::uint32_t seed) {
    Session session = engine.make_session();
    const auto ids = prompt(seed);
    EXPECT_TRUE(session.prefill(ids));
    for (TokenId token = 0; token < 8; ++token) EXPECT_TRUE(session.append(token));
    return {session.logits().begin(), session.logits().end()};
  }

  static std::unique_ptr<test_support::TempFolder> folder_;
};

std::unique_ptr<test_support::TempFolder> ExpertStreamingTest::folder_;

constexpr std::uint64_t kBudget = kWideExpertBytes * (kWideWorkingSet + 2);

TEST_F(ExpertStreamingTest, TheAnswersAreThoseOfResidentExperts) {
  const auto resident = open(options(0));
  ASSERT_TRUE(resident) << resident.error().message;
  EXPECT_FALSE((*resident)->plan().streams);
  const auto streamed = open(options(kBudget));
  ASSERT_TRUE(streamed) << streamed.error().message;
  EXPECT_TRUE((*streamed)->plan().streams);
  // A prompt's slice reads every expert once.
  EXPECT_EQ((*streamed)->session_options("").slice_tokens, 2048U);
  for (std::uint32_t seed = 1; seed < 3; ++seed) {
    EXPECT_EQ(logits(**streamed, seed), logits(**resident, seed));
  }
  EXPECT_GT((*streamed)->model().streamed_experts()->counts().misses, kWideWorkingSet);
}

// F01: the cache must stand at its size when the subject changes; all of what the plan says and
// nothing more, whatever is asked.
TEST_F(ExpertStreamingTest, F01TheMemoryTakenStaysBelowThePlanWhenTheWorkingSetChanges) {
  if (test_support::runs_with_sanitizer()) GTEST_SKIP() << "a sanitizer takes memory of its own";
  return_freed_memory();
  if (!reset_peak()) GTEST_SKIP() << "this system does not forget the peak of a process";
  const std::uint64_t before = resident_memory_bytes();
  const auto engine = open(options(kBudget));
  ASSERT_TRUE(engine) << engine.error().message;
  for (std::uint32_t seed = 1; seed < 6; ++seed) logits(**engine, seed);
  const std::uint64_t taken = peak_bytes() - before;
  const WeightPlan& plan = (*engine)->plan();
  EXPECT_LE(taken, plan.peak_bytes());
  // Sharper: without what the plan allows for pools and for longer prompts than these.
  const std::uint64_t work =
      std::max(kPromptTokens * plan.model.work_per_row, plan.model.load_scratch);
  EXPECT_LE(taken, plan.model.dense + plan.model.engram_resident + plan.read_buffers +
                       plan.expert_bytes + work + plan.program_bytes);
  // And a test that could not notice a second copy of the experts would be none.
  EXPECT_GT(plan.all_expert_bytes(), kBudget + plan.program_bytes);
}

// E19: a limit of the planned size and five percent: it loads within it, and does not hold source
// and copy at once.
TEST_F(ExpertStreamingTest, E19LoadingStaysWithinThePlan) {
  if (test_support::runs_with_sanitizer()) GTEST_SKIP() << "a sanitizer takes memory of its own";
  std::optional<WeightPlan> plan;
  EngineOptions wishes = options(0);
  wishes.on_plan = [&](const WeightPlan& made) { plan = made; };
  return_freed_memory();
  if (!reset_peak()) GTEST_SKIP() << "this system does not forget the peak of a process";
  const std::uint64_t before = resident_memory_bytes();
  const auto engine = open(wishes);
  ASSERT_TRUE(engine) << engine.error().message;
  const std::uint64_t taken = peak_bytes() - before;
  ASSERT_TRUE(plan.has_value());
  EXPECT_FALSE(plan->streams);
  EXPECT_LE(taken, plan->model.dense + plan->model.engram_resident + plan->expert_bytes +
                       plan->model.load_scratch + plan->program_bytes);
  EXPECT_GT(plan->all_expert_bytes(), plan->program_bytes) << "a second copy would pass";
  EXPECT_GE(taken, plan->all_expert_bytes()) << "the experts are not in memory";
}

TEST_F(ExpertStreamingTest, E19WhatDoesNotFitIsRefusedBeforeAnythingIsRead) {
  EngineOptions wishes = options(kBudget);
  bool has_read = false;
  wishes.progress = [&](std::uint64_t, std::uint64_t) { has_read = true; };
  std::uint64_t planned = 0;
  wishes.on_plan = [&](const WeightPlan& plan) { planned = plan.peak_bytes(); };
  ASSERT_TRUE(open(wishes));
  has_read = false;
  wishes.available_bytes = planned + planned / 20;
  EXPECT_TRUE(open(wishes));
  has_read = false;
  wishes.available_bytes = planned - 1;
  const auto refused = open(wishes);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kOverBudget);
  EXPECT_THAT(refused.error().message, HasSubstr("MB are available"));
  EXPECT_THAT(refused.error().message, HasSubstr("of memory are needed"));
  EXPECT_FALSE(has_read);
}

TEST_F(ExpertStreamingTest, WithoutRoomForAllExpertsTheyAreStreamedUnasked) {
  EngineOptions wishes = options(0);
  std::optional<WeightPlan> resident;
  wishes.on_plan = [&](const WeightPlan& plan) { resident = plan; };
  ASSERT_TRUE(open(wishes));
  wishes.on_plan = {};
  wishes.pool_budget_bytes = 8 * kMB;
  wishes.available_bytes = resident->peak_bytes() - resident->pool_bytes - 12 * kMB;
  const auto engine = open(wishes);
  ASSERT_TRUE(engine) << engine.error().message;
  EXPECT_TRUE((*engine)->plan().streams);
  EXPECT_LE((*engine)->plan().peak_bytes(), wishes.available_bytes);
}

TEST_F(ExpertStreamingTest, ASecondStartHoldsTheExpertsThatTheFirstOneUsed) {
  const test_support::TempFolder memory;
  std::filesystem::permissions(memory.path(), std::filesystem::perms::owner_all);
  EngineOptions wishes = options(kBudget);
  wishes.memory = {.directory = memory.path()};
  const auto misses = [&] {
    const auto engine = open(wishes);
    EXPECT_TRUE(engine);
    if (!engine) return std::uint64_t{0};
    logits(**engine, 5);
    return (*engine)->model().streamed_experts()->counts().misses;
  };
  const std::uint64_t cold = misses();
  std::filesystem::path file;
  for (const auto& entry : std::filesystem::directory_iterator(memory.path())) {
    if (entry.path().filename().string().starts_with("experts-")) file = entry.path();
  }
  ASSERT_FALSE(file.empty());
  EXPECT_EQ(std::filesystem::status(file).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  // What was said is remembered, too; another text would be read the same way.
  wishes.memory.tenant = "somebody else";
  EXPECT_LT(misses(), cold);

  std::filesystem::resize_file(file, 100);
  const auto engine = open(wishes);
  ASSERT_TRUE(engine);
  EXPECT_THAT((*engine)->notes(), ::testing::Contains(HasSubstr(file.string())));
}

}  // namespace
}  // namespace locket::engine
