#include "checkpoint/shard_index.h"

#include <filesystem>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "tests/checkpoint/expect_failure.h"
#include "tests/support/checkpoint_files.h"

namespace locket::checkpoint {
namespace {

namespace fs = std::filesystem;
using test_support::FileTensor;
using test_support::index_text;
using test_support::safetensors_text;
using test_support::TempFolder;
using ::testing::ElementsAre;

constexpr std::string_view kIndexName = "model.safetensors.index.json";

// One-byte tensors of these names.
std::string file_of(const std::vector<std::string>& names) {
  std::vector<FileTensor> tensors;
  for (const std::string& name : names) tensors.push_back({name, "U8", {1}, "x"});
  return safetensors_text(tensors);
}

// Reads the index, opens its files, compares.
Status open_all(const TempFolder& folder) {
  LOCKET_TRY(const ShardIndex index, read_shard_index(folder.path()));
  std::vector<SafetensorsFile> files;
  for (const std::string& shard : index.shards) {
    LOCKET_TRY(SafetensorsFile file, SafetensorsFile::open(folder.path() / shard));
    files.push_back(std::move(file));
  }
  return check_against_index(index, files);
}

TEST(ShardIndexTest, TheIndexSaysWhichFileHoldsWhichTensor) {
  const TempFolder folder;
  folder.write("b.safetensors", file_of({"one", "three"}));
  folder.write("a.safetensors", file_of({"two"}));
  folder.write(kIndexName,
               index_text({{"b.safetensors", {"three", "one"}}, {"a.safetensors", {"two"}}}));
  const auto index = read_shard_index(folder.path());
  ASSERT_TRUE(index) << index.error().message;
  EXPECT_FALSE(index->is_single_file);
  EXPECT_EQ(index->source, folder / kIndexName);
  EXPECT_THAT(index->shards, ElementsAre("a.safetensors", "b.safetensors"));
  ASSERT_EQ(index->tensors.size(), 3U);
  EXPECT_EQ(index->tensors[0].name, "one");
  EXPECT_EQ(index->tensors[0].shard, 1U);
  EXPECT_EQ(index->tensors[1].name, "three");
  EXPECT_EQ(index->tensors[2].name, "two");
  EXPECT_EQ(index->tensors[2].shard, 0U);
  EXPECT_TRUE(open_all(folder));
}

TEST(ShardIndexTest, FilesThatTheIndexDoesNotNameAreIgnored) {
  const TempFolder folder;
  folder.write("a.safetensors", file_of({"one"}));
  folder.write("model.safetensors", file_of({"one", "stray"}));
  folder.write("broken.safetensors", "no safetensors file at all");
  folder.write(kIndexName, index_text({{"a.safetensors", {"one"}}}));
  EXPECT_THAT(read_shard_index(folder.path())->shards, ElementsAre("a.safetensors"));
  EXPECT_TRUE(open_all(folder));
}

TEST(ShardIndexTest, WithoutAnIndexTheSingleFileIsTheCheckpoint) {
  const TempFolder folder;
  folder.write("model.safetensors", file_of({"one"}));
  folder.write("other.safetensors", file_of({"two"}));
  const auto index = read_shard_index(folder.path());
  ASSERT_TRUE(index) << index.error().message;
  EXPECT_TRUE(index->is_single_file);
  EXPECT_EQ(index->source, folder / "model.safetensors");
  EXPECT_THAT(index->shards, ElementsAre("model.safetensors"));
  EXPECT_TRUE(open_all(folder));
}

TEST(ShardIndexTest, AFolderWithNeitherIsRefused) {
  const TempFolder folder;
  folder.write("model-00001-of-00002.safetensors", file_of({"one"}));
  expect_failure(read_shard_index(folder.path()), ErrorCode::kNotFound,
                 {folder.path().string(), "neither model.safetensors.index.json nor"});
}

TEST(ShardIndexTest, AMissingFileIsNamed) {
  const TempFolder folder;
  folder.write("a.safetensors", file_of({"one"}));
  folder.write(kIndexName, index_text({{"a.safetensors", {"one"}}, {"b.safetensors", {"two"}}}));
  const auto index = read_shard_index(folder.path());
  expect_failure(
      index, ErrorCode::kNotFound,
      {(folder / kIndexName).string(), "names 2 files, 1 of them missing: b.safetensors"});
  EXPECT_THAT(index.error().message, ::testing::Not(::testing::HasSubstr("does not name")));
}

TEST(ShardIndexTest, AStaleIndexIsRefusedWithBothSets) {
  const TempFolder folder;
  std::map<std::string, std::vector<std::string>> names_by_file;
  for (int shard = 1; shard <= 30; ++shard) {
    names_by_file[fmt::format("old-{:02}.safetensors", shard)] = {fmt::format("t{}", shard)};
  }
  for (int shard = 1; shard <= 15; ++shard) {
    folder.write(fmt::format("new-{:02}.safetensors", shard),
                 file_of({fmt::format("t{}", 2 * shard), fmt::format("t{}", 2 * shard - 1)}));
  }
  folder.write(kIndexName, index_text(names_by_file));
  expect_failure(
      read_shard_index(folder.path()), ErrorCode::kNotFound,
      {"names 30 files, 30 of them missing: old-01.safetensors, old-02.safetensors", "and 25 more",
       "holds 15 files that it does not name: new-01.safetensors", "and 10 more"});
}

TEST(ShardIndexTest, TensorsThatAreNotWhereTheIndexSaysAreRefused) {
  const TempFolder folder;
  folder.write("a.safetensors", file_of({"one", "moved", "extra"}));
  folder.write("b.safetensors", file_of({"two"}));
  folder.write(kIndexName, index_text({{"a.safetensors", {"one", "lost"}},
                                       {"b.safetensors", {"two", "moved"}}}));
  expect_failure(
      open_all(folder), ErrorCode::kBadCheckpoint,
      {(folder / kIndexName).string(),
       "2 listed tensors are not there: lost in a.safetensors, moved in b.safetensors",
       "2 tensors are there and not listed: moved in a.safetensors, extra in a.safetensors"});
}

TEST(ShardIndexTest, ATensorInTwoFilesIsRefused) {
  const TempFolder folder;
  folder.write("a.safetensors", file_of({"one", "twice"}));
  folder.write("b.safetensors", file_of({"two", "twice"}));
  folder.write(kIndexName,
               index_text({{"a.safetensors", {"one", "twice"}}, {"b.safetensors", {"two"}}}));
  expect_failure(open_all(folder), ErrorCode::kBadCheckpoint,
                 {"1 tensors are there and not listed: twice in b.safetensors"});
}

TEST(ShardIndexTest, WrongIndexFilesAreRefused) {
  const TempFolder folder;
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "not valid JSON"},
      {"{", "not valid JSON"},
      {"[]", "weight_map is missing or no object"},
      {"{}", "weight_map is missing or no object"},
      {R"({"weight_map":[]})", "weight_map is missing or no object"},
      {R"({"weight_map":{}})", "weight_map is empty"},
      {R"({"weight_map":{"t":7}})", "tensor t is mapped to 7"},
      {R"({"weight_map":{"t":"../a.safetensors"}})", "tensor t is mapped to the string"},
      {R"({"weight_map":{"t":"/etc/passwd"}})", "tensor t is mapped to the string"},
      {R"({"weight_map":{"t":".."}})", "tensor t is mapped to the string"},
      {R"({"weight_map":{"t":""}})", "tensor t is mapped to the string"},
      {R"({"weight_map":{"t":"a\u0000b"}})", "tensor t is mapped to the string"},
      {R"({"weight_map":{"t":"a","t":"b"}})", "key \"t\" occurs twice"},
      {"{\"weight_map\":" + std::string(1'000'000, '['), "nested more than 64 levels"},
      {"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n", "Git LFS pointer"},
  };
  for (const auto& [content, reason] : cases) {
    SCOPED_TRACE(content.substr(0, 100));
    folder.write(kIndexName, content);
    expect_failure(read_shard_index(folder.path()), ErrorCode::kBadCheckpoint,
                   {(folder / kIndexName).string(), reason});
  }
}

TEST(ShardIndexTest, AnIndexThatIsADeadLinkIsNotPassedOver) {
  const TempFolder folder;
  folder.write("model.safetensors", file_of({"one"}));
  fs::create_symlink(folder / "gone", folder / kIndexName);
  expect_failure(read_shard_index(folder.path()), ErrorCode::kNotFound,
                 {(folder / kIndexName).string()});
}

TEST(ShardIndexTest, LinksToFilesElsewhereAreFollowed) {
  const TempFolder folder;
  const TempFolder store;
  fs::create_symlink(store.write("blob1", file_of({"one"})), folder / "a.safetensors");
  fs::create_symlink(store.write("blob2", index_text({{"a.safetensors", {"one"}}})),
                     folder / kIndexName);
  EXPECT_TRUE(open_all(folder));
}

}  // namespace
}  // namespace locket::checkpoint
