// Files of exported prefixes that are broken, or whole and strange: whatever is in them, an import
// stores a prefix that holds together, or refuses in valid UTF-8 and stores nothing.
#include "engine/prefix_file.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <random>

#include "base/file.h"
#include "cache/disk_catalog.h"
#include "checkpoint/safetensors_writer.h"
#include "engine/internal/prefix_file_format.h"
#include "tests/fuzz/broken_text.h"
#include "tests/support/stored_prefix.h"
#include "tokenizer/tokenizer.h"

namespace locket::fuzz {
namespace {

namespace fs = std::filesystem;
using engine::internal::PrefixFileTables;

constexpr int kRounds = 400;
constexpr std::size_t kTokens = 2 * 128 + 50;

// A memory with the sizes of test_support::PayloadSizes.
engine::ModelMemory memory_facts() {
  engine::ModelMemory memory = {.label = "test model",
                                .identity = {},
                                .layout = {},
                                .vocabulary_size = 129'280,
                                .max_positions = 4'096,
                                .geometry = {},
                                .decoder_layers = 1};
  memory.identity.numerics_mode = "reference";
  memory.layout.streams = {{.name = "keys", .row_bytes = 17, .part = cache::PagePart::kKeys},
                           {.name = "rows", .row_bytes = 71, .part = cache::PagePart::kRows}};
  memory.layout.rings = {{.layer = 0, .slots = 1, .row_bytes = 5'003}};
  return memory;
}

class PrefixFileFuzzTest : public ::testing::Test {
 protected:
  PrefixFileFuzzTest()
      : source_folder_("prefix_fuzz_source"),
        target_folder_("prefix_fuzz_target"),
        source_(test_support::open_store(source_folder_.path())),
        target_(test_support::open_store(target_folder_.path())),
        tokens_(test_support::some_tokens(kTokens, 1)),
        file_(source_folder_.path() / "prefix.safetensors") {
    auto turn = test_support::make_turn(test_support::root_of(*source_), tokens_,
                                        {.snapshots = {128, 256}});
    EXPECT_TRUE(source_->write_turn(turn.write));
    EXPECT_TRUE(engine::export_prefix(*source_, turn.write.newest, file_, {}));
    whole_ = read_whole_file(file_).value();
  }

  void write(const std::string& bytes) {
    fs::remove(file_);
    ASSERT_TRUE(write_whole_file(file_, std::as_bytes(std::span(bytes))));
  }

  // True if the file was taken. What is stored then is sound; else there is nothing.
  bool import() {
    const Result<engine::ImportReport> report =
        engine::import_prefix({.store = *target_, .memory = memory_, .tenant = {}}, file_, {});
    if (!report) {
      EXPECT_FALSE(report.error().message.empty());
      EXPECT_EQ(tokenizer::repair_utf8(report.error().message), report.error().message);
      EXPECT_LT(report.error().message.size(), 4'000U);
      ++refused_;
      return false;
    }
    ++taken_;
    EXPECT_EQ(cache::verify_stored(*target_, cache::Repair::kReport, {}).value().damaged, 0);
    EXPECT_EQ(cache::count_stored(*target_).tokens, report->facts.tokens);
    EXPECT_EQ(cache::count_stored(*target_).unreachable_pages, 0);
    EXPECT_TRUE(cache::remove_all(*target_));
    return true;
  }

  test_support::StoreFolder source_folder_;
  test_support::StoreFolder target_folder_;
  std::unique_ptr<cache::DiskStore> source_;
  std::unique_ptr<cache::DiskStore> target_;
  const engine::ModelMemory memory_ = memory_facts();
  std::vector<std::int32_t> tokens_;
  fs::path file_;
  std::string whole_;
  int taken_ = 0;
  int refused_ = 0;
};

TEST_F(PrefixFileFuzzTest, EveryBrokenFileIsRefusedOrWithoutEffect) {
  ASSERT_TRUE(import());
  BrokenText source(whole_, 20261129);
  for (int round = 0; round < kRounds; ++round) {
    write(round % 3 == 0 ? source.cut() : round % 3 == 1 ? source.flipped() : source.edited());
    import();
  }
  EXPECT_GT(refused_, kRounds - 5);
  EXPECT_EQ(cache::count_stored(*target_).pages, 0);
}

// Files that somebody made with care: every checksum fits, and the numbers do not.
class StrangeFile {
 public:
  StrangeFile(std::vector<std::int32_t> tokens, std::uint32_t seed) : random_(seed) {
    tables_.tokens = std::move(tokens);
    tables_.positions = {128, 256};
  }

  Status write(const fs::path& path) {
    const int strangeness = static_cast<int>(below(10));
    change_tables(strangeness);
    const auto pages = (tables_.tokens.size() + 127) / 128;
    name_pages(pages);
    for (std::size_t i = 0; i < pages; ++i) {
      const std::size_t count = std::min<std::size_t>(128, tables_.tokens.size() - 128 * i);
      const auto page = static_cast<std::int64_t>(i);
      add(engine::internal::keys_tensor(page), strange_size(17 * count, strangeness));
      add(engine::internal::rows_tensor(page), strange_size(71 * count, strangeness));
    }
    for (const std::int64_t position : tables_.positions) {
      add(engine::internal::snapshot_tensor(position), strange_size(5'003, strangeness));
    }
    change_results(strangeness);
    return save(path);
  }

 private:
  std::size_t below(std::size_t limit) {
    return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random_);
  }

  void change_tables(int strangeness) {
    static constexpr std::int64_t kStrange[] = {0,   -1,  1,    127,       129,      384,
                                                512, 256, -128, INT64_MAX, INT64_MIN};
    if (strangeness == 1) tables_.tokens.resize(below(tables_.tokens.size()));
    if (strangeness == 2) {
      tables_.tokens[below(tables_.tokens.size())] =
          static_cast<std::int32_t>(kStrange[below(std::size(kStrange))]) * 1'000'003;
    }
    if (strangeness == 3) tables_.positions[below(2)] = kStrange[below(std::size(kStrange))];
    if (strangeness == 4) std::ranges::reverse(tables_.positions);
    if (strangeness == 5) tables_.tokens.resize(below(6'000), 7);
  }

  void name_pages(std::size_t pages) {
    cache::PrefixPoint point = cache::root_point(head_.root);
    for (std::size_t i = 0; i < pages; ++i) {
      const std::size_t count = std::min<std::size_t>(128, tables_.tokens.size() - 128 * i);
      point = cache::next_point(point, std::span(tables_.tokens).subspan(128 * i, count));
      tables_.names.push_back(point.name);
    }
  }

  std::size_t strange_size(std::size_t size, int strangeness) {
    return strangeness == 6 && below(3) == 0 ? below(2 * size) : size;
  }

  void add(const std::string& name, std::size_t bytes) {
    std::string content(bytes, static_cast<char>(below(256)));
    tables_.checksums.push_back(xxh3_128(std::as_bytes(std::span(content))));
    payloads_.emplace_back(name, std::move(content));
  }

  void change_results(int strangeness) {
    if (strangeness == 7 && !payloads_.empty()) payloads_.pop_back();
    if (strangeness == 8 && !tables_.names.empty()) {
      tables_.names[below(tables_.names.size())][3] ^= std::byte{1};
    }
    if (strangeness == 9 && !tables_.checksums.empty()) tables_.checksums.pop_back();
  }

  Status save(const fs::path& path) const {
    using numerics::Dtype;
    const engine::internal::TableBytes bytes = engine::internal::encode_tables(tables_);
    const auto count = [](const auto& list) { return static_cast<std::int64_t>(list.size()); };
    const auto view = [](const std::string& text) { return std::as_bytes(std::span(text)); };
    std::vector<checkpoint::NamedTensor> tensors = {
        {"tokens", {Dtype::kI32, {count(tables_.tokens)}, view(bytes.tokens)}},
        {"names", {Dtype::kU8, {count(tables_.names), 32}, view(bytes.names)}},
        {"snapshot_positions", {Dtype::kI64, {count(tables_.positions)}, view(bytes.positions)}},
        {"checksums", {Dtype::kU8, {count(tables_.checksums), 16}, view(bytes.checksums)}}};
    for (const auto& [name, content] : payloads_) {
      tensors.push_back({name, {Dtype::kU8, {count(content)}, view(content)}});
    }
    return checkpoint::write_safetensors(path, tensors,
                                         engine::internal::encode_head(head_, bytes));
  }

  std::mt19937 random_;
  engine::internal::PrefixFileHead head_ = {.model = "test model",
                                            .identity = memory_facts().identity};
  PrefixFileTables tables_;
  std::vector<std::pair<std::string, std::string>> payloads_;
};

TEST_F(PrefixFileFuzzTest, EveryStrangeFileWithRightChecksumsIsTakenWholeOrRefused) {
  for (std::uint32_t round = 0; round < kRounds; ++round) {
    fs::remove(file_);
    // A name that occurs twice cannot even be written.
    if (StrangeFile(tokens_, round).write(file_)) import();
  }
  EXPECT_GT(taken_, kRounds / 20);
  EXPECT_GT(refused_, kRounds / 4);
  EXPECT_EQ(cache::count_stored(*target_).pages, 0);
}

}  // namespace
}  // namespace locket::fuzz
