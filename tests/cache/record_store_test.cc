#include "cache/internal/record_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "base/folder.h"
#include "tests/support/stored_prefix.h"

namespace locket::cache {
namespace {

using test_support::StoreFolder;
using Access = RecordStoreOptions::Access;

std::unique_ptr<RecordStore> open_records(const StoreFolder& folder, Access access) {
  auto store = RecordStore::open({.folder = folder.path(), .access = access, .faults = {}});
  EXPECT_TRUE(store);
  return std::move(*store);
}

std::vector<std::string> keys_of(const RecordStore& store, std::string_view prefix) {
  std::vector<std::string> keys;
  store.scan(prefix, [&](std::string_view key, std::string_view) {
    keys.emplace_back(key);
    return true;
  });
  return keys;
}

TEST(RecordStoreTest, ABatchIsThereAfterReopeningInTheOrderOfKeys) {
  const StoreFolder folder("records");
  {
    auto store = open_records(folder, Access::kWrite);
    RecordBatch batch;
    batch.put("b2", "two");
    batch.put("b1", "one");
    batch.put("a", "zero");
    batch.put("gone", "x");
    batch.remove("gone");
    ASSERT_TRUE(store->write(batch));
  }
  auto store = open_records(folder, Access::kWrite);
  EXPECT_FALSE(store->was_rebuilt());
  EXPECT_EQ(store->get("b1"), "one");
  EXPECT_EQ(store->get("gone"), std::nullopt);
  EXPECT_THAT(keys_of(*store, "b"), ::testing::ElementsAre("b1", "b2"));
  EXPECT_THAT(keys_of(*store, ""), ::testing::ElementsAre("a", "b1", "b2"));
  const std::vector<std::string> wanted = {"b2", "none", "a"};
  EXPECT_THAT(store->get_all(wanted),
              ::testing::ElementsAre(std::optional<std::string>("two"), std::nullopt,
                                     std::optional<std::string>("zero")));
}

TEST(RecordStoreTest, AReaderSeesLaterBatchesOnceItCatchesUp) {
  const StoreFolder folder("records_reader");
  auto reader = open_records(folder, Access::kRead);
  EXPECT_EQ(reader->get("key"), std::nullopt) << "nothing is there yet";
  auto writer = open_records(folder, Access::kWrite);
  for (int i = 0; i < 50; ++i) {
    RecordBatch batch;
    batch.put("key", std::string(100'000, static_cast<char>('a' + i % 26)) + std::to_string(i));
    ASSERT_TRUE(writer->write(batch));
    reader->catch_up();
    ASSERT_EQ(reader->get("key"), *batch.changes[0].value) << i;
  }
  EXPECT_EQ(reader->read_errors(), 0);
  EXPECT_FALSE(reader->write({}).has_value() && reader->needs_reopen());
}

TEST(RecordStoreTest, ALogThatEndsInTheMiddleOfABatchLosesThatBatchOnly) {
  const StoreFolder folder("records_torn");
  {
    auto store = open_records(folder, Access::kWrite);
    for (const char* key : {"first", "second"}) {
      RecordBatch batch;
      batch.put(key, std::string(1'000, 'v'));
      batch.put(std::string(key) + "_too", "v");
      ASSERT_TRUE(store->write(batch));
    }
  }
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    if (entry.path().extension() != ".log" || entry.file_size() == 0) continue;
    std::filesystem::resize_file(entry.path(), entry.file_size() - 3);
  }
  auto store = open_records(folder, Access::kWrite);
  EXPECT_TRUE(store->get("first"));
  EXPECT_TRUE(store->get("first_too"));
  EXPECT_FALSE(store->get("second"));
  EXPECT_FALSE(store->get("second_too"));
}

TEST(RecordStoreTest, FilesStaySmallBesideWhatTheyHold) {
  const StoreFolder folder("records_size");
  auto store = open_records(folder, Access::kWrite);
  RecordBatch batch;
  batch.put("key", "value");
  ASSERT_TRUE(store->write(batch));
  EXPECT_LT(allocated_bytes_below(folder.path()), 64 * 1024) << "nothing is reserved ahead";
}

}  // namespace
}  // namespace locket::cache
