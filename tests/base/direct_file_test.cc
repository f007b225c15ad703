#include "base/direct_file.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace locket {
namespace {

class DirectFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = std::filesystem::path(::testing::TempDir()) / "locket_direct_file";
    std::filesystem::remove(path_);
    for (std::size_t i = 0; i < 20'000; ++i) content_.push_back(static_cast<char>(i * 31 % 251));
    std::ofstream(path_, std::ios::binary) << content_;
  }
  void TearDown() override { std::filesystem::remove(path_); }

  bool is_content(std::span<const std::byte> bytes, std::size_t offset) const {
    return std::ranges::equal(bytes,
                              std::as_bytes(std::span(content_).subspan(offset, bytes.size())));
  }

  std::filesystem::path path_;
  std::string content_;
};

TEST_F(DirectFileTest, ReadsUpToTheEndOfTheFile) {
  const auto file = DirectFile::open(path_);
  ASSERT_TRUE(file) << file.error().message;
  const DirectBuffer buffer(8'192);
  EXPECT_EQ(file->read(4'096, buffer.bytes()).value(), 8'192U);
  EXPECT_TRUE(is_content(buffer.bytes(), 4'096));
  EXPECT_EQ(file->read(16'384, buffer.bytes()).value(), 20'000U - 16'384U);
  EXPECT_TRUE(is_content(buffer.bytes().first(20'000 - 16'384), 16'384));
}

TEST_F(DirectFileTest, ScattersConsecutiveBytes) {
  const auto file = DirectFile::open(path_);
  ASSERT_TRUE(file) << file.error().message;
  if (!file->is_direct()) GTEST_SKIP() << "this file system has no direct reads";
  const DirectBuffer buffer(16'384);
  const std::array targets = {buffer.bytes().subspan(8'192, 1'024), buffer.bytes().first(512),
                              buffer.bytes().subspan(4'096, 2'560)};
  const Status status = file->read_scattered(1'536, targets);
  if (!status) GTEST_SKIP() << "this device wants larger alignments: " << status.error().message;
  EXPECT_TRUE(is_content(targets[0], 1'536));
  EXPECT_TRUE(is_content(targets[1], 1'536 + 1'024));
  EXPECT_TRUE(is_content(targets[2], 1'536 + 1'024 + 512));
  EXPECT_FALSE(file->read_scattered(19'456, targets)) << "the file ends before";
}

TEST_F(DirectFileTest, LinksAndFoldersAreRefused) {
  const std::filesystem::path link = path_.string() + "_link";
  std::filesystem::remove(link);
  std::filesystem::create_symlink(path_, link);
  EXPECT_FALSE(DirectFile::open(link));
  std::filesystem::remove(link);
  EXPECT_FALSE(DirectFile::open(::testing::TempDir()));
  const auto missing = DirectFile::open(path_.string() + "_missing");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace locket
