#include "checkpoint/safetensors_writer.h"

#include <filesystem>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "checkpoint/safetensors.h"
#include "tests/checkpoint/expect_failure.h"
#include "tests/support/checkpoint_files.h"

namespace locket::checkpoint {
namespace {

using numerics::Dtype;
using test_support::counting_bytes;
using test_support::TempFolder;

NamedTensor named(std::string name, Dtype dtype, tensor::Shape shape, std::string_view bytes) {
  return {std::move(name), {dtype, std::move(shape), std::as_bytes(std::span(bytes))}};
}

TEST(SafetensorsWriterTest, WhatIsWrittenReadsBack) {
  const TempFolder folder;
  const std::string bytes = counting_bytes(64);
  const std::vector<NamedTensor> tensors = {
      named("step 1/\"hidden\"", Dtype::kF32, {4, 4}, bytes),
      named("empty", Dtype::kBf16, {0, 3}, ""),
      named("scalar", Dtype::kI64, {}, std::string_view(bytes).substr(0, 8)),
      named("codes", Dtype::kFp4E2m1, {2, 6}, std::string_view(bytes).substr(8, 6)),
  };
  const std::map<std::string, std::string> metadata = {{"mode", "wide"}, {"\u00fc", "\\"}};
  ASSERT_TRUE(write_safetensors(folder / "trace", tensors, metadata));
  const auto file = SafetensorsFile::open(folder / "trace");
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->metadata(), metadata);
  ASSERT_EQ(file->tensors().size(), tensors.size());
  EXPECT_EQ(file->find("step 1/\"hidden\"")->offset % 64, 0U);
  for (const NamedTensor& tensor : tensors) {
    const TensorEntry* entry = file->find(tensor.name);
    ASSERT_NE(entry, nullptr) << tensor.name;
    EXPECT_EQ(entry->dtype, tensor.view.dtype);
    EXPECT_EQ(entry->shape, tensor.view.shape);
    EXPECT_TRUE(std::ranges::equal(file->read(*entry)->bytes(), tensor.view.bytes));
  }
}

TEST(SafetensorsWriterTest, NoTensorsMakeAValidFile) {
  const TempFolder folder;
  ASSERT_TRUE(write_safetensors(folder / "none", {}));
  const auto file = SafetensorsFile::open(folder / "none");
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_TRUE(file->tensors().empty());
  EXPECT_TRUE(file->metadata().empty());
}

TEST(SafetensorsWriterTest, WrongTensorsAreRefusedAndNothingIsWritten) {
  const TempFolder folder;
  struct WrongCase {
    std::vector<NamedTensor> tensors;
    std::string reason;
  };
  const std::vector<WrongCase> cases = {
      {{named("t", Dtype::kF32, {2}, "1234567")}, "tensor t: F32 [2] does not fit 7 bytes"},
      {{named("t", Dtype::kFp4E2m1, {2, 3}, "123")}, "F4 [2, 3] does not fit 3 bytes"},
      {{named("t", Dtype::kU8, {-1}, "")}, "negative"},
      {{named("t", Dtype::kU8, {1}, "1"), named("t", Dtype::kU8, {1}, "1")}, "tensor name t is"},
      {{named("__metadata__", Dtype::kU8, {1}, "1")}, "tensor name __metadata__ is reserved"},
      {{named("\xff", Dtype::kU8, {1}, "1")}, "not UTF-8"},
  };
  for (const WrongCase& wrong : cases) {
    expect_failure(write_safetensors(folder / "wrong", wrong.tensors), ErrorCode::kBadRequest,
                   {wrong.reason});
    EXPECT_FALSE(std::filesystem::exists(folder / "wrong"));
  }
  expect_failure(write_safetensors(folder / "wrong", {}, {{"k", "\xc3"}}), ErrorCode::kBadRequest,
                 {"not UTF-8"});
  expect_failure(write_safetensors(folder / "no/folder", {}), ErrorCode::kIo, {"no/folder"});
}

}  // namespace
}  // namespace locket::checkpoint
