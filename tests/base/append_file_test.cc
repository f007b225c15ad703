#include "base/append_file.h"

#include <filesystem>
#include <gtest/gtest.h>
#include <string>

#include "base/direct_file.h"
#include "base/file.h"
#include "base/folder.h"

namespace locket {
namespace {

namespace fs = std::filesystem;

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

class AppendFileTest : public ::testing::Test {
 protected:
  AppendFileTest() : folder_(fs::path(::testing::TempDir()) / "locket_append_file_test") {
    fs::remove_all(folder_);
    EXPECT_TRUE(make_private_folder(folder_));
  }
  ~AppendFileTest() override { fs::remove_all(folder_); }
  fs::path folder_;
};

TEST_F(AppendFileTest, WhatIsAppendedIsThereAfterReopening) {
  const fs::path path = folder_ / "file";
  {
    auto file = AppendFile::create(path);
    ASSERT_TRUE(file);
    ASSERT_TRUE(file->append(bytes_of("one")));
    ASSERT_TRUE(file->sync());
  }
  auto file = AppendFile::open(path);
  ASSERT_TRUE(file);
  EXPECT_EQ(file->size(), 3);
  ASSERT_TRUE(file->append(bytes_of("two")));
  EXPECT_EQ(read_whole_file(path), "onetwo");
  ASSERT_TRUE(file->truncate(4));
  ASSERT_TRUE(file->append(bytes_of("!")));
  EXPECT_EQ(read_whole_file(path), "onet!");
  EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(AppendFileTest, ExistingFilesAreNotOverwrittenAndLinksNotFollowed) {
  ASSERT_TRUE(AppendFile::create(folder_ / "file"));
  EXPECT_FALSE(AppendFile::create(folder_ / "file"));
  fs::create_symlink(folder_ / "file", folder_ / "link");
  EXPECT_FALSE(AppendFile::open(folder_ / "link"));
  EXPECT_FALSE(DirectFile::open(folder_ / "link"));
  EXPECT_EQ(AppendFile::open(folder_ / "none").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(DirectFile::open(folder_ / "none").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(AppendFile::create(folder_ / "none" / "file").error().code, ErrorCode::kIo);
}

TEST_F(AppendFileTest, APunchedRangeReadsAsZerosAndTheRestStays) {
  auto file = AppendFile::create(folder_ / "file");
  ASSERT_TRUE(file);
  ASSERT_TRUE(file->append(bytes_of(std::string(64 * 1024, 'x'))));
  ASSERT_TRUE(file->sync());
  const std::uint64_t before = allocated_bytes_below(folder_);
  const Status punched = file->punch(8192, 32'768);
  if (!punched) {
    EXPECT_EQ(punched.error().code, ErrorCode::kUnsupported);
    GTEST_SKIP() << punched.error().message;
  }
  const auto content = read_whole_file(folder_ / "file");
  ASSERT_TRUE(content);
  EXPECT_EQ(content->size(), 64 * 1024);
  EXPECT_EQ(content->substr(8192, 32'768), std::string(32'768, '\0'));
  EXPECT_EQ(content->at(8191), 'x');
  EXPECT_EQ(content->at(40'960), 'x');
  EXPECT_LE(allocated_bytes_below(folder_) + 32'768, before);
}

TEST_F(AppendFileTest, DirectReadsGiveTheFilesBytesUpToItsEnd) {
  std::string content(3 * kDirectReadAlignment + 100, '\0');
  for (std::size_t i = 0; i < content.size(); ++i) content[i] = static_cast<char>(i % 251);
  ASSERT_TRUE(write_whole_file(folder_ / "file", bytes_of(content)));
  const auto file = DirectFile::open(folder_ / "file");
  ASSERT_TRUE(file);
  const DirectBuffer buffer(4 * kDirectReadAlignment);
  const auto all = file->read(0, buffer.bytes());
  ASSERT_TRUE(all);
  EXPECT_EQ(*all, content.size());
  EXPECT_TRUE(
      std::equal(bytes_of(content).begin(), bytes_of(content).end(), buffer.bytes().begin()));
  const auto end = file->read(3 * kDirectReadAlignment, buffer.bytes().first(kDirectReadAlignment));
  ASSERT_TRUE(end);
  EXPECT_EQ(*end, 100);
  EXPECT_EQ(buffer.bytes()[99], bytes_of(content).back());
  EXPECT_EQ(file->read(4 * kDirectReadAlignment, buffer.bytes().first(kDirectReadAlignment)), 0);
}

}  // namespace
}  // namespace locket
