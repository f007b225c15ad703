#include "model/streamed_experts.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "base/worker_pool.h"
#include "checkpoint/checkpoint.h"
#include "engine/session.h"
#include "model/generations/v41.h"
#include "tests/support/checkpoint_files.h"
#include "tests/support/tiny_models.h"
#include "tokenizer/engram_token_map.h"
#include "tokenizer/tokenizer.h"

namespace locket::model {
namespace {

using ::testing::HasSubstr;

std::vector<std::vector<StoredExpert>> find_experts(checkpoint::Checkpoint& checkpoint,
                                                    const V41Config& config) {
  std::vector<std::vector<StoredExpert>> layers;
  for (std::int64_t layer = 0; layer < config.layer_count; ++layer) {
    auto& experts = layers.emplace_back();
    for (std::int64_t id = 0; id < config.expert_count; ++id) {
      const std::string prefix = fmt::format("layers.{}.ffn.experts.{}.", layer, id);
      const auto find = [&](const char* name, std::int64_t rows, std::int64_t columns) {
        return *find_weight(checkpoint, prefix + name, rows, columns);
      };
      experts.push_back({.gate = find("w1", config.expert_size, config.hidden_size),
                         .up = find("w3", config.expert_size, config.hidden_size),
                         .down = find("w2", config.hidden_size, config.expert_size)});
    }
  }
  return layers;
}

bool is_same(const kernels::WeightMatrix& a, const kernels::WeightMatrix& b) {
  return std::ranges::equal(a.tiles.bytes(), b.tiles.bytes()) &&
         std::ranges::equal(a.scales.bytes(), b.scales.bytes());
}

// A checkpoint in a folder of its own, whose files tests may damage.
class StreamedExpertsTest : public ::testing::Test {
 protected:
  explicit StreamedExpertsTest(const std::string& name = "odd") {
    std::filesystem::copy(test_support::tiny_checkpoint(name), folder_.path(),
                          std::filesystem::copy_options::recursive);
    checkpoint_.push_back(*checkpoint::Checkpoint::open(folder_.path()));
    config_ = *read_v41_config(checkpoint().config().root());
    stored_ = find_experts(checkpoint(), config_);
  }

  checkpoint::Checkpoint& checkpoint() { return checkpoint_.front(); }
  std::size_t expert_bytes() const { return stored_.front().front().packed_bytes(); }
  std::size_t layer_count() const { return stored_.size(); }
  std::size_t expert_count() const { return stored_.front().size(); }

  // A source whose cache has room for so many experts.
  std::unique_ptr<StreamedExperts> source(std::size_t slots, std::size_t readers = 3) const {
    auto made = StreamedExperts::create(
        stored_, {.budget_bytes = slots * expert_bytes() + 1, .readers = readers});
    EXPECT_TRUE(made);
    EXPECT_EQ((*made)->capacity(), std::min(slots, layer_count() * expert_count()));
    return std::move(*made);
  }

  // What a lease gives must be what packing the whole tensors gives.
  void expect_right(ExpertSource::Lease& lease, std::size_t index, const ExpertKey& key) const {
    const auto weights = lease.wait(index);
    ASSERT_TRUE(weights) << weights.error().message;
    EXPECT_TRUE(lease.is_ready(index));
    const StoredExpert& stored =
        stored_[static_cast<std::size_t>(key.layer)][static_cast<std::size_t>(key.expert)];
    EXPECT_TRUE(is_same((*weights)->gate, packed(stored.gate)));
    EXPECT_TRUE(is_same((*weights)->up, packed(stored.up)));
    EXPECT_TRUE(is_same((*weights)->down, packed(stored.down)));
  }

  static kernels::WeightMatrix packed(const StoredWeight& stored) {
    const auto values = stored.weight.read();
    const auto scales = stored.scale->read();
    return *kernels::pack_weights({.format = stored.format,
                                   .rows = stored.rows,
                                   .columns = stored.columns,
                                   .values = values->bytes(),
                                   .scales = scales->bytes()});
  }

  // Bytes of the file that holds a tensor, from its byte `first` on.
  static void overwrite(const checkpoint::StoredTensor& tensor, std::uint64_t first,
                        const std::string& bytes) {
    std::fstream file(tensor.file->path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(tensor.entry->offset + first));
    file << bytes;
    ASSERT_TRUE(file.good());
  }

  test_support::TempFolder folder_;
  std::vector<checkpoint::Checkpoint> checkpoint_;
  V41Config config_;
  std::vector<std::vector<StoredExpert>> stored_;
};

std::vector<std::int32_t> some_ids(std::mt19937& random, std::size_t count, std::size_t limit) {
  std::vector<std::int32_t> ids(limit);
  std::iota(ids.begin(), ids.end(), 0);
  std::shuffle(ids.begin(), ids.end(), random);
  ids.resize(std::min(count, limit));
  std::ranges::sort(ids);
  return ids;
}

TEST_F(StreamedExpertsTest, EveryExpertComesWithTheBytesOfTheFileWhateverTheCacheHolds) {
  std::mt19937 random(5);
  for (const std::size_t slots : {std::size_t{2}, std::size_t{5}, std::size_t{100'000}}) {
    const auto experts = source(slots);
    for (int step = 0; step < 60; ++step) {
      const auto layer = static_cast<std::int64_t>(random() % layer_count());
      const auto ids = some_ids(random, 1 + random() % experts->experts_at_once(), expert_count());
      const auto lease = experts->fetch(layer, ids);
      for (std::size_t i = 0; i < ids.size(); ++i) expect_right(*lease, i, {layer, ids[i]});
    }
  }
}

TEST_F(StreamedExpertsTest, TwoLeasesHoldWhatTheyAskedForSideBySide) {
  std::mt19937 random(6);
  const auto experts = source(6);
  ASSERT_EQ(experts->experts_at_once(), std::min<std::size_t>(3, expert_count()));
  std::unique_ptr<ExpertSource::Lease> before;
  std::vector<std::int32_t> ids_before;
  std::int64_t layer_before = 0;
  for (int step = 0; step < 60; ++step) {
    const auto layer = static_cast<std::int64_t>(random() % layer_count());
    const auto ids = some_ids(random, 3, expert_count());
    auto lease = experts->fetch(layer, ids);
    for (std::size_t i = 0; i < ids_before.size(); ++i) {
      expect_right(*before, i, {layer_before, ids_before[i]});
    }
    before = std::move(lease);
    ids_before = ids;
    layer_before = layer;
  }
}

TEST_F(StreamedExpertsTest, WhatIsInTheCacheIsNotReadAgain) {
  const auto experts = source(layer_count() * expert_count());
  std::vector<std::int32_t> all(std::min(expert_count(), experts->experts_at_once()));
  std::iota(all.begin(), all.end(), 0);
  for (int round = 0; round < 3; ++round) {
    for (std::size_t layer = 0; layer < layer_count(); ++layer) {
      const auto lease = experts->fetch(static_cast<std::int64_t>(layer), all);
      for (std::size_t i = 0; i < all.size(); ++i) EXPECT_TRUE(lease->wait(i));
    }
  }
  const ExpertStreamCounts counts = experts->counts();
  EXPECT_EQ(counts.misses, layer_count() * all.size());
  EXPECT_EQ(counts.hits, 2 * layer_count() * all.size());
}

TEST_F(StreamedExpertsTest, AnExpertThatIsUsedAgainAndAgainSurvivesASweepOverAllOthers) {
  const auto experts = source(4);
  const auto use = [&](std::int64_t layer, std::int32_t id) {
    const auto lease = experts->fetch(layer, {&id, 1});
    EXPECT_TRUE(lease->wait(0));
  };
  for (int i = 0; i < 10; ++i) use(0, 1);
  for (std::size_t layer = 0; layer < layer_count(); ++layer) {
    for (std::size_t id = 0; id < expert_count(); ++id) {
      use(static_cast<std::int64_t>(layer), static_cast<std::int32_t>(id));
    }
  }
  const std::uint64_t before = experts->counts().misses;
  use(0, 1);
  EXPECT_EQ(experts->counts().misses, before);
}

TEST_F(StreamedExpertsTest, AWarmStartReadsWhatWasUsedMost) {
  ExpertUses uses(layer_count(), expert_count());
  const std::vector<std::int32_t> often = {0, 1};
  for (int i = 0; i < 5; ++i) uses.note(1, often);
  const std::vector<std::int32_t> once = {2};
  uses.note(0, once);
  const auto experts = source(2);
  std::size_t last = 0;
  experts->warm_up(uses, [&](std::size_t done, std::size_t total) {
    EXPECT_EQ(total, 2U);
    last = done;
  });
  EXPECT_EQ(last, 2U);
  EXPECT_EQ(experts->counts().misses, 0U);
  for (const std::int32_t id : often) {
    const auto lease = experts->fetch(1, {&id, 1});
    expect_right(*lease, 0, {1, id});
  }
  EXPECT_EQ(experts->counts().misses, 0U);
  EXPECT_EQ(experts->counts().hits, 2U);
  EXPECT_EQ(experts->uses().most_used(1).front().layer, 1);
}

TEST_F(StreamedExpertsTest, WhatWasExpectedIsThereOrOnItsWay) {
  const auto experts = source(8);
  const std::vector<std::int32_t> ids = {0, 2};
  experts->expect(1, ids);
  const auto lease = experts->fetch(1, ids);
  for (std::size_t i = 0; i < ids.size(); ++i) expect_right(*lease, i, {1, ids[i]});
  EXPECT_EQ(experts->counts().misses, 0U);
  EXPECT_EQ(experts->counts().hits, 2U);
  EXPECT_EQ(experts->counts().foreseen, 2U);
}

// Right, wrong and half right, for this layer or another, with every size of the cache and two
// leases at a time.
TEST_F(StreamedExpertsTest, NoGuessChangesWhatIsGiven) {
  std::mt19937 random(11);
  for (const std::size_t slots :
       {std::size_t{2}, std::size_t{3}, std::size_t{7}, std::size_t{40}}) {
    const auto experts = source(slots, 2);
    const auto fetch = [&](std::int64_t layer, const std::vector<std::int32_t>& ids) {
      auto lease = experts->fetch(layer, ids);
      for (std::size_t i = 0; i < ids.size(); ++i) expect_right(*lease, i, {layer, ids[i]});
      return lease;
    };
    std::unique_ptr<ExpertSource::Lease> before;
    for (int step = 0; step < 80; ++step) {
      const auto layer = static_cast<std::int64_t>(random() % layer_count());
      auto guess = some_ids(random, 1 + random() % expert_count(), expert_count());
      std::shuffle(guess.begin(), guess.end(), random);
      experts->expect(random() % 4 == 0 ? 0 : layer, guess);
      const std::size_t most = std::max<std::size_t>(1, experts->experts_at_once());
      before = fetch(layer, some_ids(random, 1 + random() % most, expert_count()));
    }
    const ExpertStreamCounts counts = experts->counts();
    EXPECT_LE(counts.foreseen, counts.hits);
    EXPECT_GT(counts.foreseen + counts.in_vain, 0U) << slots << " slots";
  }
}

TEST_F(StreamedExpertsTest, AGuessGivesItsRoomToWhatIsNeeded) {
  const auto experts = source(4, 1);
  ASSERT_EQ(experts->experts_at_once(), 2U);
  const std::vector<std::int32_t> first = {0, 1};
  const std::vector<std::int32_t> second = {2, 3};
  const auto held = experts->fetch(0, first);
  for (int round = 0; round < 20; ++round) {
    experts->expect(1, first);
    const auto lease = experts->fetch(0, second);
    for (std::size_t i = 0; i < 2; ++i) expect_right(*lease, i, {0, second[i]});
    for (std::size_t i = 0; i < 2; ++i) expect_right(*held, i, {0, first[i]});
  }
}

TEST_F(StreamedExpertsTest, ADamagedExpertThatWasExpectedIsReadAnewWhenItIsNeededAgain) {
  const checkpoint::StoredTensor& scale = *stored_[1][2].up.scale;
  const std::string good(1, static_cast<char>(scale.read()->bytes()[3]));
  overwrite(scale, 3, "\xFF");
  const auto experts = source(10);
  const std::int32_t id = 2;
  experts->expect(1, {&id, 1});
  EXPECT_FALSE(experts->fetch(1, {&id, 1})->wait(0));
  overwrite(scale, 3, good);
  const auto lease = experts->fetch(1, {&id, 1});
  expect_right(*lease, 0, {1, id});
}

TEST_F(StreamedExpertsTest, ASourceMayGoWhileItReadsAhead) {
  for (int round = 0; round < 20; ++round) {
    const auto experts = source(12, 1 + static_cast<std::size_t>(round % 3));
    const std::vector<std::int32_t> ids = {0, 1, 2};
    experts->expect(round % 2, ids);
  }
}

TEST_F(StreamedExpertsTest, ADamagedExpertIsNamedAndTheOthersAreGiven) {
  const StoredExpert& damaged = stored_[1][2];
  const std::string good(1, static_cast<char>(damaged.up.scale->read()->bytes()[3]));
  overwrite(*damaged.up.scale, 3, "\xFF");
  const auto experts = source(10);
  const std::vector<std::int32_t> ids = {0, 2, 3};
  {
    const auto lease = experts->fetch(1, ids);
    const auto bad = lease->wait(1);
    ASSERT_FALSE(bad);
    EXPECT_EQ(bad.error().code, ErrorCode::kBadCheckpoint);
    EXPECT_THAT(bad.error().message, HasSubstr("layers.1.ffn.experts.2.w3.scale"));
    EXPECT_THAT(bad.error().message, HasSubstr(damaged.up.scale->file->path().string()));
    EXPECT_THAT(bad.error().message, HasSubstr("scale 3 is NaN"));
    expect_right(*lease, 0, {1, 0});
    expect_right(*lease, 2, {1, 3});
  }
  overwrite(*damaged.up.scale, 3, good);
  const auto lease = experts->fetch(1, ids);
  for (std::size_t i = 0; i < ids.size(); ++i) expect_right(*lease, i, {1, ids[i]});
}

TEST_F(StreamedExpertsTest, AFileThatHasBecomeShorterIsNamed) {
  const auto experts = source(10);
  const StoredExpert& last = stored_.back().back();
  const std::filesystem::path path = last.down.weight.file->path();
  std::filesystem::resize_file(path, last.down.weight.entry->offset + 1);
  const auto id = static_cast<std::int32_t>(expert_count() - 1);
  const auto lease = experts->fetch(static_cast<std::int64_t>(layer_count() - 1), {&id, 1});
  const auto bad = lease->wait(0);
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().code, ErrorCode::kIo);
  EXPECT_THAT(bad.error().message, HasSubstr(path.string()));
  EXPECT_THAT(bad.error().message, HasSubstr("ends at byte"));
}

TEST_F(StreamedExpertsTest, ABudgetBelowTwoExpertsIsRefused) {
  const auto refused = StreamedExperts::create(stored_, {.budget_bytes = 2 * expert_bytes() - 1});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kOverBudget);
}

// Whole runs.

struct StreamedModel {
  std::vector<checkpoint::Checkpoint> checkpoint;
  std::optional<V41Model> model;
};

std::unique_ptr<StreamedModel> load_streamed(const std::filesystem::path& folder, NumericsMode mode,
                                             std::size_t slots) {
  auto streamed = std::make_unique<StreamedModel>();
  streamed->checkpoint.push_back(*checkpoint::Checkpoint::open(folder));
  const auto config = *read_v41_config(streamed->checkpoint.front().config().root());
  const auto words = *tokenizer::Tokenizer::load(folder / "tokenizer.json");
  const std::size_t bytes =
      find_experts(streamed->checkpoint.front(), config).front().front().packed_bytes();
  auto model =
      V41Model::load(streamed->checkpoint.front(), *tokenizer::make_engram_token_map(words),
                     {.mode = mode}, {}, {.budget_bytes = slots * bytes, .readers = 2});
  EXPECT_TRUE(model);
  EXPECT_NE(model->streamed_experts(), nullptr);
  EXPECT_EQ(model->streamed_experts()->capacity(), slots);
  streamed->model.emplace(std::move(*model));
  return streamed;
}

class StreamedModelTest : public ::testing::TestWithParam<std::string> {};

TEST_P(StreamedModelTest, GivesTheBitsOfTheResidentModelWithAnyBudgetThreadsAndSlices) {
  for (const NumericsMode mode : {NumericsMode::kReference, NumericsMode::kFast}) {
    const V41Model& resident = test_support::tiny_model(GetParam(), mode);
    const auto ids = test_support::random_ids(8, 150, resident.config().vocabulary_size);
    const test_support::RunBits expected = test_support::run_sequence(resident, ids, {});
    const std::size_t all =
        static_cast<std::size_t>(resident.config().layer_count * resident.config().expert_count);
    for (const std::size_t slots : {std::size_t{2}, all / 2}) {
      const auto streamed = load_streamed(test_support::tiny_checkpoint(GetParam()), mode, slots);
      for (const std::size_t threads : {1, 2}) {
        const test_support::RunBits bits = test_support::run_sequence(
            *streamed->model, ids,
            {.slice_tokens = 37 * threads, .prompt_tokens = 140, .threads = threads});
        EXPECT_TRUE(test_support::same_logits(bits, expected));
        EXPECT_TRUE(test_support::same_rows(bits, expected));
        EXPECT_TRUE(test_support::same_rings(bits, expected));
      }
      EXPECT_GT(streamed->model->streamed_experts()->counts().misses, 0U);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(TinyCheckpoints, StreamedModelTest,
                         ::testing::ValuesIn(test_support::tiny_names()));

class DamagedModelTest : public StreamedExpertsTest {};

// The step fails, and says of what; the sequence goes on once the file is whole again.
TEST_F(DamagedModelTest, AnUnreadableExpertFailsTheStepAndNothingElse) {
  const auto streamed = load_streamed(folder_.path(), NumericsMode::kReference, 4);
  cache::PagePool pool(streamed->model->memory().layout.page_bytes(), std::uint64_t{1} << 28);
  WorkerPool workers(1);
  const auto ids = test_support::random_ids(9, 40, config_.vocabulary_size);
  std::vector<std::string> good;
  for (const StoredExpert& expert : stored_[2]) {
    good.emplace_back(1, static_cast<char>(expert.gate.scale->read()->bytes()[0]));
    overwrite(*expert.gate.scale, 0, "\xFF");
  }
  engine::Session failing(*streamed->model, pool, workers, {});
  const Status failed = failing.prefill(ids);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, ErrorCode::kBadCheckpoint);
  EXPECT_THAT(failed.error().message, HasSubstr("layers.2.ffn.experts."));
  for (std::size_t i = 0; i < good.size(); ++i) overwrite(*stored_[2][i].gate.scale, 0, good[i]);
  engine::Session session(*streamed->model, pool, workers, {});
  ASSERT_TRUE(session.prefill(ids));
  engine::Session resident(test_support::tiny_model("odd", NumericsMode::kReference), pool, workers,
                           {});
  ASSERT_TRUE(resident.prefill(ids));
  EXPECT_TRUE(std::ranges::equal(session.logits(), resident.logits()));
}

}  // namespace
}  // namespace locket::model
