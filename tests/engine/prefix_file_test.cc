// A prefix goes from one machine to another as a file.
#include "engine/prefix_file.h"

#include <algorithm>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <vector>

#include "base/file.h"
#include "cache/disk_catalog.h"
#include "checkpoint/safetensors.h"
#include "engine/engine.h"
#include "tests/engine/memory_fixture.h"
#include "tests/support/checkpoint_files.h"
#include "tests/support/sanitizer.h"

namespace locket::engine {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class PrefixFileTest : public MemoryTest {
 protected:
  void SetUp() override {
    MemoryTest::SetUp();
    target_folder_ = folder_.string() + "_target";
    file_ = folder_.string() + ".safetensors";
    fs::remove_all(target_folder_);
  }
  void TearDown() override {
    target_.reset();
    fs::remove_all(target_folder_);
    fs::remove(file_);
    MemoryTest::TearDown();
  }

  // What the fixture's memory is, as read_model_memory() would say it.
  static ModelMemory facts() {
    const model::V41Config& config = model().config();
    ModelMemory memory = {.label = "micro",
                          .identity = {},
                          .layout = model().memory().layout,
                          .vocabulary_size = config.vocabulary_size,
                          .max_positions = config.max_positions,
                          .geometry = {.window = config.sliding_window,
                                       .encoder_layers = config.boundary,
                                       .group = model().memory().layout.largest_tokens_per_row()},
                          .decoder_layers = config.layer_count - config.boundary};
    memory.identity.numerics_mode = model().numerics().memory_name();
    memory.identity.numerics_revision = model::kNumericsRevision;
    return memory;
  }

  // Reads a prompt into the memory and exports what is stored of it.
  PrefixFileFacts export_prompt(const std::vector<TokenId>& prompt) {
    read(prompt);
    memory_->flush();
    const auto prefixes = cache::list_prefixes(*disk_);
    EXPECT_EQ(prefixes.size(), 1U);
    const auto exported = export_prefix(*disk_, prefixes.front().name, file_, {});
    EXPECT_TRUE(exported) << exported.error().message;
    return exported.value_or(PrefixFileFacts{});
  }

  cache::DiskStore& target(std::uint64_t quota = 0) {
    if (!target_) {
      target_ = cache::DiskStore::open({.directory = target_folder_, .quota_bytes = quota}).value();
    }
    return *target_;
  }
  Result<ImportReport> import(const ModelMemory& memory = facts(), const std::string& tenant = {}) {
    return import_prefix({.store = target(), .memory = memory, .tenant = tenant}, file_, {});
  }
  void expect_refused(const ModelMemory& memory, const std::vector<std::string>& parts) {
    const Result<ImportReport> refused = import(memory);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kBadMemory);
    EXPECT_THAT(refused.error().message, HasSubstr(file_.string()));
    for (const std::string& part : parts) EXPECT_THAT(refused.error().message, HasSubstr(part));
    EXPECT_EQ(cache::count_stored(target()).pages, 0);
  }
  // A memory over the folder that was imported to.
  void move_to_target() {
    target_.reset();
    close();
    std::swap(folder_, target_folder_);
    open();
  }

  fs::path target_folder_;
  fs::path file_;
  std::unique_ptr<cache::DiskStore> target_;
};

TEST_F(PrefixFileTest, AnImportedPrefixGivesTheSameBitsInAnotherFolder) {
  const std::vector<TokenId> prompt = ids(1, 1'501);
  const PrefixFileFacts facts = export_prompt(prompt);
  EXPECT_EQ(facts.tokens, 1'500) << "the last whole group";
  EXPECT_EQ(facts.pages, 12);
  EXPECT_GE(facts.snapshots, 1);
  const Result<ImportReport> report = import();
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->facts.tokens, facts.tokens);
  EXPECT_EQ(report->facts.snapshots, facts.snapshots);
  EXPECT_EQ(report->facts.payload_bytes, facts.payload_bytes);
  EXPECT_EQ(report->pages_known, 0);
  EXPECT_EQ(report->pages_left_out, 0);
  ASSERT_EQ(cache::list_prefixes(target()).size(), 1U);
  EXPECT_EQ(cache::list_prefixes(target()).front().name, report->name);
  EXPECT_NE(cache::list_prefixes(*disk_).front().name, report->name) << "another secret";
  move_to_target();
  const MemoryUse use = read(prompt);  // compares with a cold run
  EXPECT_EQ(use.disk_tokens, 1'500U);
  EXPECT_LE(use.replayed_tokens, 256U) << "snapshots came along";
}

TEST_F(PrefixFileTest, AnImportIsUnderTheTenantOfTheImporter) {
  const std::vector<TokenId> prompt = ids(2, 300);
  export_prompt(prompt);
  ASSERT_TRUE(import(facts(), "somebody"));
  const auto prefixes = cache::list_prefixes(target());
  ASSERT_EQ(prefixes.size(), 1U);
  EXPECT_EQ(prefixes.front().root.identity.tenant, "somebody");
  move_to_target();
  EXPECT_EQ(read(prompt).hit_tokens, 0U) << "the owner has nothing";
}

TEST_F(PrefixFileTest, WhatIsKnownIsNotStoredTwice) {
  export_prompt(ids(3, 700));
  ASSERT_TRUE(import());
  const std::uint64_t written = target().counts().payload_bytes_written;
  const Result<ImportReport> again = import();
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->pages_known, again->facts.pages);
  EXPECT_EQ(target().counts().payload_bytes_written, written);
}

TEST_F(PrefixFileTest, WhatTheQuotaHasNoRoomForIsCounted) {
  const PrefixFileFacts facts = export_prompt(ids(4, 3'000));
  target(facts.payload_bytes / 2 + (std::uint64_t{1} << 20));
  const Result<ImportReport> report = import();
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_LT(target().used_bytes(), facts.payload_bytes / 2 + (std::uint64_t{1} << 20));
  const auto stored = cache::count_stored(target()).pages;
  EXPECT_EQ(report->pages_left_out, report->facts.pages - stored);
}

TEST_F(PrefixFileTest, TheFileSaysInWordsWhatItIs) {
  export_prompt(ids(5, 300));
  const auto file = checkpoint::SafetensorsFile::open(file_).value();
  const auto& metadata = file.metadata();
  EXPECT_EQ(metadata.at("format"), "locket prefix");
  EXPECT_EQ(metadata.at("format_version"), "1");
  EXPECT_EQ(metadata.at("numerics_mode"), "reference");
  EXPECT_EQ(metadata.at("model_identity"), std::string(64, '0'));
  ASSERT_NE(file.find("tokens"), nullptr);
  EXPECT_EQ(file.find("tokens")->shape, (tensor::Shape{300}));
  EXPECT_NE(file.find("page.000002.rows"), nullptr);
  EXPECT_EQ(fs::status(file_).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_FALSE(fs::exists(file_.string() + ".part"));
}

TEST_F(PrefixFileTest, AnotherModelOrOtherNumericsAreRefusedByName) {
  export_prompt(ids(6, 300));
  ModelMemory other = facts();
  other.identity.model[0] = std::byte{1};
  other.label = "other";
  expect_refused(other, {"model_identity is 0000", "(\"other\")", "another model's"});
  other = facts();
  other.identity.numerics_mode = "wide";
  expect_refused(other, {"numerics_mode is reference, here it is wide"});
  other = facts();
  other.identity.numerics_revision += 1;
  expect_refused(other, {"numerics_revision is ", ", here it is "});
  other = facts();
  other.vocabulary_size = 5;
  expect_refused(other, {"the model knows 0 to 4"});
  other = facts();
  other.max_positions = 299;
  expect_refused(other, {"tensor tokens is I32 [300]", "at most 299"});
  other = facts();
  other.layout.streams.back().row_bytes += 1;
  expect_refused(other, {"tensor page.000000.", "expected U8 ["});
  other = facts();
  other.layout.rings.front().row_bytes += 1;
  expect_refused(other, {"tensor snapshot.", "expected U8 ["});
}

TEST_F(PrefixFileTest, OtherFilesAreRefused) {
  std::ofstream(file_) << "not a safetensors file at all";
  EXPECT_EQ(import().error().code, ErrorCode::kBadMemory);
  std::ofstream(file_) << test_support::safetensors_text({{"x", "U8", {1}, "1"}});
  expect_refused(facts(), {"this is no exported prefix"});
  std::ofstream(file_) << test_support::safetensors_text(
      {{"x", "U8", {1}, "1"}}, {{"format", "locket prefix"}, {"format_version", "2"}});
  expect_refused(facts(), {"\"format_version\" is 2, this program reads 1"});
  fs::remove(file_);
  EXPECT_EQ(import().error().code, ErrorCode::kNotFound);
}

TEST_F(PrefixFileTest, AStoreThatCannotBeWrittenIsNamed) {
  export_prompt(ids(7, 300));
  target();
  const auto reader = cache::DiskStore::open({.directory = target_folder_}).value();
  const Result<ImportReport> refused =
      import_prefix({.store = *reader, .memory = facts(), .tenant = {}}, file_, {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kBadRequest);
}

TEST_F(PrefixFileTest, ADamagedPageIsNotExported) {
  read(ids(8, 300));
  memory_->flush();
  const cache::PageName name = cache::list_prefixes(*disk_).front().name;
  close();
  for (const auto& entry : fs::directory_iterator(folder_)) {
    if (!entry.path().filename().string().starts_with("rows")) continue;
    std::fstream rows(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    rows.seekp(600);
    rows.put('\x55');
  }
  open();
  const Result<PrefixFileFacts> refused = export_prefix(*disk_, name, file_, {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kBadMemory);
  EXPECT_THAT(refused.error().message, HasSubstr("page.000000.rows"));
  EXPECT_FALSE(fs::exists(file_));
  EXPECT_FALSE(fs::exists(file_.string() + ".part"));
  EXPECT_EQ(export_prefix(*disk_, cache::PageName{}, file_, {}).error().code, ErrorCode::kNotFound);
}

// What was accepted all the same gives the same bits as before.
TEST_F(PrefixFileTest, EveryFlippedBitIsRefusedOrWithoutEffect) {
  const std::vector<TokenId> prompt = ids(9, 150);
  export_prompt(prompt);
  const std::string whole = read_whole_file(file_).value();
  const cache::RootLabel root = facts().root_label(target(), {});
  int accepted = 0;
  const std::size_t step = test_support::runs_with_sanitizer() ? 41 : 2;
  for (std::size_t at = 0; at < whole.size(); at += at < 4'096 ? 1 : step) {
    std::string bytes = whole;
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << at % 8));
    fs::remove(file_);
    ASSERT_TRUE(write_whole_file(file_, std::as_bytes(std::span(bytes))));
    if (!import()) continue;
    ++accepted;
    EXPECT_EQ(
        target().find(cache::root_point(root.root), prompt, facts().page_sizes()).parting_tokens,
        22)
        << at;
    const auto prefixes = cache::list_prefixes(target());
    ASSERT_EQ(prefixes.size(), 1U) << at;
    ASSERT_TRUE(export_prefix(target(), prefixes.front().name, file_, {}));
    const std::string again = read_whole_file(file_).value();
    EXPECT_EQ(again.substr(again.size() - 2'000), whole.substr(whole.size() - 2'000)) << at;
    ASSERT_TRUE(cache::remove_all(target()));
  }
  EXPECT_LT(accepted, 64) << "blanks of the header";
  EXPECT_EQ(cache::count_stored(target()).pages, 0) << "a refused file leaves nothing behind";
}

TEST_F(PrefixFileTest, AnEngineAndItsModelMemoryAgree) {
  std::vector<std::int32_t> map(static_cast<std::size_t>(model().config().vocabulary_size));
  constexpr std::size_t kClasses = 400;  // engram_compressed_vocab_size
  for (std::size_t i = 0; i < map.size(); ++i) map[i] = static_cast<std::int32_t>(i % kClasses);
  const fs::path folder = test_support::tiny_checkpoint("micro");
  auto engine = Engine::open(folder, map, {.threads = 1, .memory = {.directory = target_folder_}});
  ASSERT_TRUE(engine) << engine.error().message;
  const auto checkpoint = checkpoint::Checkpoint::open(folder).value();
  const auto memory = read_model_memory(checkpoint, {}, workers_).value();
  const cache::DiskStore& disk = *(*engine)->memory()->disk();
  EXPECT_EQ(memory.root_label(disk, "x").root, (*engine)->memory()->root_label("x").root);
  EXPECT_EQ(memory.root_label(disk, "x").model, (*engine)->memory()->root_label("x").model);
  EXPECT_EQ(memory.layout.page_bytes(), (*engine)->memory()->layout().page_bytes());
  EXPECT_EQ(memory.max_positions, static_cast<std::int64_t>((*engine)->max_positions()));
  for (const std::int64_t tokens : {2, 64, 128}) {
    EXPECT_EQ(memory.page_sizes().row_bytes(tokens),
              (*engine)->memory()->page_sizes().row_bytes(tokens));
    EXPECT_EQ(memory.page_sizes().key_bytes(tokens),
              (*engine)->memory()->page_sizes().key_bytes(tokens));
  }
  EXPECT_EQ(
      read_model_memory(checkpoint, {.mode = model::NumericsMode::kPlain}, workers_).error().code,
      ErrorCode::kBadRequest);
}

TEST_F(PrefixFileTest, AForecastIsWhatTheNextRequestDoes) {
  const std::vector<TokenId> stored = ids(10, 900);
  read(stored);
  for (const std::size_t common : {900U, 899U, 640U, 300U, 1U}) {
    std::vector<TokenId> prompt(stored.begin(),
                                stored.begin() + static_cast<std::ptrdiff_t>(common));
    prompt = joined(prompt, ids(11, 77));
    memory_->flush();
    restart();
    const MemoryForecast forecast = forecast_request(*disk_, facts(), prompt, ReplayMode::kBounded);
    Session next = session();
    ASSERT_TRUE(next.prefill(prompt));
    EXPECT_EQ(forecast.hit_tokens, static_cast<std::int64_t>(next.memory_use().hit_tokens));
    EXPECT_EQ(forecast.plan.replayed_tokens(),
              static_cast<std::int64_t>(next.memory_use().replayed_tokens))
        << common;
  }
}

}  // namespace
}  // namespace locket::engine
