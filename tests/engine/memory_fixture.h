// A tiny checkpoint with a memory around it, in RAM and if wanted on disk, and cold runs to compare
// with.
#pragma once

#include <filesystem>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cache/prefix_memory.h"
#include "engine/session.h"
#include "tests/support/tiny_models.h"

namespace locket::engine {

class MemoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::path(::testing::TempDir()) /
              (std::string("locket_") + info->test_suite_name() + "_" + info->name());
    std::filesystem::remove_all(folder_);
    open();
  }
  void TearDown() override {
    close();
    std::filesystem::remove_all(folder_);
  }

  static const model::V41Model& model() {
    return test_support::tiny_model("micro", model::NumericsMode::kReference);
  }
  static std::vector<TokenId> ids(std::uint32_t seed, std::size_t count) {
    return test_support::random_ids(seed, count, model().config().vocabulary_size);
  }
  static std::vector<TokenId> joined(std::vector<TokenId> tokens,
                                     const std::vector<TokenId>& more) {
    tokens.insert(tokens.end(), more.begin(), more.end());
    return tokens;
  }

  void open() {
    const cache::KvLayout& layout = model().memory().layout;
    pool_ = std::make_unique<cache::PagePool>(layout.page_bytes(), budget_bytes_);
    auto disk = cache::DiskStore::open({.directory = folder_});
    ASSERT_TRUE(disk) << disk.error().message;
    disk_ = std::move(*disk);
    cache::PrefixMemoryOptions options;
    options.identity.numerics_mode = model().numerics().memory_name();
    options.identity.numerics_revision = model::kNumericsRevision;
    options.restart_tokens = model().config().boundary * (model().config().sliding_window - 1);
    options.disk = disk_.get();
    memory_ = std::make_unique<cache::PrefixMemory>(layout, *pool_, options);
  }
  void close() {
    memory_.reset();
    disk_.reset();
  }
  // As if the process had ended and another one had begun.
  void restart() {
    close();
    open();
  }

  Session session(SessionOptions options = {}) {
    options.memory = memory_.get();
    return {model(), *pool_, workers_, options};
  }
  static std::vector<float> logits_of(const Session& session) {
    return {session.logits().begin(), session.logits().end()};
  }
  // Logits after `prompt` and then `more`, computed without any memory.
  std::vector<float> cold_logits(const std::vector<TokenId>& prompt,
                                 const std::vector<TokenId>& more = {},
                                 ReplayMode replay = ReplayMode::kBounded) {
    cache::PagePool pool(model().memory().layout.page_bytes(), std::uint64_t{1} << 30);
    Session cold(model(), pool, workers_, {.replay = replay});
    EXPECT_TRUE(cold.prefill(prompt));
    for (const TokenId token : more) EXPECT_TRUE(cold.append(token));
    return logits_of(cold);
  }
  // Reads a prompt and remembers it; the hit tokens. The logits must be those of a cold run.
  MemoryUse read(const std::vector<TokenId>& prompt) {
    Session warm = session();
    const Status status = warm.prefill(prompt);
    EXPECT_TRUE(status) << status.error().message;
    EXPECT_EQ(logits_of(warm), cold_logits(prompt));
    warm.end_turn();
    return warm.memory_use();
  }

  std::uint64_t budget_bytes_ = std::uint64_t{1} << 28;
  std::filesystem::path folder_;
  WorkerPool workers_{1};
  std::unique_ptr<cache::PagePool> pool_;
  std::unique_ptr<cache::DiskStore> disk_;
  std::unique_ptr<cache::PrefixMemory> memory_;
};

}  // namespace locket::engine
