// B20: a process that writes is killed at any moment. Afterwards only whole turns are there, every
// byte that is given out is right, and at most the turn that was being written is lost.
#include <array>
#include <csignal>
#include <cstdlib>
#include <gtest/gtest.h>
#include <random>
#include <spawn.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "base/check.h"
#include "cache/disk_store.h"
#include "tests/support/stored_prefix.h"

extern char** environ;

namespace locket::cache {
namespace {

using test_support::make_turn;
using test_support::open_store;
using test_support::recall;
using test_support::Recalled;
using test_support::root_of;
using test_support::some_tokens;
using test_support::StoreFolder;

constexpr std::size_t kTurnTokens = 128 * 3;
constexpr std::size_t kMostTurns = 600;
constexpr std::size_t kTurnsOfALife = 10;
constexpr int kKills = 50;
constexpr int kFewKills = 10;
constexpr const char* kFolderVariable = "LOCKET_KILL_TEST_FOLDER";

const std::vector<std::int32_t>& all_tokens() {
  static const std::vector<std::int32_t> tokens = some_tokens(kTurnTokens * kMostTurns, 77);
  return tokens;
}

std::vector<std::int32_t> first_tokens(std::size_t count) {
  return {all_tokens().begin(), all_tokens().begin() + static_cast<std::ptrdiff_t>(count)};
}

// The child: goes on where the folder ends, and says on its output when a turn is on disk.
TEST(DiskStoreKillTest, DISABLED_Writer) {
  const char* folder = std::getenv(kFolderVariable);
  ASSERT_NE(folder, nullptr);
  auto store = open_store(folder);
  LOCKET_CHECK(store->is_writable());
  const RootLabel root = root_of(*store);
  const Recalled found = recall(*store, root, all_tokens());
  LOCKET_CHECK(found.wrong == 0);
  const std::size_t first = static_cast<std::size_t>(found.tokens) / kTurnTokens;
  for (std::size_t turn = first; turn < first + kTurnsOfALife; ++turn) {
    const auto tokens = first_tokens((turn + 1) * kTurnTokens);
    const auto write = make_turn(root, tokens,
                                 {.from_page = turn * kTurnTokens / 128,
                                  .snapshots = {static_cast<std::int64_t>(tokens.size())}});
    LOCKET_CHECK(store->write_turn(write.write).has_value());
    const auto done = static_cast<unsigned char>(1);
    LOCKET_CHECK(::write(STDOUT_FILENO, &done, 1) == 1);
  }
  while (true) ::pause();
}

class Child {
 public:
  explicit Child(const std::string& folder) {
    std::array<int, 2> ends = {};
    LOCKET_CHECK(::pipe(ends.data()) == 0);
    output_ = ends[0];
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    std::string filter = "--gtest_filter=DiskStoreKillTest.DISABLED_Writer";
    std::string disabled = "--gtest_also_run_disabled_tests";
    std::string quiet = "--gtest_brief=1";
    std::string name = "child";
    std::vector<char*> arguments = {name.data(), filter.data(), disabled.data(), quiet.data(),
                                    nullptr};
    ::setenv(kFolderVariable, folder.c_str(), 1);
    LOCKET_CHECK(::posix_spawn(&process_, "/proc/self/exe", &actions, nullptr, arguments.data(),
                               environ) == 0);
    posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() { ::close(output_); }

  // Waits for the next committed turn; false if the child has ended.
  bool wait_for_turn() const {
    while (true) {
      char byte = 0;
      const ssize_t got = ::read(output_, &byte, 1);
      if (got <= 0) return false;
      if (byte == 1) return true;  // the test framework prints other bytes
    }
  }
  // Kills it; the turns that it committed and that were not waited for.
  std::size_t kill_and_count() const {
    ::kill(process_, SIGKILL);
    std::size_t turns = 0;
    while (wait_for_turn()) ++turns;
    int status = 0;
    ::waitpid(process_, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status)) << "it ended by itself: " << status;
    return turns;
  }

 private:
  pid_t process_ = -1;
  int output_ = -1;
};

// How long a child lives after its last awaited turn, as work that takes some time.
void spin(std::size_t rounds) {
  volatile std::size_t sink = 0;
  for (std::size_t i = 0; i < rounds; ++i) sink = sink + i;
}

TEST(DiskStoreKillTest, B20AfterAnyKillOnlyWholeTurnsAreThereAndAllOfThem) {
  const StoreFolder folder("kill");
  open_store(folder.path());
  auto reader =
      DiskStore::open({.directory = folder.path(), .access = DiskOptions::Access::kReadOnly});
  ASSERT_TRUE(reader);
  const RootLabel root = root_of(**reader);
  std::mt19937_64 random(5);
  std::size_t turns = 0;
  for (int kill = 0; kill < kKills; ++kill) {
    const Child child(folder.path().string());
    const std::size_t awaited = random() % 4;
    for (std::size_t i = 0; i < awaited; ++i) {
      ASSERT_TRUE(child.wait_for_turn());
      ++turns;
      const Recalled seen = recall(**reader, root, first_tokens(turns * kTurnTokens));
      EXPECT_EQ(seen.wrong, 0);
      EXPECT_EQ(seen.tokens, static_cast<std::int64_t>(turns * kTurnTokens));
    }
    spin(random() % 4'000'000);
    turns += child.kill_and_count();
    auto store = open_store(folder.path());
    ASSERT_TRUE(store->is_writable()) << store->read_only_reason();
    const Recalled found = recall(*store, root, all_tokens());
    EXPECT_EQ(found.wrong, 0);
    EXPECT_EQ(found.damaged, 0);
    EXPECT_EQ(found.tokens % static_cast<std::int64_t>(kTurnTokens), 0) << "half a turn";
    const auto there = static_cast<std::size_t>(found.tokens) / kTurnTokens;
    EXPECT_GE(there, turns) << "a turn that was committed is lost";
    EXPECT_LE(there, turns + 1);
    turns = there;
  }
  EXPECT_GT(turns, 20);
}

TEST(DiskStoreKillTest, WhatACrashLeavesBehindIsFreedByTheNextWriter) {
  const StoreFolder folder("kill_space");
  open_store(folder.path());
  std::mt19937_64 random(6);
  for (int kill = 0; kill < kFewKills; ++kill) {
    const Child child(folder.path().string());
    ASSERT_TRUE(child.wait_for_turn());
    spin(random() % 3'000'000);
    static_cast<void>(child.kill_and_count());
  }
  auto store = open_store(folder.path());
  const RootLabel root = root_of(*store);
  const Recalled found = recall(*store, root, all_tokens());
  const auto tokens = first_tokens(static_cast<std::size_t>(found.tokens));
  ASSERT_TRUE(store->write_turn(make_turn(root, tokens).write));
  std::uint64_t payloads = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    if (entry.path().extension() == ".seg") payloads += entry.file_size();
  }
  const auto pages = static_cast<std::uint64_t>(found.tokens) * (17 + 71);
  const auto snapshots = static_cast<std::uint64_t>(found.snapshots) * 5'003;
  // What is cut off is cut at the end of a block.
  EXPECT_LE(payloads, pages + snapshots + 3 * 4096 * (kFewKills + 1));
}

}  // namespace
}  // namespace locket::cache
