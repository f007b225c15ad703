#include "base/file.h"

#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "tests/support/checkpoint_files.h"

namespace locket {
namespace {

namespace fs = std::filesystem;
using test_support::counting_bytes;
using test_support::TempFolder;
using ::testing::HasSubstr;

Result<std::string> read_part(const File& file, std::uint64_t offset, std::size_t count) {
  std::string part(count, '\0');
  LOCKET_TRY_STATUS(file.read_at(offset, std::as_writable_bytes(std::span(part))));
  return part;
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  return names;
}

TEST(FileTest, ReadsEveryPartOfAFileWithShortReadCalls) {
  const TempFolder folder;
  const std::string content = counting_bytes(100);
  File file = File::open_for_reading(folder.write("bytes", content)).value();
  EXPECT_EQ(file.size(), 100U);
  for (const std::size_t limit : {1, 7, 99, 100, 4096}) {
    file.limit_read_call_bytes(limit);
    for (std::size_t offset = 0; offset <= 100; ++offset) {
      const std::size_t count = 100 - offset;
      EXPECT_EQ(read_part(file, offset, count).value(), content.substr(offset)) << limit;
      EXPECT_EQ(read_part(file, offset, count / 2).value(), content.substr(offset, count / 2));
    }
  }
}

TEST(FileTest, ReadingNothingSucceedsEvenAtTheEnd) {
  const TempFolder folder;
  const File file = File::open_for_reading(folder.write("empty", "")).value();
  EXPECT_EQ(file.size(), 0U);
  EXPECT_EQ(read_part(file, 0, 0).value(), "");
  EXPECT_EQ(read_part(file, 1000, 0).value(), "");
}

TEST(FileTest, AReadPastTheEndNamesPathOffsetWantedAndFound) {
  const TempFolder folder;
  File file = File::open_for_reading(folder.write("short", counting_bytes(20))).value();
  file.limit_read_call_bytes(7);
  const Result<std::string> part = read_part(file, 5, 16);
  ASSERT_FALSE(part);
  EXPECT_EQ(part.error().code, ErrorCode::kIo);
  EXPECT_THAT(part.error().message, HasSubstr((folder / "short").string()));
  EXPECT_THAT(part.error().message, HasSubstr("ends at byte 20"));
  EXPECT_THAT(part.error().message, HasSubstr("wanted 16 bytes from byte 5 on, found 15"));
}

TEST(FileTest, AFileThatShrinksUnderALiveHandleIsReported) {
  const TempFolder folder;
  const fs::path path = folder.write("shrinking", counting_bytes(1000));
  const File file = File::open_for_reading(path).value();
  fs::resize_file(path, 300);
  EXPECT_EQ(read_part(file, 0, 300).value(), counting_bytes(300));
  const Result<std::string> part = read_part(file, 100, 900);
  ASSERT_FALSE(part);
  EXPECT_THAT(part.error().message, HasSubstr("ends at byte 300"));
  EXPECT_THAT(part.error().message, HasSubstr("found 200"));
}

TEST(FileTest, MovingKeepsTheHandle) {
  const TempFolder folder;
  File first = File::open_for_reading(folder.write("one", "first file")).value();
  File second = File::open_for_reading(folder.write("two", "second file")).value();
  second = std::move(first);
  const File third = std::move(second);
  EXPECT_EQ(read_part(third, 0, 10).value(), "first file");
  EXPECT_EQ(third.path(), folder / "one");
}

TEST(FileTest, AMissingFileIsNotFoundAndAFolderIsNoFile) {
  const TempFolder folder;
  const Result<File> missing = File::open_for_reading(folder / "missing");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(missing.error().message, HasSubstr((folder / "missing").string()));
  const Result<File> no_file = File::open_for_reading(folder.path());
  ASSERT_FALSE(no_file);
  EXPECT_EQ(no_file.error().code, ErrorCode::kIo);
  EXPECT_THAT(no_file.error().message, HasSubstr("not a regular file"));
}

TEST(FileTest, ReadsAWholeFileUpToALimit) {
  const TempFolder folder;
  const fs::path path = folder.write("whole", "0123456789");
  EXPECT_EQ(read_whole_file(path).value(), "0123456789");
  EXPECT_EQ(read_whole_file(path, 10).value(), "0123456789");
  const Result<std::string> limited = read_whole_file(path, 9);
  ASSERT_FALSE(limited);
  EXPECT_EQ(limited.error().code, ErrorCode::kIo);
  EXPECT_THAT(limited.error().message, HasSubstr("has 10 bytes, more than the 9 allowed"));
}

TEST(FileTest, AWholeWriteReplacesTheFileAndLeavesNothingElse) {
  const TempFolder folder;
  const fs::path path = folder.write("target", "an older and longer content");
  const std::string content("new\0content", 11);
  ASSERT_TRUE(write_whole_file(path, std::as_bytes(std::span(content))));
  EXPECT_EQ(read_whole_file(path).value(), content);
  ASSERT_TRUE(write_whole_file(path, {}));
  EXPECT_EQ(read_whole_file(path).value(), "");
  EXPECT_THAT(names_in(folder.path()), ::testing::ElementsAre("target"));
}

TEST(FileTest, AFailedWriteKeepsTheOldFileAndLeavesNothingElse) {
  const TempFolder folder;
  const std::string content = "content";
  const Status no_folder =
      write_whole_file(folder / "missing/target", std::as_bytes(std::span(content)));
  ASSERT_FALSE(no_folder);
  EXPECT_EQ(no_folder.error().code, ErrorCode::kIo);
  // A rename cannot put a file in the place of a folder.
  fs::create_directory(folder / "taken");
  const Status taken = write_whole_file(folder / "taken", std::as_bytes(std::span(content)));
  ASSERT_FALSE(taken);
  EXPECT_THAT(taken.error().message, HasSubstr("cannot rename"));
  EXPECT_THAT(names_in(folder.path()), ::testing::ElementsAre("taken"));
}

}  // namespace
}  // namespace locket
