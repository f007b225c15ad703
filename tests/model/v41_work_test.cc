// Parameters and multiply-adds computed from a configuration: against the tensors of real
// checkpoints, against the counters of real runs, and against the released model's known sizes.
#include "model/generations/v41_work.h"

#include <cstdio>
#include <filesystem>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "engine/session.h"
#include "model/generations/v41_parameters.h"
#include "tests/support/tiny_models.h"

namespace locket::model {
namespace {

namespace fs = std::filesystem;

V41Config read_config(const fs::path& path) {
  Result<checkpoint::ConfigFile> file = checkpoint::ConfigFile::open(path);
  EXPECT_TRUE(file) << file.error().message;
  Result<V41Config> config = read_v41_config(file->root());
  EXPECT_TRUE(config) << config.error().message;
  return *config;
}

V41Config released_config() {
  return read_config(fs::path(LOCKET_TEST_DATA) / "configs" / "v41_flash_config.json");
}

struct ParameterSums {
  std::uint64_t stored = 0;
  std::uint64_t tables = 0;  // Engram tables, part of stored
  std::uint64_t prompt = 0;
  std::uint64_t generated = 0;
};

ParameterSums sum_parameters(const V41Config& config) {
  ParameterSums sums;
  for (const ParameterGroup& group : v41_parameters(config)) {
    sums.stored += group.stored;
    if (group.part == ModelPart::kEngramTables) sums.tables += group.stored;
    sums.prompt += group.prompt;
    sums.generated += group.generated;
  }
  return sums;
}

// Values of a checkpoint's tensors, without scales and without the parts that are not run.
std::uint64_t stored_values(const checkpoint::Checkpoint& checkpoint) {
  std::uint64_t sum = 0;
  for (const checkpoint::StoredTensor& tensor : checkpoint.tensors()) {
    const std::string& name = tensor.name();
    const auto starts = [&](const char* prefix) { return name.rfind(prefix, 0) == 0; };
    if (starts("mtp.") || starts("vision.") || starts("aligner.") || starts("image_")) continue;
    if (name.ends_with(".scale") && name.find("hc_") == std::string::npos) continue;
    std::uint64_t values = 1;
    for (const std::int64_t size : tensor.shape) values *= static_cast<std::uint64_t>(size);
    // Two FP4 codes lie in a byte.
    sum += tensor.dtype == numerics::Dtype::kI8 ? 2 * values : values;
  }
  return sum;
}

TEST(V41ParametersTest, CountTheTensorsOfEveryTestCheckpoint) {
  for (const std::string& name : test_support::tiny_names()) {
    const fs::path folder = test_support::tiny_checkpoint(name);
    auto checkpoint = checkpoint::Checkpoint::open(folder);
    ASSERT_TRUE(checkpoint) << checkpoint.error().message;
    EXPECT_EQ(sum_parameters(read_config(folder / "config.json")).stored,
              stored_values(*checkpoint))
        << name;
  }
}

TEST(V41ParametersTest, GiveTheReleasedSizes) {
  const ParameterSums sums = sum_parameters(released_config());
  EXPECT_EQ(sums.stored - sums.tables, 551'880'835'184U);
  EXPECT_EQ(sums.tables, 196'613'849'600U);
  std::printf("parameters of a prompt token %llu, of a generated token %llu\n",
              static_cast<unsigned long long>(sums.prompt),
              static_cast<unsigned long long>(sums.generated));
  // "8B" and "16B" of the tech report.
  EXPECT_EQ((sums.prompt + 500'000'000) / 1'000'000'000, 8U) << sums.prompt;
  EXPECT_EQ((sums.generated + 500'000'000) / 1'000'000'000, 16U) << sums.generated;
}

TEST(V41ParametersTest, EveryPartHasAName) {
  for (int part = 0; part < static_cast<int>(ModelPart::kCount); ++part) {
    EXPECT_FALSE(model_part_name(static_cast<ModelPart>(part)).empty());
  }
}

TEST(V41WorkTest, CostsAPromptTokenAboutHalfOfAGeneratedOne) {
  const V41Config config = released_config();
  constexpr std::int64_t kContext = 32768;
  const auto total = [](const std::vector<WorkOperation>& work) {
    return static_cast<double>(sum_work(work).total());
  };
  const double generated = total(generated_token_work(config, kContext - 1, kContext - 128));
  const double last_token = total(encoder_work(config, {.first = kContext - 1, .count = 1}));
  const double with_replay = total(prompt_work(config, kContext, config.sliding_window)) / kContext;
  std::printf(
      "multiply-adds at 32,768 tokens: generated token %.0f; prompt token %.0f, ratio %.4f; "
      "with bounded replay %.0f, ratio %.4f\n",
      generated, last_token, last_token / generated, with_replay, with_replay / generated);
  EXPECT_LE(last_token / generated, 0.52);
  EXPECT_LE(with_replay / generated, 0.52);
  EXPECT_GE(with_replay / generated, 0.45);  // half of the layers cannot cost much less
}

// Every matrix of a generated token is multiplied once: work is parameters without norms, tables
// and biases.
TEST(V41WorkTest, MultipliesEveryWeightOfATokenOnce) {
  const V41Config config = released_config();
  const std::vector<WorkOperation> work = generated_token_work(config, 1, 0);
  std::uint64_t weights = 0;
  for (const ParameterGroup& group : v41_parameters(config)) weights += group.generated;
  std::uint64_t vectors = 0;  // embedding row, Engram rows, norms, sinks, biases, gates
  const auto hidden = static_cast<std::uint64_t>(config.hidden_size);
  vectors += hidden + 2 * 24 * 256 + (2 * 40 + 1) * hidden;
  vectors += 40 * (1280 + 512 + 64) + 40 * 384 + 2 * 2 * 4 * hidden + 80 * (24 + 3);
  vectors += 4 * (512 + 128);
  EXPECT_EQ(sum_work(work).matmul, weights - vectors);
}

struct CountedRun {
  std::int64_t prompt = 0;
  std::int64_t generated = 0;
  engine::ReplayMode replay = engine::ReplayMode::kBounded;
  std::size_t slice = 512;
};

WorkCount computed_work(const V41Config& config, const CountedRun& run) {
  const std::int64_t replayed = engine::replay_length(
      run.replay, run.prompt,
      {.window = config.sliding_window, .decoder_layers = config.layer_count - config.boundary});
  std::vector<WorkOperation> all = prompt_work(config, run.prompt, replayed);
  for (std::int64_t i = 0; i < run.generated; ++i) {
    const auto token = generated_token_work(config, run.prompt + i, run.prompt - replayed);
    all.insert(all.end(), token.begin(), token.end());
  }
  return sum_work(all);
}

WorkCount executed_work(const V41Model& model, const CountedRun& run) {
  cache::PagePool pool(model.memory().layout.page_bytes(), std::uint64_t{1} << 28);
  WorkerPool workers(1);
  engine::Session session(model, pool, workers, {.replay = run.replay, .slice_tokens = run.slice});
  const auto ids = test_support::random_ids(1, static_cast<std::size_t>(run.prompt),
                                            model.config().vocabulary_size);
  EXPECT_TRUE(session.prefill(ids));
  for (std::int64_t i = 0; i < run.generated; ++i) EXPECT_TRUE(session.append(3));
  return session.work();
}

class CountedRunTest : public testing::TestWithParam<std::string> {
 protected:
  void expect_equal_counts(const CountedRun& run) {
    const V41Model& model = test_support::tiny_model(GetParam(), NumericsMode::kReference);
    const WorkCount executed = executed_work(model, run);
    const WorkCount computed = computed_work(model.config(), run);
    EXPECT_GT(executed.matmul, 0U);
    EXPECT_EQ(executed.matmul, computed.matmul) << run.prompt;
    EXPECT_EQ(executed.attention, computed.attention) << run.prompt;
    EXPECT_EQ(executed.index_scores, computed.index_scores) << run.prompt;
  }
};

// Lengths around the window, the top-k, the pool and the page, with odd and even ends.
TEST_P(CountedRunTest, EqualsTheCountersOfShortRuns) {
  for (std::int64_t prompt = 1; prompt <= 40; ++prompt) {
    expect_equal_counts({.prompt = prompt, .generated = prompt % 4});
  }
}

TEST_P(CountedRunTest, EqualsTheCountersOfEveryReplayAndSlice) {
  for (const std::int64_t prompt : {127, 128, 129, 200}) {
    for (const auto replay :
         {engine::ReplayMode::kBounded, engine::ReplayMode::kExact, engine::ReplayMode::kFull}) {
      expect_equal_counts({.prompt = prompt, .generated = 3, .replay = replay, .slice = 50});
      expect_equal_counts({.prompt = prompt, .generated = 1, .replay = replay, .slice = 7});
    }
  }
}

TEST_P(CountedRunTest, EqualsTheCountersOfALongRun) {
  // thin chooses 512 rows: one row per token past 512, one per two tokens past 1024.
  for (const std::int64_t prompt : {511, 1021}) {
    expect_equal_counts({.prompt = prompt, .generated = 8});
  }
  const CountedRun full = {.prompt = 1030, .generated = 2, .replay = engine::ReplayMode::kFull};
  expect_equal_counts(full);
  const V41Model& model = test_support::tiny_model(GetParam(), NumericsMode::kReference);
  EXPECT_GT(computed_work(model.config(), full).index_scores, 0U);
}

INSTANTIATE_TEST_SUITE_P(Checkpoints, CountedRunTest, testing::ValuesIn(test_support::tiny_names()),
                         [](const auto& tested) { return tested.param; });

}  // namespace
}  // namespace locket::model
