// Slices: the real one is planned and counted, a narrow one is written, loaded and run.
#include "cli/slice_writer.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <map>
#include <set>

#include "base/file.h"
#include "cli/bench_step.h"
#include "model/generations/v41_layout.h"
#include "numerics/dtype.h"
#include "service/loaded_model.h"
#include "tests/cli/program_cases.h"

namespace locket::cli {
namespace {

namespace fs = std::filesystem;

// Every kind of layer, and little of it.
constexpr SliceShape kNarrow = {.vocabulary = 1'600,
                                .hidden = 64,
                                .heads = 4,
                                .head_dim = 64,
                                .rope_dim = 16,
                                .q_rank = 32,
                                .o_rank = 32,
                                .o_groups = 2,
                                .experts = 4,
                                .experts_per_token = 2,
                                .expert_size = 32,
                                .index_heads = 2,
                                .index_dim = 32,
                                .index_topk = 16,
                                .pool_blocks = 8};

model::V41Config config_of(const SliceShape& shape) {
  const auto file = checkpoint::ConfigFile::parse(slice_config_text(shape), "config.json").value();
  return model::read_v41_config(file.root()).value();
}

SliceWish narrow_wish(std::uint64_t seed = 1) {
  return {.shape = kNarrow, .seed = seed, .tokenizer_folder = mini_folder(), .progress = {}};
}

std::map<std::string, std::string> contents(const fs::path& folder) {
  std::map<std::string, std::string> found;
  for (const auto& entry : fs::directory_iterator(folder)) {
    found[entry.path().filename().string()] = read_whole_file(entry.path()).value();
  }
  return found;
}

TEST(SliceWriterTest, TheSliceHasTheWidthsOfTheRelease) {
  const fs::path release = fs::path(LOCKET_TEST_DATA) / "configs" / "v41_flash_config.json";
  const auto file = checkpoint::ConfigFile::open(release).value();
  const model::V41Config real = model::read_v41_config(file.root()).value();
  const model::V41Config slice = config_of({});
  EXPECT_EQ(slice.hidden_size, real.hidden_size);
  EXPECT_EQ(slice.head_count, real.head_count);
  EXPECT_EQ(slice.head_dim, real.head_dim);
  EXPECT_EQ(slice.rope_dim, real.rope_dim);
  EXPECT_EQ(slice.q_lora_rank, real.q_lora_rank);
  EXPECT_EQ(slice.o_lora_rank, real.o_lora_rank);
  EXPECT_EQ(slice.o_groups, real.o_groups);
  EXPECT_EQ(slice.sliding_window, real.sliding_window);
  EXPECT_EQ(slice.max_positions, real.max_positions);
  EXPECT_EQ(slice.expert_size, real.expert_size);
  EXPECT_EQ(slice.experts_per_token, real.experts_per_token);
  EXPECT_EQ(slice.index_head_count, real.index_head_count);
  EXPECT_EQ(slice.index_head_dim, real.index_head_dim);
  EXPECT_EQ(slice.index_topk, real.index_topk);
  EXPECT_EQ(slice.pool_blocks, real.pool_blocks);
  EXPECT_EQ(slice.pool_block_size, real.pool_block_size);
  EXPECT_EQ(slice.stream_count, real.stream_count);
  // The head weighs as much beside the layers as in the release.
  EXPECT_EQ(slice.layer_count * real.vocabulary_size, real.layer_count * slice.vocabulary_size);
}

TEST(SliceWriterTest, TheSliceHasEveryKindOfLayer) {
  const model::V41Config config = config_of({});
  const auto has = [&](auto property) { return std::ranges::any_of(config.layers, property); };
  EXPECT_EQ(config.boundary, 4);
  EXPECT_TRUE(has([](const model::LayerRole& role) { return role.ratio == 0; }));
  EXPECT_TRUE(
      has([](const model::LayerRole& role) { return role.writes_rows && role.ratio == 2; }));
  EXPECT_TRUE(
      has([](const model::LayerRole& role) { return role.ratio > 0 && !role.selects_rows; }));
  EXPECT_TRUE(has([](const model::LayerRole& role) { return role.builds_pool; }));
  EXPECT_TRUE(has([](const model::LayerRole& role) { return role.uses_pool; }));
}

TEST(SliceWriterTest, TheSliceTakesFourToFiveGigabytes) {
  std::uint64_t bytes = 0;
  std::set<std::string> names;
  for (const SliceFile& file : slice_files(config_of({}))) {
    bytes += file.data_bytes();
    for (const SliceTensor& tensor : file.tensors) {
      EXPECT_TRUE(names.insert(tensor.plan.name).second) << tensor.plan.name;
    }
  }
  EXPECT_GT(bytes, 4'000'000'000U);
  EXPECT_LT(bytes, 5'000'000'000U);
}

TEST(SliceWriterTest, ASliceIsAModelThatRuns) {
  const test_support::TempFolder folder;
  const auto written = write_slice(folder / "slice", narrow_wish());
  ASSERT_TRUE(written) << written.error().message;
  const auto loaded = service::LoadedModel::open(folder / "slice", {.threads = 2});
  ASSERT_TRUE(loaded) << loaded.error().message;
  engine::Session session = loaded->engine().make_session();
  const std::vector<engine::TokenId> prompt = {0, 5, 1'599, 700, 3};
  ASSERT_TRUE(session.prefill(prompt));
  const auto logits = session.logits();
  EXPECT_EQ(logits.size(), 1'600U);
  EXPECT_TRUE(std::ranges::all_of(logits, [](float value) { return std::isfinite(value); }));
  EXPECT_NE(*std::ranges::max_element(logits), *std::ranges::min_element(logits));
}

TEST(SliceWriterTest, TheProgramTakesASliceForAModel) {
  const test_support::TempFolder folder;
  ASSERT_TRUE(write_slice(folder / "slice", narrow_wish()));
  const std::string path = (folder / "slice").string();
  EXPECT_EQ(test_support::run_program({"inspect", path}).exit_code, 0);
  const auto run = test_support::run_program({"run", path, "-p", "Hi", "--max-tokens", "2"});
  EXPECT_EQ(run.exit_code, 0) << run.errors;
}

TEST(SliceWriterTest, TheSameSeedGivesTheSameFilesAndAnotherOneOthers) {
  const test_support::TempFolder folder;
  ASSERT_TRUE(write_slice(folder / "a", narrow_wish(1)));
  ASSERT_TRUE(write_slice(folder / "b", narrow_wish(1)));
  ASSERT_TRUE(write_slice(folder / "c", narrow_wish(2)));
  EXPECT_EQ(contents(folder / "a"), contents(folder / "b"));
  EXPECT_NE(contents(folder / "a"), contents(folder / "c"));
}

TEST(SliceWriterTest, RefusesAFolderThatHoldsSomethingAndLeavesItAlone) {
  const test_support::TempFolder folder;
  folder.write("note.txt", "mine");
  const auto written = write_slice(folder.path(), narrow_wish());
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, ErrorCode::kBadRequest);
  EXPECT_NE(written.error().message.find("is not empty"), std::string::npos);
  EXPECT_EQ(contents(folder.path()).size(), 1U);
}

TEST(SliceWriterTest, RefusesADiskWithoutRoomBeforeWritingAnything) {
  const test_support::TempFolder folder;
  SliceWish wish = narrow_wish();
  wish.shape.vocabulary = std::int64_t{1} << 30;
  wish.shape.hidden = std::int64_t{1} << 20;
  const auto written = write_slice(folder / "slice", wish);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, ErrorCode::kOverBudget);
  EXPECT_NE(written.error().message.find("the slice needs"), std::string::npos);
  EXPECT_TRUE(fs::is_empty(folder / "slice"));
}

TEST(SliceWriterTest, NamesATokenizerThatIsMissing) {
  const test_support::TempFolder folder;
  SliceWish wish = narrow_wish();
  wish.tokenizer_folder = folder / "nowhere";
  const auto written = write_slice(folder / "slice", wish);
  ASSERT_FALSE(written);
  EXPECT_NE(written.error().message.find("nowhere/tokenizer.json"), std::string::npos);
}

TEST(SliceNoiseTest, APieceAtATimeGivesTheBytesOfTheWhole) {
  for (std::size_t i = 0; i < static_cast<std::size_t>(SliceContent::kCount); ++i) {
    const SliceTensor tensor = {
        .plan = {.name = "t", .dtype = numerics::Dtype::kU8, .shape = {100}},
        .content = static_cast<SliceContent>(i)};
    std::vector<std::byte> whole(100);
    SliceNoise(7, tensor).fill(whole);
    std::vector<std::byte> pieces(100);
    SliceNoise noise(7, tensor);
    noise.fill(std::span(pieces).first(64));
    noise.fill(std::span(pieces).subspan(64));
    EXPECT_EQ(whole, pieces) << i;
  }
}

TEST(DecodeStepsTest, ATokenReadsItsExpertsAndEverythingElseButTheEmbedding) {
  const test_support::TempFolder folder;
  ASSERT_TRUE(write_slice(folder / "slice", narrow_wish()));
  const auto checkpoint = checkpoint::Checkpoint::open(folder / "slice").value();
  std::uint64_t expected = 0;
  std::uint64_t experts = 0;
  for (const checkpoint::StoredTensor& tensor : checkpoint.tensors()) {
    if (tensor.name() == "embed.weight") continue;
    const bool is_expert = tensor.name().find(".experts.") != std::string::npos;
    (is_expert ? experts : expected) += tensor.byte_count();
  }
  EXPECT_EQ(decode_weight_bytes(checkpoint, config_of(kNarrow)), expected + experts / 2);
}

TEST(DecodeStepsTest, StepsRunOverAContextOfRandomRows) {
  const test_support::TempFolder folder;
  ASSERT_TRUE(write_slice(folder / "slice", narrow_wish()));
  const auto loaded = service::LoadedModel::open(folder / "slice", {.threads = 2});
  ASSERT_TRUE(loaded) << loaded.error().message;
  const auto steps = DecodeSteps::make(loaded->engine(), {.context = 1'024, .sequences = 3});
  ASSERT_TRUE(steps) << steps.error().message;
  for (int i = 0; i < 3; ++i) (*steps)->run();
  EXPECT_TRUE((*steps)->status()) << (*steps)->status().error().message;
}

TEST(DecodeStepsTest, RandomRowsHoldNoNanAndAreNotAllAlike) {
  const model::V41Config config = config_of(kNarrow);
  const model::MemoryDescription memory =
      model::outline_v41(config, model::make_v41_memory(config, model::NumericsMode::kReference))
          .memory;
  cache::PagePool pool(memory.layout.page_bytes(), 8 * memory.layout.page_bytes());
  cache::SequenceMemory sequence(memory.layout, pool);
  ASSERT_TRUE(sequence.reserve_tokens(256));
  WorkerPool workers(2);
  fill_random_rows(memory, 256, sequence.view(), workers);
  const cache::KvView view = sequence.view();
  const auto check = [](const model::RowEncoding& encoding, std::span<const std::byte> row) {
    std::vector<float> values(encoding.width);
    kernels::decode_row(encoding.format, row, values);
    EXPECT_TRUE(std::ranges::all_of(values, [](float value) { return std::isfinite(value); }));
    EXPECT_TRUE(std::ranges::any_of(values, [](float value) { return value != 0; }));
  };
  EXPECT_EQ(memory.stream_rows[0].width, 64U);
  EXPECT_EQ(memory.stream_rows[1].width, 32U);
  check(memory.stream_rows[0], view.row(0, 127));
  check(memory.stream_rows[1], view.row(1, 127));
  check(memory.ring_rows[0], view.ring_slot(0, 255));
  EXPECT_NE(std::memcmp(view.row(0, 0).data(), view.row(0, 1).data(), view.row(0, 0).size()), 0);
}

}  // namespace
}  // namespace locket::cli
