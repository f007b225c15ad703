#include "checkpoint/checkpoint.h"

#include <array>
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
using numerics::Dtype;
using tensor::Shape;
using test_support::CheckpointText;
using test_support::counting_bytes;
using test_support::TempFolder;
using test_support::write_checkpoint;
using ::testing::ElementsAre;

CheckpointText two_files() {
  return {.config = R"({"hidden_size": 4})",
          .files = {{"model-1.safetensors",
                     {{"layers.0.w", "BF16", {2, 4}, counting_bytes(16)},
                      {"mtp.0.w", "U8", {5}, "01234"},
                      {"mtp.1.w", "U8", {3}, "012"}}},
                    {"model-2.safetensors",
                     {{"embed.weight", "F32", {3}, counting_bytes(12)},
                      {"image_start", "U8", {1}, "i"},
                      {"vision.w", "U8", {2}, "vv"}}}}};
}

Checkpoint open_checkpoint(const TempFolder& folder) {
  Result<Checkpoint> checkpoint = Checkpoint::open(folder.path());
  EXPECT_TRUE(checkpoint) << checkpoint.error().message;
  return std::move(*checkpoint);
}

std::string content_of(const StoredTensor& tensor) {
  const auto buffer = tensor.read();
  EXPECT_TRUE(buffer) << buffer.error().message;
  return {reinterpret_cast<const char*>(buffer->data()), buffer->size()};
}

TEST(CheckpointTest, OpensConfigAndTensorsOfAllFiles) {
  const TempFolder folder;
  write_checkpoint(folder, two_files());
  const Checkpoint checkpoint = open_checkpoint(folder);
  EXPECT_EQ(checkpoint.folder(), folder.path());
  EXPECT_EQ(checkpoint.config().root().integer("hidden_size").value(), 4);
  EXPECT_EQ(checkpoint.config().text(), R"({"hidden_size": 4})");
  EXPECT_EQ(checkpoint.files().size(), 2U);
  EXPECT_EQ(checkpoint.tensor_count(), 6U);
  std::vector<std::string> names;
  for (const StoredTensor& tensor : checkpoint.tensors()) names.push_back(tensor.name());
  EXPECT_THAT(names, ElementsAre("embed.weight", "image_start", "layers.0.w", "mtp.0.w", "mtp.1.w",
                                 "vision.w"));
  const auto found = checkpoint.find("layers.0.w");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->dtype, Dtype::kBf16);
  EXPECT_EQ(found->shape, (Shape{2, 4}));
  EXPECT_EQ(found->byte_count(), 16U);
  EXPECT_EQ(content_of(*found), counting_bytes(16));
  EXPECT_FALSE(checkpoint.find("layers.1.w"));
}

TEST(CheckpointTest, ASingleFileNeedsNoIndex) {
  const TempFolder folder;
  write_checkpoint(folder, {.files = {{"model.safetensors", {{"w", "U8", {2}, "ab"}}}}});
  EXPECT_FALSE(fs::exists(folder / "model.safetensors.index.json"));
  EXPECT_EQ(content_of(open_checkpoint(folder).find("w").value()), "ab");
}

TEST(CheckpointTest, RequireChecksDtypeAndShape) {
  const TempFolder folder;
  write_checkpoint(folder, two_files());
  Checkpoint checkpoint = open_checkpoint(folder);
  const std::string file = (folder / "model-1.safetensors").string();
  const auto bad = ErrorCode::kBadCheckpoint;
  EXPECT_TRUE(checkpoint.require("layers.0.w", Dtype::kBf16, {2, 4}));
  expect_failure(checkpoint.require("layers.0.w", Dtype::kF32, {2, 4}), bad,
                 {file + ": tensor layers.0.w is BF16 [2, 4] (F32 [2, 4] is needed)"});
  expect_failure(checkpoint.require("layers.0.w", Dtype::kBf16, {4, 2}), bad,
                 {file + ": tensor layers.0.w is BF16 [2, 4] (BF16 [4, 2] is needed)"});
  expect_failure(checkpoint.require("layers.0.w", Dtype::kBf16, {8}), bad, {"BF16 [8] is needed"});
  expect_failure(checkpoint.require("layers.7.w", Dtype::kBf16, {2, 4}), bad,
                 {(folder / "model.safetensors.index.json").string(),
                  "tensor layers.7.w is missing (BF16 [2, 4] is needed)"});
}

TEST(CheckpointTest, RequireTakesTheFirstDtypeThatFits) {
  const TempFolder folder;
  write_checkpoint(folder, two_files());
  Checkpoint checkpoint = open_checkpoint(folder);
  const auto tensor = checkpoint.require("embed.weight", {Dtype::kBf16, Dtype::kF32}, {3});
  ASSERT_TRUE(tensor) << tensor.error().message;
  EXPECT_EQ(tensor->dtype, Dtype::kF32);
  expect_failure(checkpoint.require("embed.weight", {Dtype::kBf16, Dtype::kF16}, {3}),
                 ErrorCode::kBadCheckpoint, {"is F32 [3] (BF16 [3] or F16 [3] is needed)"});
}

TEST(CheckpointTest, PackedFp4IsTheSameAsI8AndAsF4) {
  const TempFolder folder;
  write_checkpoint(folder, {.files = {{"model.safetensors",
                                       {{"as_i8", "I8", {3, 4}, counting_bytes(12)},
                                        {"as_f4", "F4", {3, 8}, counting_bytes(12)},
                                        {"as_u8", "U8", {3, 4}, counting_bytes(12)},
                                        {"unpacked", "I8", {3, 8}, counting_bytes(24)}}}}});
  Checkpoint checkpoint = open_checkpoint(folder);
  for (const char* name : {"as_i8", "as_f4"}) {
    const auto tensor = checkpoint.require(name, Dtype::kFp4E2m1, {3, 8});
    ASSERT_TRUE(tensor) << tensor.error().message;
    EXPECT_EQ(tensor->dtype, Dtype::kFp4E2m1);
    EXPECT_EQ(tensor->shape, (Shape{3, 8}));
    EXPECT_EQ(content_of(*tensor), counting_bytes(12));
  }
  for (const char* name : {"as_u8", "unpacked"}) {
    expect_failure(checkpoint.require(name, Dtype::kFp4E2m1, {3, 8}), ErrorCode::kBadCheckpoint,
                   {"(F4 [3, 8] or I8 [3, 4] is needed)"});
  }
}

TEST(CheckpointTest, Fp4WithAnOddLastExtentIsRefused) {
  const TempFolder folder;
  write_checkpoint(folder, {.files = {{"model.safetensors", {{"w", "I8", {2, 3}, "012345"}}}}});
  Checkpoint checkpoint = open_checkpoint(folder);
  EXPECT_TRUE(checkpoint.require("w", Dtype::kFp4E2m1, {2, 6}));
  expect_failure(checkpoint.require("w", Dtype::kFp4E2m1, {2, 7}), ErrorCode::kBadCheckpoint,
                 {"tensor w cannot be F4 [2, 7]: the last extent of FP4 must be even"});
  expect_failure(checkpoint.require("w", Dtype::kFp4E2m1, {}), ErrorCode::kBadCheckpoint,
                 {"F4 []"});
  write_checkpoint(folder, {.files = {{"model.safetensors", {{"w", "F4", {2, 3}, "012"}}}}});
  expect_failure(Checkpoint::open(folder.path()), ErrorCode::kBadCheckpoint,
                 {"tensor w: F4 [2, 3]: the last extent must be even"});
}

TEST(CheckpointTest, TensorsThatNobodyClaimedAreListed) {
  const TempFolder folder;
  write_checkpoint(folder, two_files());
  Checkpoint checkpoint = open_checkpoint(folder);
  ASSERT_TRUE(checkpoint.find("vision.w"));
  ASSERT_TRUE(checkpoint.require("layers.0.w", Dtype::kBf16, {2, 4}));
  ASSERT_TRUE(checkpoint.require("mtp.1.w", Dtype::kU8, {3}));
  ASSERT_FALSE(checkpoint.require("image_start", Dtype::kF32, {1}));
  EXPECT_THAT(checkpoint.unclaimed(),
              ElementsAre("embed.weight", "image_start", "mtp.0.w", "vision.w"));
  constexpr std::array<std::string_view, 4> kSkipped = {"mtp.", "vision.", "aligner.", "image_"};
  EXPECT_THAT(checkpoint.unclaimed(kSkipped), ElementsAre("embed.weight"));
  expect_failure(checkpoint.check_all_claimed(kSkipped), ErrorCode::kBadCheckpoint,
                 {"1 tensors have no place in the model: embed.weight"});
  EXPECT_EQ(checkpoint.describe_skipped(kSkipped),
            "skipped: mtp.* 1 tensors, 5 bytes; vision.* 1 tensors, 2 bytes; image_* 1 tensors, 1 "
            "bytes");
  ASSERT_TRUE(checkpoint.require("embed.weight", Dtype::kF32, {3}));
  EXPECT_TRUE(checkpoint.check_all_claimed(kSkipped));
  EXPECT_FALSE(checkpoint.check_all_claimed());
  EXPECT_EQ(checkpoint.describe_skipped(std::span(kSkipped).subspan(2, 1)), "");
}

TEST(CheckpointTest, TensorsStayValidWhenTheCheckpointIsMoved) {
  const TempFolder folder;
  write_checkpoint(folder, two_files());
  Checkpoint first = open_checkpoint(folder);
  const StoredTensor tensor = first.require("mtp.0.w", Dtype::kU8, {5}).value();
  const Checkpoint second = std::move(first);
  EXPECT_EQ(tensor.name(), "mtp.0.w");
  EXPECT_EQ(content_of(tensor), "01234");
  EXPECT_EQ(second.unclaimed().size(), 5U);
}

TEST(CheckpointTest, PartsOfATensorAreRead) {
  const TempFolder folder;
  write_checkpoint(folder, two_files());
  const Checkpoint checkpoint = open_checkpoint(folder);
  const StoredTensor tensor = checkpoint.find("layers.0.w").value();
  std::vector<std::byte> row(8);
  ASSERT_TRUE(tensor.read_range(8, row));
  EXPECT_EQ(std::to_integer<int>(row[0]), 8);
  std::vector<std::byte> whole(16);
  ASSERT_TRUE(tensor.read_into(whole));
  EXPECT_EQ(std::to_integer<int>(whole[15]), 15);
}

TEST(CheckpointTest, ReadErrorsNameTensorAndFile) {
  const TempFolder folder;
  write_checkpoint(folder, two_files());
  const Checkpoint checkpoint = open_checkpoint(folder);
  const fs::path path = folder / "model-1.safetensors";
  fs::resize_file(path, fs::file_size(path) - 1);
  expect_failure(checkpoint.find("mtp.1.w")->read(), ErrorCode::kIo,
                 {"tensor mtp.1.w", path.string(), "found 2"});
  EXPECT_TRUE(checkpoint.find("mtp.0.w")->read());
}

TEST(CheckpointTest, MissingPartsAreNamed) {
  const TempFolder folder;
  expect_failure(Checkpoint::open(folder / "nowhere"), ErrorCode::kNotFound,
                 {(folder / "nowhere").string(), "is not a folder"});
  expect_failure(Checkpoint::open(folder.path()), ErrorCode::kNotFound, {"config.json"});
  write_checkpoint(folder, two_files());
  fs::remove(folder / "model-2.safetensors");
  expect_failure(Checkpoint::open(folder.path()), ErrorCode::kNotFound,
                 {"missing: model-2.safetensors"});
  folder.write("model-2.safetensors",
               "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n");
  expect_failure(Checkpoint::open(folder.path()), ErrorCode::kBadCheckpoint,
                 {"model-2.safetensors", "Git LFS pointer"});
}

TEST(CheckpointTest, AnIndexThatDoesNotMatchItsFilesIsRefused) {
  const TempFolder folder;
  write_checkpoint(folder, two_files());
  folder.write("model-2.safetensors",
               test_support::safetensors_text({{"embed.weight", "F32", {1}, "0123"}}));
  expect_failure(Checkpoint::open(folder.path()), ErrorCode::kBadCheckpoint,
                 {"2 listed tensors are not there: image_start in model-2.safetensors"});
}

// The folder of the weights may be read-only: nothing is written beside them.
TEST(CheckpointTest, OpeningAndReadingWritesNothing) {
  const TempFolder folder;
  write_checkpoint(folder, two_files());
  const auto read_only = fs::perms::owner_read | fs::perms::owner_exec;
  fs::permissions(folder.path(), read_only);
  const auto written_before = fs::last_write_time(folder.path());
  const Checkpoint checkpoint = open_checkpoint(folder);
  for (const StoredTensor& tensor : checkpoint.tensors()) EXPECT_TRUE(tensor.read());
  EXPECT_EQ(fs::last_write_time(folder.path()), written_before);
  fs::permissions(folder.path(), fs::perms::owner_all);
}

}  // namespace
}  // namespace locket::checkpoint
