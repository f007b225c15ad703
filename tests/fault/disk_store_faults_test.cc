// Errors of the file system under a store: no wrong answer, no crash, at most the turn that was
// being written is lost, and the next one is written when the trouble is over.
#include <array>
#include <atomic>
#include <cerrno>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <sys/mount.h>
#include <unistd.h>
#include <vector>

#include "base/file.h"
#include "cache/disk_store.h"
#include "cache/storage_faults.h"
#include "tests/support/stored_prefix.h"

namespace locket::cache {
namespace {

namespace fs = std::filesystem;
using test_support::make_turn;
using test_support::open_store;
using test_support::recall;
using test_support::Recalled;
using test_support::root_of;
using test_support::some_tokens;
using test_support::StoreFolder;

constexpr std::size_t kTurnTokens = 128 * 4;

// Lets the n-th operation of a kind fail, and those after it, until it is switched off.
struct Trouble {
  StorageOperation operation = StorageOperation::kAppend;
  int error = EIO;
  std::uint64_t bytes_done = 0;
  std::string only_files;  // names that contain this
  std::atomic<int> left = 1'000'000;
  std::atomic<int> failures = 0;

  std::shared_ptr<StorageFaults> faults() {
    auto made = std::make_shared<StorageFaults>();
    made->hook = [this](StorageOperation asked, std::string_view file, std::uint64_t) {
      if (asked != operation || file.find(only_files) == std::string_view::npos) {
        return StorageFault{};
      }
      if (left-- > 0) return StorageFault{};
      ++failures;
      return StorageFault{.error = error, .bytes_done = bytes_done};
    };
    return made;
  }
  void switch_off() { left = 1'000'000; }
};

std::vector<std::int32_t> first_tokens(const std::vector<std::int32_t>& tokens, std::size_t turns) {
  return {tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(turns * kTurnTokens)};
}

Status write_turns(DiskStore& store, const std::vector<std::int32_t>& tokens, std::size_t turns) {
  const auto part = first_tokens(tokens, turns);
  return store.write_turn(
      make_turn(root_of(store), part, {.snapshots = {static_cast<std::int64_t>(part.size())}})
          .write);
}

void expect_tokens(DiskStore& store, const std::vector<std::int32_t>& tokens, std::size_t turns,
                   const std::string& what) {
  const Recalled found = recall(store, root_of(store), tokens);
  EXPECT_EQ(found.wrong, 0) << what;
  EXPECT_EQ(found.damaged, 0) << what;
  EXPECT_EQ(found.tokens, static_cast<std::int64_t>(turns * kTurnTokens)) << what;
}

struct Case {
  StorageOperation operation;
  int error;
  std::uint64_t bytes_done;
  const char* only_files;
};

class DiskStoreFaultsTest : public ::testing::TestWithParam<Case> {};

TEST_P(DiskStoreFaultsTest, AFailedTurnIsNotThereAndTheNextOneIsWritten) {
  const Case& fault = GetParam();
  const auto tokens = some_tokens(kTurnTokens * 3, 1);
  int reached = 0;
  for (int nth = 0; nth < 12; ++nth) {
    const StoreFolder folder("faults");
    Trouble trouble;
    trouble.operation = fault.operation;
    trouble.error = fault.error;
    trouble.bytes_done = fault.bytes_done;
    trouble.only_files = fault.only_files;
    auto store = open_store(folder.path(), 0, trouble.faults());
    ASSERT_TRUE(store->is_writable());
    ASSERT_TRUE(write_turns(*store, tokens, 1));
    trouble.left = nth;
    const Status status = write_turns(*store, tokens, 2);
    const std::string what = "failure after " + std::to_string(nth);
    if (trouble.failures > 0) ++reached;
    EXPECT_EQ(status.has_value(), trouble.failures == 0) << what;
    trouble.switch_off();
    expect_tokens(*store, tokens, status ? 2 : 1, what);
    const Status again = write_turns(*store, tokens, 3);
    EXPECT_TRUE(again) << what << ": " << (again ? "" : again.error().message);
    expect_tokens(*store, tokens, 3, what);
    store.reset();
    expect_tokens(*open_store(folder.path()), tokens, 3, what);
  }
  EXPECT_GT(reached, 0);
}

INSTANTIATE_TEST_SUITE_P(Faults, DiskStoreFaultsTest,
                         ::testing::Values(Case{StorageOperation::kAppend, EIO, 0, ".seg"},
                                           Case{StorageOperation::kAppend, ENOSPC, 0, ".seg"},
                                           Case{StorageOperation::kAppend, ENOSPC, 100, ".seg"},
                                           Case{StorageOperation::kSync, EIO, 0, ".seg"},
                                           Case{StorageOperation::kAppend, EIO, 0, ".log"},
                                           Case{StorageOperation::kAppend, ENOSPC, 10, ".log"},
                                           Case{StorageOperation::kSync, EIO, 0, ".log"}));

TEST(DiskStoreTroubleTest, ReadsThatFailAreMisses) {
  const StoreFolder folder("read_faults");
  const auto tokens = some_tokens(kTurnTokens * 2, 2);
  ASSERT_TRUE(write_turns(*open_store(folder.path()), tokens, 2));
  for (const char* files : {".seg", ".sst"}) {
    Trouble trouble;
    trouble.operation = StorageOperation::kRead;
    trouble.only_files = files;
    auto store = open_store(folder.path(), 0, trouble.faults());
    trouble.left = 0;
    const Recalled found = recall(*store, root_of(*store), tokens);
    EXPECT_EQ(found.wrong, 0);
    EXPECT_EQ(found.tokens, 0) << files;
    EXPECT_GT(trouble.failures, 0) << files;
  }
}

TEST(DiskStoreTroubleTest, ARemovedFolderLosesWhatWasInItAndNoMore) {
  const StoreFolder folder("removed_folder");
  const auto tokens = some_tokens(kTurnTokens * 3, 3);
  auto store = open_store(folder.path());
  ASSERT_TRUE(write_turns(*store, tokens, 2));
  fs::remove_all(folder.path());
  const Recalled found = recall(*store, root_of(*store), tokens);
  EXPECT_EQ(found.wrong, 0);
  const Status status = write_turns(*store, tokens, 3);
  EXPECT_TRUE(status) << (status ? "" : status.error().message);
  expect_tokens(*store, tokens, 3, "written anew");
  store.reset();
  expect_tokens(*open_store(folder.path()), tokens, 3, "and there after a restart");
}

TEST(DiskStoreTroubleTest, AFullDiskLosesTheTurnAndNothingElse) {
  const StoreFolder folder("full_disk");
  if (::geteuid() != 0) GTEST_SKIP() << "mounting a small file system takes root";
  fs::create_directory(folder.path());
  if (::mount("none", folder.path().c_str(), "tmpfs", 0, "size=3m,mode=0700") != 0) {
    GTEST_SKIP() << "this machine allows no mount";
  }
  constexpr std::size_t kTurns = 120;
  const auto tokens = some_tokens(kTurnTokens * kTurns, 4);
  const fs::path foreign = folder.path() / "foreign";
  const std::vector<std::byte> filling(1'000'000);
  ASSERT_TRUE(write_whole_file(foreign, filling));
  std::size_t written = 0;
  auto store = open_store(folder.path() / "memory");
  Status status;
  while (written < kTurns && (status = write_turns(*store, tokens, written + 1))) ++written;
  ASSERT_FALSE(status) << "3 MB are not enough";
  EXPECT_EQ(status.error().code, ErrorCode::kIo);
  EXPECT_GT(written, 3);
  expect_tokens(*store, tokens, written, "full");
  EXPECT_FALSE(write_turns(*store, tokens, written + 10)) << "still full";
  expect_tokens(*store, tokens, written, "still full");
  store.reset();
  store = open_store(folder.path() / "memory");
  expect_tokens(*store, tokens, written, "full, after a restart");
  store.reset();
  fs::remove(foreign);
  store = open_store(folder.path() / "memory");
  EXPECT_TRUE(write_turns(*store, tokens, written + 1));
  expect_tokens(*store, tokens, written + 1, "room again");
  store.reset();
  ::umount(folder.path().c_str());
}

TEST(DiskStoreTroubleTest, AFolderThatCannotBeWrittenIsReadAllTheSame) {
  if (::geteuid() != 0) GTEST_SKIP() << "mounting a read-only file system takes root";
  const StoreFolder folder("read_only");
  fs::create_directory(folder.path());
  if (::mount("none", folder.path().c_str(), "tmpfs", 0, "size=8m,mode=0700") != 0) {
    GTEST_SKIP() << "this machine allows no mount";
  }
  const auto tokens = some_tokens(kTurnTokens * 2, 5);
  ASSERT_TRUE(write_turns(*open_store(folder.path() / "memory"), tokens, 2));
  ASSERT_EQ(::mount("none", folder.path().c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY, ""), 0);
  {
    auto store = open_store(folder.path() / "memory");
    EXPECT_FALSE(store->is_writable());
    EXPECT_THAT(store->read_only_reason(), ::testing::HasSubstr("Read-only"));
    expect_tokens(*store, tokens, 2, "read only");
  }
  ::umount(folder.path().c_str());
}

}  // namespace
}  // namespace locket::cache
