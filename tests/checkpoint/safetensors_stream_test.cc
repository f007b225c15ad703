#include "checkpoint/safetensors_stream.h"

#include <filesystem>
#include <gtest/gtest.h>

#include "base/file.h"
#include "checkpoint/safetensors_writer.h"
#include "tests/checkpoint/expect_failure.h"
#include "tests/support/checkpoint_files.h"

namespace locket::checkpoint {
namespace {

using numerics::Dtype;
using test_support::TempFolder;

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

TEST(SafetensorsStreamTest, WritesTheSameFileAsTheWriterInOneGo) {
  const TempFolder folder;
  const std::string first = test_support::counting_bytes(24);
  const std::string second = test_support::counting_bytes(1'000);
  const std::map<std::string, std::string> metadata = {{"format", "x"}, {"k", "\xC3\xA4"}};
  ASSERT_TRUE(write_safetensors(folder / "whole",
                                {{{"a", {Dtype::kI64, {3}, bytes_of(first)}},
                                  {"empty", {Dtype::kU8, {0}, {}}},
                                  {"b", {Dtype::kU8, {10, 100}, bytes_of(second)}}}},
                                metadata));
  const std::vector<PlannedTensor> plan = {
      {"a", Dtype::kI64, {3}}, {"empty", Dtype::kU8, {0}}, {"b", Dtype::kU8, {10, 100}}};
  auto stream = SafetensorsStream::create(folder / "streamed", plan, metadata);
  ASSERT_TRUE(stream) << stream.error().message;
  // Pieces need not end where tensors do.
  const std::string data = first + second;
  for (std::size_t at = 0; at < data.size(); at += 100) {
    ASSERT_TRUE(stream->append(bytes_of(data.substr(at, 100))));
    EXPECT_FALSE(std::filesystem::exists(folder / "streamed")) << "not before it is whole";
  }
  ASSERT_TRUE(stream->finish());
  EXPECT_EQ(read_whole_file(folder / "streamed").value(),
            read_whole_file(folder / "whole").value());
  EXPECT_FALSE(std::filesystem::exists(folder / "streamed.part"));
}

TEST(SafetensorsStreamTest, AFileThatIsNotFinishedLeavesNothingAndChangesNothing) {
  const TempFolder folder;
  folder.write("old", "old content");
  folder.write("old.part", "of a run that was killed");
  const std::vector<PlannedTensor> plan = {{"a", Dtype::kU8, {10}}};
  {
    auto stream = SafetensorsStream::create(folder / "old", plan, {});
    ASSERT_TRUE(stream) << stream.error().message;
    ASSERT_TRUE(stream->append(bytes_of("12345")));
  }
  EXPECT_EQ(read_whole_file(folder / "old").value(), "old content");
  EXPECT_FALSE(std::filesystem::exists(folder / "old.part"));
}

TEST(SafetensorsStreamTest, WrongTensorsAndPlacesAreRefused) {
  const TempFolder folder;
  const auto create = [&folder](std::vector<PlannedTensor> plan) {
    return SafetensorsStream::create(folder / "wrong", plan, {});
  };
  expect_failure(create({{"t", Dtype::kU8, {1}}, {"t", Dtype::kU8, {1}}}), ErrorCode::kBadRequest,
                 {"tensor name t is"});
  expect_failure(create({{"t", Dtype::kU8, {-1}}}), ErrorCode::kBadRequest, {"negative"});
  expect_failure(create({{"t", Dtype::kI64, {std::int64_t{1} << 61}}}), ErrorCode::kBadRequest,
                 {"tensor t: I64 [2305843009213693952]"});
  constexpr std::int64_t kLarge = std::int64_t{1} << 62;
  expect_failure(
      create({{"t", Dtype::kU8, {kLarge}}, {"u", Dtype::kU8, {kLarge}}, {"v", Dtype::kI8, {1}}}),
      ErrorCode::kBadRequest, {"tensor u: too many bytes"});
  expect_failure(SafetensorsStream::create(folder / "no/folder", {}, {}), ErrorCode::kIo,
                 {"no/folder"});
  EXPECT_FALSE(std::filesystem::exists(folder / "wrong"));
}

}  // namespace
}  // namespace locket::checkpoint
