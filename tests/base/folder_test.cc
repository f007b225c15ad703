#include "base/folder.h"

#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <unistd.h>

#include "base/append_file.h"
#include "base/file.h"

namespace locket {
namespace {

namespace fs = std::filesystem;

class FolderTest : public ::testing::Test {
 protected:
  FolderTest()
      : folder_(fs::path(::testing::TempDir()) /
                ("locket_folder_" +
                 std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()))) {
    fs::remove_all(folder_);
  }
  ~FolderTest() override { fs::remove_all(folder_); }
  fs::path folder_;
};

TEST_F(FolderTest, AMadeFolderIsForItsOwnerOnly) {
  ASSERT_TRUE(make_private_folder(folder_ / "a" / "b"));
  ASSERT_TRUE(make_private_folder(folder_ / "a" / "b")) << "once more changes nothing";
  EXPECT_EQ(fs::status(folder_ / "a" / "b").permissions(), fs::perms::owner_all);
  EXPECT_TRUE(check_private_folder(folder_ / "a" / "b"));
}

TEST_F(FolderTest, LinksFilesAndOpenFoldersAreRefused) {
  ASSERT_TRUE(make_private_folder(folder_));
  ASSERT_TRUE(make_private_folder(folder_ / "real"));
  fs::create_directory_symlink(folder_ / "real", folder_ / "link");
  ASSERT_TRUE(write_whole_file(folder_ / "file", {}));
  fs::create_directory(folder_ / "open");
  fs::permissions(folder_ / "open", fs::perms::owner_all | fs::perms::others_read);
  for (const char* name : {"link", "file", "open"}) {
    const Status status = check_private_folder(folder_ / name);
    ASSERT_FALSE(status) << name;
    EXPECT_EQ(status.error().code, ErrorCode::kBadMemory);
  }
  EXPECT_EQ(check_private_folder(folder_ / "none").error().code, ErrorCode::kIo);
}

TEST_F(FolderTest, AFileIsCreatedOnceWithItsWholeContent) {
  ASSERT_TRUE(make_private_folder(folder_));
  EXPECT_EQ(create_file_once(folder_ / "secret", "first"), true);
  EXPECT_EQ(create_file_once(folder_ / "secret", "second"), false);
  EXPECT_EQ(read_private_file(folder_ / "secret", 100), "first");
  EXPECT_EQ(list_files(folder_)->size(), 1) << "nothing is left beside it";
  EXPECT_EQ(read_private_file(folder_ / "secret", 4).error().code, ErrorCode::kBadMemory);
  EXPECT_EQ(read_private_file(folder_ / "none", 4).error().code, ErrorCode::kNotFound);
}

TEST_F(FolderTest, APrivateFileIsNotReadThroughALinkNorIfOthersCanReadIt) {
  ASSERT_TRUE(make_private_folder(folder_));
  ASSERT_TRUE(create_file_once(folder_ / "real", "text"));
  fs::create_symlink(folder_ / "real", folder_ / "link");
  EXPECT_EQ(read_private_file(folder_ / "link", 100).error().code, ErrorCode::kBadMemory);
  fs::permissions(folder_ / "real", fs::perms::others_read, fs::perm_options::add);
  EXPECT_EQ(read_private_file(folder_ / "real", 100).error().code, ErrorCode::kBadMemory);
}

TEST_F(FolderTest, FilesAreListedByNameAndTheirBlocksCounted) {
  ASSERT_TRUE(make_private_folder(folder_));
  ASSERT_TRUE(make_private_folder(folder_ / "below"));
  const std::string content(100'000, 'x');
  const auto bytes = std::as_bytes(std::span(content));
  ASSERT_TRUE(write_whole_file(folder_ / "b", bytes));
  ASSERT_TRUE(write_whole_file(folder_ / "a", bytes.first(10)));
  ASSERT_TRUE(write_whole_file(folder_ / "below" / "c", bytes));
  const auto files = list_files(folder_);
  ASSERT_TRUE(files);
  ASSERT_EQ(files->size(), 2);
  EXPECT_EQ(files->at(0).name, "a");
  EXPECT_EQ(files->at(1).size_bytes, 100'000);
  EXPECT_GE(allocated_bytes_below(folder_), 200'000);
  ASSERT_TRUE(remove_file(folder_ / "b"));
  ASSERT_TRUE(remove_file(folder_ / "b")) << "not there is no error";
  EXPECT_LT(allocated_bytes_below(folder_), 200'000);
  EXPECT_FALSE(list_files(folder_ / "none"));
}

TEST_F(FolderTest, APrivateFileIsReplacedAsAWhole) {
  ASSERT_TRUE(make_private_folder(folder_));
  const fs::path path = folder_ / "file";
  ASSERT_TRUE(replace_private_file(path, "one"));
  EXPECT_EQ(read_private_file(path, 100), "one");
  ASSERT_TRUE(replace_private_file(path, ""));
  EXPECT_EQ(read_private_file(path, 100), "");
  EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(list_files(folder_)->size(), 1) << "nothing is left beside it";
}

TEST_F(FolderTest, AnUnfinishedFileIsNoObstacleToItsReplacementAndNotWrittenThrough) {
  ASSERT_TRUE(make_private_folder(folder_));
  const std::string outside = "outside";
  ASSERT_TRUE(write_whole_file(folder_ / "outside", std::as_bytes(std::span(outside))));
  fs::create_symlink(folder_ / "outside", folder_ / "file.part");
  ASSERT_TRUE(replace_private_file(folder_ / "file", "new"));
  EXPECT_EQ(read_private_file(folder_ / "file", 100), "new");
  EXPECT_EQ(read_whole_file(folder_ / "outside"), outside);
}

TEST_F(FolderTest, WhatCannotBeReplacedStaysWhatItWas) {
  ASSERT_TRUE(make_private_folder(folder_));
  ASSERT_TRUE(make_private_folder(folder_ / "file"));
  const Status status = replace_private_file(folder_ / "file", "new");
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, ::testing::HasSubstr("file"));
  EXPECT_TRUE(fs::is_directory(folder_ / "file"));
  EXPECT_FALSE(fs::exists(folder_ / "file.part"));
}

TEST_F(FolderTest, ALockHasOneHolderAndTheOtherOneIsTold) {
  ASSERT_TRUE(make_private_folder(folder_));
  {
    const auto lock = FolderLock::take(folder_ / "lock");
    ASSERT_TRUE(lock);
    const auto second = FolderLock::take(folder_ / "lock");
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, ErrorCode::kOverloaded);
    const std::string named = "is locked by process " + std::to_string(::getpid());
    EXPECT_THAT(second.error().message, ::testing::EndsWith(named));
  }
  EXPECT_TRUE(FolderLock::take(folder_ / "lock"));
}

TEST_F(FolderTest, WhateverALockFileHoldsIsOnlyText) {
  ASSERT_TRUE(make_private_folder(folder_));
  const auto lock = FolderLock::take(folder_ / "lock");
  ASSERT_TRUE(lock);
  fs::resize_file(folder_ / "lock", 0);
  auto file = AppendFile::open(folder_ / "lock");
  ASSERT_TRUE(file);
  const std::string text = "rm -rf /";
  ASSERT_TRUE(file->append(std::as_bytes(std::span(text))));
  const auto second = FolderLock::take(folder_ / "lock");
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message, ::testing::EndsWith("is locked by another process"));
}

TEST_F(FolderTest, AFolderThatWasReplacedHasAnotherIdentity) {
  ASSERT_TRUE(make_private_folder(folder_));
  const FolderIdentity before = folder_identity(folder_);
  EXPECT_EQ(folder_identity(folder_), before);
  fs::rename(folder_, folder_.string() + "_old");
  EXPECT_EQ(folder_identity(folder_), FolderIdentity{});
  ASSERT_TRUE(make_private_folder(folder_));
  EXPECT_NE(folder_identity(folder_), before);
  fs::remove_all(folder_.string() + "_old");
}

}  // namespace
}  // namespace locket
