#include "checkpoint/safetensors.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
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
using test_support::counting_bytes;
using test_support::FileTensor;
using test_support::frame_safetensors;
using test_support::safetensors_text;
using test_support::TempFolder;

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(SafetensorsTest, EveryDtypeLoadsWithItsNameAndSize) {
  const TempFolder folder;
  std::vector<FileTensor> tensors;
  for (int code = 0; code < static_cast<int>(Dtype::kCount); ++code) {
    const auto dtype = static_cast<Dtype>(code);
    const std::string name(numerics::dtype_name(dtype));
    tensors.push_back(
        {"t." + name, name, {3, 4}, counting_bytes(12 * numerics::bits_of(dtype) / 8)});
  }
  const auto file = SafetensorsFile::open(folder.write("all", safetensors_text(tensors)));
  ASSERT_TRUE(file) << file.error().message;
  ASSERT_EQ(file->tensors().size(), static_cast<std::size_t>(Dtype::kCount));
  for (int code = 0; code < static_cast<int>(Dtype::kCount); ++code) {
    const auto dtype = static_cast<Dtype>(code);
    const TensorEntry* entry = file->find("t." + std::string(numerics::dtype_name(dtype)));
    ASSERT_NE(entry, nullptr);
    EXPECT_EQ(entry->dtype, dtype);
    EXPECT_EQ(entry->shape, (Shape{3, 4}));
    EXPECT_EQ(entry->byte_count, 12 * numerics::bits_of(dtype) / 8);
    EXPECT_EQ(text_of(file->read(*entry)->bytes()), counting_bytes(entry->byte_count));
  }
}

TEST(SafetensorsTest, AnUnknownDtypeIsNamedWithItsTensor) {
  const TempFolder folder;
  const fs::path path = folder.write(
      "odd", safetensors_text({{"fine", "F32", {1}, "0123"}, {"strange", "F6_E2M3", {4}, "012"}}));
  expect_failure(SafetensorsFile::open(path), ErrorCode::kUnsupported,
                 {path.string(), "unsupported dtype F6_E2M3 in tensor strange"});
}

TEST(SafetensorsTest, ReadsWholeTensorsAndByteRanges) {
  const TempFolder folder;
  const std::string first = counting_bytes(30);
  const std::string second = "the second tensor!";
  const fs::path path = folder.write(
      "two", safetensors_text({{"b", "U8", {5, 6}, first}, {"a", "I8", {18}, second}}));
  const auto file = SafetensorsFile::open(path);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->path(), path);
  EXPECT_EQ(file->tensors()[0].name, "b");
  EXPECT_EQ(file->tensors()[1].name, "a");
  EXPECT_EQ(file->tensors()[1].offset, fs::file_size(path) - second.size());
  const TensorEntry& entry = *file->find("a");
  EXPECT_EQ(text_of(file->read(entry)->bytes()), second);
  EXPECT_EQ(text_of(file->read(*file->find("b"))->bytes()), first);
  std::vector<std::byte> part(6);
  ASSERT_TRUE(file->read_range(entry, 4, part));
  EXPECT_EQ(text_of(part), "second");
  ASSERT_TRUE(file->read_range(entry, entry.byte_count, {}));
  std::vector<std::byte> whole(entry.byte_count);
  ASSERT_TRUE(file->read_into(entry, whole));
  EXPECT_EQ(text_of(whole), second);
}

TEST(SafetensorsTest, AReadOutsideTheTensorIsAFaultOfTheProgram) {
  const TempFolder folder;
  const auto file =
      SafetensorsFile::open(folder.write("t", safetensors_text({{"a", "U8", {4}, "0123"}})));
  ASSERT_TRUE(file);
  std::vector<std::byte> target(3);
  EXPECT_DEATH((void)file->read_range(*file->find("a"), 2, target), "first_byte");
  EXPECT_DEATH((void)file->read_into(*file->find("a"), target), "target.size");
}

TEST(SafetensorsTest, FindsOnlyNamesThatAreThere) {
  const TempFolder folder;
  const auto file = SafetensorsFile::open(
      folder.write("t", safetensors_text({{"b", "U8", {1}, "b"}, {"d", "U8", {1}, "d"}})));
  ASSERT_TRUE(file);
  for (const std::string_view name : {"a", "c", "e", "", "bb"}) {
    EXPECT_EQ(file->find(name), nullptr) << name;
  }
}

TEST(SafetensorsTest, MetadataIsKept) {
  const TempFolder folder;
  const fs::path path = folder.write(
      "m", safetensors_text({{"a", "U8", {1}, "a"}}, {{"format", "pt"}, {"quote\"d", "\u00e9\n"}}));
  const auto file = SafetensorsFile::open(path);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->tensors().size(), 1U);
  EXPECT_EQ(file->metadata(),
            (std::map<std::string, std::string>{{"format", "pt"}, {"quote\"d", "\u00e9\n"}}));
}

TEST(SafetensorsTest, AFileMayHoldNoTensorsEmptyTensorsAndScalars) {
  const TempFolder folder;
  const auto none = SafetensorsFile::open(folder.write("none", frame_safetensors("{}", "")));
  ASSERT_TRUE(none) << none.error().message;
  EXPECT_TRUE(none->tensors().empty());
  const auto some =
      SafetensorsFile::open(folder.write("some", safetensors_text({{"z.empty", "F32", {0, 7}, ""},
                                                                   {"scalar", "F32", {}, "0123"},
                                                                   {"empty", "F4", {3, 0}, ""}})));
  ASSERT_TRUE(some) << some.error().message;
  EXPECT_EQ(some->find("scalar")->byte_count, 4U);
  EXPECT_EQ(some->find("z.empty")->byte_count, 0U);
  EXPECT_EQ(some->read(*some->find("empty"))->size(), 0U);
}

TEST(SafetensorsTest, TheHeaderMayListTensorsInAnyOrderAndEndInSpaces) {
  const TempFolder folder;
  const std::string header = R"({"late":{"data_offsets":[2,4],"shape":[2],"dtype":"U8"},)"
                             R"("early":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}      )";
  const auto file = SafetensorsFile::open(folder.write("t", frame_safetensors(header, "eell")));
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(text_of(file->read(*file->find("late"))->bytes()), "ll");
  EXPECT_EQ(file->tensors()[0].name, "early");
}

TEST(SafetensorsTest, AFileThatShrinksIsReportedWithTensorAndOffset) {
  const TempFolder folder;
  const fs::path path = folder.write(
      "shrinking", safetensors_text({{"big.table", "U8", {500}, counting_bytes(500)}}));
  const auto file = SafetensorsFile::open(path);
  ASSERT_TRUE(file);
  const auto full = fs::file_size(path);
  fs::resize_file(path, full - 100);
  const TensorEntry& entry = *file->find("big.table");
  expect_failure(file->read(entry), ErrorCode::kIo,
                 {"tensor big.table", path.string(), fmt::format("ends at byte {}", full - 100)});
  std::vector<std::byte> part(400);
  EXPECT_TRUE(file->read_range(entry, 0, part));
}

TEST(SafetensorsTest, EntriesKeepTheirPlaceWhenTheFileIsMoved) {
  const TempFolder folder;
  auto first = SafetensorsFile::open(folder.write("t", safetensors_text({{"a", "U8", {1}, "a"}})));
  ASSERT_TRUE(first);
  const TensorEntry* entry = first->find("a");
  const SafetensorsFile second = std::move(*first);
  EXPECT_EQ(second.find("a"), entry);
  EXPECT_EQ(text_of(second.read(*entry)->bytes()), "a");
}

// 200 000 tensors in a header of more than 100 million bytes: there is no limit but the file.
TEST(SafetensorsTest, AHugeValidHeaderLoads) {
  constexpr std::size_t kCount = 200'000;
  const TempFolder folder;
  const std::string filler(200, 'x');
  std::string header = "{";
  for (std::size_t index = 0; index < kCount; ++index) {
    header += fmt::format(R"({}"{}.{}":{{"dtype":"U8","shape":[1],"data_offsets":[{},{}]}})",
                          index == 0 ? "" : ",", filler, index, index, index + 1);
  }
  header += "}";
  header.resize(std::max<std::size_t>(header.size(), 101'000'000), ' ');
  const auto file = SafetensorsFile::open(
      folder.write("huge", frame_safetensors(header, counting_bytes(kCount))));
  ASSERT_TRUE(file) << file.error().message;
  ASSERT_EQ(file->tensors().size(), kCount);
  const TensorEntry* entry = file->find(filler + ".123456");
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(std::to_integer<int>(file->read(*entry)->bytes()[0]), 123456 % 251);
}

}  // namespace
}  // namespace locket::checkpoint
