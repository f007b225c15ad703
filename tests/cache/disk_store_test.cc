#include "cache/disk_store.h"

#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <vector>

#include "base/file.h"
#include "tests/support/stored_prefix.h"

namespace locket::cache {
namespace {

using test_support::make_turn;
using test_support::open_store;
using test_support::points_of;
using test_support::PrefixTurn;
using test_support::recall;
using test_support::Recalled;
using test_support::root_of;
using test_support::some_tokens;
using test_support::StoreFolder;

TEST(DiskStoreTest, WhatWasWrittenComesBackAlsoAfterARestart) {
  const StoreFolder folder("round_trip");
  const auto tokens = some_tokens(128 * 40, 1);
  RootLabel root;
  {
    auto store = open_store(folder.path());
    ASSERT_TRUE(store->is_writable()) << store->read_only_reason();
    root = root_of(*store);
    const PrefixTurn turn = make_turn(root, tokens, {.snapshots = {128, 128 * 40}});
    const Status status = store->write_turn(turn.write);
    ASSERT_TRUE(status) << status.error().message;
    const Recalled now = recall(*store, root, tokens);
    EXPECT_EQ(now.tokens, 128 * 40);
    EXPECT_EQ(now.snapshots, 2);
  }
  auto store = open_store(folder.path());
  EXPECT_EQ(root_of(*store).root, root.root) << "the secret stays";
  const Recalled later = recall(*store, root, tokens);
  EXPECT_EQ(later.tokens, 128 * 40);
  EXPECT_EQ(later.snapshots, 2);
  EXPECT_EQ(later.wrong + later.damaged, 0);
}

TEST(DiskStoreTest, TurnsAddToWhatIsThereAndATailGoesWhenItsPageIsFull) {
  const StoreFolder folder("tails");
  auto store = open_store(folder.path());
  const RootLabel root = root_of(*store);
  const auto tokens = some_tokens(128 * 9 + 50, 2);
  const std::vector<std::int32_t> shorter(tokens.begin(), tokens.begin() + 128 * 4 + 30);
  const PrefixTurn first = make_turn(root, shorter);
  ASSERT_TRUE(store->write_turn(first.write));
  EXPECT_EQ(recall(*store, root, shorter).tokens, 128 * 4 + 30);
  // The longer text uses the tail as far as it goes.
  EXPECT_EQ(recall(*store, root, tokens).tokens, 128 * 4 + 30);

  PrefixTurn second = make_turn(root, tokens, {.from_page = 4});
  second.write.superseded_tails = {points_of(root, shorter).back().name};
  ASSERT_TRUE(store->write_turn(second.write));
  EXPECT_EQ(recall(*store, root, tokens).tokens, 128 * 9 + 50);
  EXPECT_EQ(store->counts().pages_written, 11);
  const DiskMatch match =
      store->find(root_point(root.root), shorter, test_support::PayloadSizes().page_sizes());
  ASSERT_TRUE(match.parting);
  EXPECT_EQ(match.parting_tokens, 30);
  EXPECT_EQ(match.parting->tokens.size(), 128) << "the tail has gone, the full page serves";
}

TEST(DiskStoreTest, APageThatPartsInTheMiddleIsFoundUpToThereAndTheLongestWins) {
  const StoreFolder folder("parting");
  auto store = open_store(folder.path());
  const RootLabel root = root_of(*store);
  const auto base = some_tokens(128 * 3, 3);
  for (const std::size_t parting : {128 + 20, 128 + 77, 128 + 5}) {
    auto other = base;
    for (std::size_t i = parting; i < other.size(); ++i) other[i] = 7;
    ASSERT_TRUE(store->write_turn(make_turn(root, other).write));
  }
  EXPECT_EQ(recall(*store, root, base).tokens, 128 + 77);
  const DiskMatch nothing = store->find(root_point(root.root), some_tokens(500, 4),
                                        test_support::PayloadSizes().page_sizes());
  EXPECT_TRUE(nothing.pages.empty());
  EXPECT_FALSE(nothing.parting);
}

TEST(DiskStoreTest, PagesAreWrittenOnceAndNeverUnderAnUnknownParent) {
  const StoreFolder folder("once");
  auto store = open_store(folder.path());
  const RootLabel root = root_of(*store);
  const auto tokens = some_tokens(128 * 6, 5);
  const PrefixTurn all = make_turn(root, tokens);
  ASSERT_TRUE(store->write_turn(all.write));
  ASSERT_TRUE(store->write_turn(all.write));
  EXPECT_EQ(store->counts().pages_written, 6);
  const PrefixTurn hanging = make_turn(root, some_tokens(128 * 6, 6), {.from_page = 3});
  ASSERT_TRUE(store->write_turn(hanging.write));
  EXPECT_EQ(store->counts().pages_written, 6);
  EXPECT_EQ(store->counts().pages_not_written, 3);
}

TEST(DiskStoreTest, AnotherTenantOfTheSameFolderFindsNothing) {
  const StoreFolder folder("tenants");
  auto store = open_store(folder.path());
  const auto tokens = some_tokens(128 * 4, 7);
  ASSERT_TRUE(store->write_turn(make_turn(root_of(*store, "X"), tokens).write));
  EXPECT_EQ(recall(*store, root_of(*store, "X"), tokens).tokens, 128 * 4);
  EXPECT_EQ(recall(*store, root_of(*store, ""), tokens).tokens, 0);
}

TEST(DiskStoreTest, NamesThatCollideNeverGiveAnotherPrefixsMemory) {
  const StoreFolder folder("collisions");
  auto store = open_store(folder.path());
  const RootLabel root = root_of(*store);
  // Names of 8 bits: of many pages, most have a name that another one has.
  const auto sizes = test_support::PayloadSizes().page_sizes();
  const std::vector<std::byte> keys(sizes.key_bytes(128));
  const std::vector<std::byte> rows(sizes.row_bytes(128));
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    TurnWrite turn = make_turn(root, {}).write;
    const auto tokens = some_tokens(128, 1000 + seed);
    const PrefixPoint start = root_point(root.root, 8);
    turn.pages.push_back({.parent = start,
                          .end = next_point(start, tokens),
                          .tokens = tokens,
                          .keys = keys,
                          .rows = rows});
    ASSERT_TRUE(store->write_turn(turn));
  }
  EXPECT_LE(store->counts().pages_written, 256);
  std::size_t found = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const auto tokens = some_tokens(128, 1000 + seed);
    const DiskMatch match = store->find(root_point(root.root, 8), tokens, sizes);
    for (const StoredPage& page : match.pages) EXPECT_EQ(page.tokens, tokens);
    found += match.pages.size();
  }
  EXPECT_EQ(found, store->counts().pages_written);
  EXPECT_EQ(store->counts().values_dropped, 0) << "a collision is no damage";
}

TEST(DiskStoreTest, ASecondOpenerReadsOnlySaysWhyAndSeesWhatIsWritten) {
  const StoreFolder folder("reader");
  auto writer = open_store(folder.path());
  auto reader = open_store(folder.path());
  EXPECT_TRUE(writer->is_writable());
  EXPECT_FALSE(reader->is_writable());
  EXPECT_THAT(reader->read_only_reason(), ::testing::HasSubstr("locked by"));
  const RootLabel root = root_of(*writer);
  EXPECT_EQ(root_of(*reader).root, root.root);
  const auto tokens = some_tokens(128 * 30, 8);
  for (std::size_t pages = 5; pages <= 30; pages += 5) {
    const std::vector<std::int32_t> part(tokens.begin(),
                                         tokens.begin() + static_cast<std::ptrdiff_t>(pages * 128));
    ASSERT_TRUE(writer->write_turn(make_turn(root, part, {.from_page = pages - 5}).write));
    EXPECT_EQ(recall(*reader, root, part).tokens, static_cast<std::int64_t>(part.size()));
  }
  const Status status = reader->write_turn(make_turn(root, tokens).write);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kBadRequest);
  writer.reset();
  EXPECT_TRUE(open_store(folder.path())->is_writable()) << "the lock goes with its owner";
}

TEST(DiskStoreTest, AFolderThatOthersCanReachIsRefused) {
  const StoreFolder folder("private");
  open_store(folder.path());
  namespace fs = std::filesystem;
  EXPECT_EQ(fs::status(folder.path()).permissions(), fs::perms::owner_all);
  for (const auto& entry : fs::recursive_directory_iterator(folder.path())) {
    EXPECT_EQ(fs::status(entry).permissions() & (fs::perms::group_all | fs::perms::others_all),
              fs::perms::none)
        << entry.path();
  }
  const fs::path link = folder.path().string() + "_link";
  fs::create_directory_symlink(folder.path(), link);
  const auto linked = DiskStore::open({.directory = link});
  fs::remove(link);
  ASSERT_FALSE(linked);
  EXPECT_EQ(linked.error().code, ErrorCode::kBadMemory);
  fs::permissions(folder.path(), fs::perms::group_read, fs::perm_options::add);
  const auto shared = DiskStore::open({.directory = folder.path()});
  ASSERT_FALSE(shared);
  EXPECT_EQ(shared.error().code, ErrorCode::kBadMemory);
  EXPECT_THAT(shared.error().message, ::testing::HasSubstr("chmod"));
}

TEST(DiskStoreTest, ForeignFilesAreLeftAloneAndHalfWrittenOnesRemoved) {
  const StoreFolder folder("foreign");
  open_store(folder.path());
  const auto foreign = folder.path() / "notes.txt";
  const auto half = folder.path() / "secret.0011223344556677.part";
  ASSERT_TRUE(write_whole_file(foreign, {}));
  ASSERT_TRUE(write_whole_file(half, {}));
  open_store(folder.path());
  EXPECT_TRUE(std::filesystem::exists(foreign));
  EXPECT_FALSE(std::filesystem::exists(half));
}

TEST(DiskStoreTest, WhatWasDroppedIsStoredAgainByALaterTurn) {
  const StoreFolder folder("dropped");
  auto store = open_store(folder.path());
  const RootLabel root = root_of(*store);
  const auto tokens = some_tokens(128 * 6, 9);
  const PrefixTurn turn = make_turn(root, tokens, {.snapshots = {256}});
  ASSERT_TRUE(store->write_turn(turn.write));
  const auto sizes = test_support::PayloadSizes().page_sizes();
  const DiskMatch match = store->find(root_point(root.root), tokens, sizes);
  const std::uint64_t epoch = store->loss_epoch();
  store->drop_page(match.pages[2]);
  store->drop_snapshot(match.pages[1].end);
  EXPECT_GT(store->loss_epoch(), epoch);
  EXPECT_EQ(store->counts().values_dropped, 2);
  EXPECT_EQ(recall(*store, root, tokens).tokens, 256);
  EXPECT_EQ(recall(*store, root, tokens).snapshots, 0);
  ASSERT_TRUE(store->write_turn(turn.write));
  EXPECT_EQ(recall(*store, root, tokens).tokens, 128 * 6) << "what hung below is found again";
  EXPECT_EQ(recall(*store, root, tokens).snapshots, 1);
  const auto points = points_of(root, tokens);
  const auto has = store->has_pages(std::span(points).first(6), std::span(points).subspan(1));
  EXPECT_THAT(has, ::testing::Each(true));
}

}  // namespace
}  // namespace locket::cache
