#include "model/engram_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "tests/support/checkpoint_files.h"

namespace locket::model {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kRows = 500;
constexpr std::int64_t kWidth = 64;
constexpr std::size_t kColumns = 6;

// Two FP8 tables with scales; E4M3 codes without NaN.
class EngramRowsTest : public ::testing::Test {
 protected:
  EngramRowsTest() {
    std::mt19937 random(4);
    const auto bytes = [&](std::int64_t count, bool is_scale) {
      std::string text(static_cast<std::size_t>(count), '\0');
      for (char& c : text) c = static_cast<char>(is_scale ? 120 + random() % 9 : random() & 0xF7u);
      return text;
    };
    test_support::CheckpointText content;
    for (const char* name : {"a", "b"}) {
      const std::string prefix = name;
      content.files["model.safetensors"].push_back(
          {prefix + ".weight", "F8_E4M3", {kRows, kWidth}, bytes(kRows * kWidth, false)});
      content.files["model.safetensors"].push_back(
          {prefix + ".scale", "F8_E8M0", {kRows, kWidth / 32}, bytes(kRows * kWidth / 32, true)});
    }
    test_support::write_checkpoint(folder_, content);
    checkpoint_.push_back(*checkpoint::Checkpoint::open(folder_.path()));
  }

  EngramTable table(const std::string& name, std::uint64_t resident_limit) const {
    return *EngramTable::open(*checkpoint_.front().find(name + ".weight"),
                              checkpoint_.front().find(name + ".scale"), resident_limit);
  }

  // Few different rows, so that many positions want the same.
  static std::vector<std::int64_t> ids(std::uint32_t seed, std::size_t positions) {
    std::mt19937 random(seed);
    std::vector<std::int64_t> ids(positions * kColumns);
    for (std::int64_t& id : ids) id = static_cast<std::int64_t>(random() % 37) * 13;
    return ids;
  }

  static void expect_rows(const EngramTable& table, const std::vector<std::int64_t>& ids,
                          const tensor::FloatMatrix& rows) {
    ASSERT_EQ(rows.rows() * kColumns, ids.size());
    std::vector<float> expected(static_cast<std::size_t>(kWidth));
    for (std::size_t i = 0; i < ids.size(); ++i) {
      ASSERT_TRUE(table.read_row(ids[i], expected));
      const auto actual =
          rows.row(i / kColumns).subspan(i % kColumns * expected.size(), expected.size());
      ASSERT_TRUE(std::ranges::equal(actual, expected)) << "position " << i / kColumns;
    }
  }

  test_support::TempFolder folder_;
  std::vector<checkpoint::Checkpoint> checkpoint_;
};

TEST_F(EngramRowsTest, EveryPositionGetsItsRowsFromMemoryAndFromDisk) {
  TaskPool readers(5);
  const EngramTable a = table("a", std::uint64_t{1} << 20);
  const EngramTable b = table("b", 0);
  EXPECT_TRUE(a.is_resident());
  EXPECT_FALSE(b.is_resident());
  const auto check = [&](std::size_t positions, WorkerPool& workers, TaskPool* pool) {
    const std::vector<EngramLookup> lookups = {{.table = &a, .ids = ids(1, positions)},
                                               {.table = &b, .ids = ids(2, positions)}};
    const EngramRows gathered = gather_engram_rows(lookups, kColumns, workers, pool);
    ASSERT_EQ(gathered.rows.size(), 2U);
    expect_rows(a, lookups[0].ids, gathered.rows[0]);
    expect_rows(b, lookups[1].ids, gathered.rows[1]);
    for (const Status& status : gathered.statuses) EXPECT_TRUE(status);
  };
  for (const std::size_t threads : {1, 3}) {
    WorkerPool workers(threads);
    for (const std::size_t positions : {1, 2, 100}) {
      check(positions, workers, &readers);
      check(positions, workers, nullptr);
    }
  }
}

TEST_F(EngramRowsTest, OnlyThePositionsOfAnUnreadableRowFail) {
  const EngramTable a = table("a", 0);
  const auto tensor = checkpoint_.front().find("a.scale");
  ASSERT_TRUE(tensor);
  // The last row's scales are gone.
  std::filesystem::resize_file(tensor->file->path(),
                               tensor->entry->offset + tensor->byte_count() - 1);
  std::vector<EngramLookup> lookups = {{.table = &a, .ids = ids(1, 4)}};
  lookups[0].ids[2 * kColumns + 1] = kRows - 1;
  WorkerPool workers(1);
  TaskPool readers(2);
  const EngramRows gathered = gather_engram_rows(lookups, kColumns, workers, &readers);
  for (std::size_t position = 0; position < 4; ++position) {
    EXPECT_EQ(gathered.statuses[position].has_value(), position != 2) << position;
  }
  EXPECT_THAT(gathered.statuses[2].error().message, HasSubstr("tensor a.scale"));
}

TEST_F(EngramRowsTest, NoLookupsGiveNoRows) {
  WorkerPool workers(1);
  const EngramRows gathered = gather_engram_rows({}, kColumns, workers, nullptr);
  EXPECT_TRUE(gathered.rows.empty());
  EXPECT_TRUE(gathered.statuses.empty());
}

}  // namespace
}  // namespace locket::model
