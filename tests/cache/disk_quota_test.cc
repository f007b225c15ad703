#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "base/folder.h"
#include "cache/disk_store.h"
#include "cache/internal/disk_store_impl.h"
#include "tests/support/stored_prefix.h"

namespace locket::cache {
namespace {

using test_support::make_turn;
using test_support::open_store;
using test_support::PayloadSizes;
using test_support::PrefixTurn;
using test_support::recall;
using test_support::root_of;
using test_support::some_tokens;
using test_support::StoreFolder;

// As large as V4.1's, so that blocks and records weigh as they do there.
constexpr PayloadSizes kSizes = {
    .key_bytes_per_token = 170, .row_bytes_per_token = 720, .snapshot_bytes = 100'000};
constexpr std::uint64_t kPageBytes = 128 * 890;

PrefixTurn turn_of(const DiskStore& store, const std::vector<std::int32_t>& tokens,
                   std::vector<std::int64_t> snapshots = {}) {
  return make_turn(root_of(store), tokens, {.snapshots = std::move(snapshots), .sizes = kSizes});
}

std::int64_t tokens_found(DiskStore& store, const std::vector<std::int32_t>& tokens) {
  const auto found = recall(store, root_of(store), tokens, kSizes);
  EXPECT_EQ(found.wrong + found.damaged, 0);
  return found.tokens;
}

TEST(DiskQuotaTest, B10AlternatingPrefixesBothStayIfBothFit) {
  const StoreFolder folder("b10");
  const auto a = some_tokens(128 * 20, 1);
  const auto b = some_tokens(128 * 20, 2);
  auto store = open_store(folder.path(), 48 * kPageBytes);
  for (int round = 0; round < 4; ++round) {
    for (const auto& tokens : {a, b}) {
      EXPECT_EQ(tokens_found(*store, tokens), round > 0 ? 128 * 20 : 0) << round;
      ASSERT_TRUE(store->write_turn(turn_of(*store, tokens).write));
    }
  }
  EXPECT_EQ(store->counts().pages_written, 40);
  EXPECT_EQ(store->counts().pages_evicted, 0);
}

TEST(DiskQuotaTest, TheOldestLeavesGoFirstAndWhatTheTurnNeedsStays) {
  const StoreFolder folder("oldest");
  auto store = open_store(folder.path(), 48 * kPageBytes);
  const auto a = some_tokens(128 * 20, 1);
  const auto b = some_tokens(128 * 20, 2);
  ASSERT_TRUE(store->write_turn(turn_of(*store, a).write));
  ASSERT_TRUE(store->write_turn(turn_of(*store, b).write));
  auto longer = a;
  const auto more = some_tokens(128 * 15, 3);
  longer.insert(longer.end(), more.begin(), more.end());
  ASSERT_TRUE(store->write_turn(turn_of(*store, longer).write));
  EXPECT_EQ(tokens_found(*store, longer), 128 * 35) << "b had to make room, not a";
  const std::int64_t left = tokens_found(*store, b);
  EXPECT_LT(left, 128 * 20);
  EXPECT_GT(left, 0) << "no more goes than has to";
  EXPECT_LE(store->used_bytes(), 48 * kPageBytes);
  const auto points = test_support::points_of(root_of(*store), b);
  const auto tombstone = store->impl().tombstone_of(points.back().name);
  ASSERT_TRUE(tombstone);
  EXPECT_EQ(tombstone->reason, GoneReason::kEvicted);
}

TEST(DiskQuotaTest, B12NothingIsWrittenThatCannotStayAndNoPositionTwice) {
  for (const std::uint64_t pages : {18, 30}) {  // 0.9 and 1.5 of an entry
    const StoreFolder folder("b12_" + std::to_string(pages));
    auto store = open_store(folder.path(), pages * kPageBytes);
    const auto tokens = some_tokens(128 * 20, 1);
    for (int i = 0; i < 4; ++i) {
      ASSERT_TRUE(store->write_turn(turn_of(*store, tokens).write));
      EXPECT_LE(store->used_bytes(), pages * kPageBytes);
    }
    const DiskCounts counts = store->counts();
    EXPECT_EQ(counts.pages_evicted, 0) << "nothing was written that had to go";
    EXPECT_LE(counts.pages_written, 20);
    EXPECT_GE(counts.pages_written, pages == 18 ? 12 : 20);
    EXPECT_EQ(tokens_found(*store, tokens), static_cast<std::int64_t>(counts.pages_written) * 128);
  }
}

TEST(DiskQuotaTest, B15TheBudgetHoldsAcrossRestarts) {
  const StoreFolder folder("b15");
  constexpr std::uint64_t kQuota = 50 * kPageBytes;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    auto store = open_store(folder.path(), kQuota);
    const auto tokens = some_tokens(128 * 10, seed);
    ASSERT_TRUE(store->write_turn(turn_of(*store, tokens).write));
    EXPECT_LE(store->used_bytes(), kQuota) << seed;
    EXPECT_EQ(tokens_found(*store, tokens), 128 * 10) << seed;
    const std::uint64_t before = seed > 0 ? seed - 1 : seed;
    EXPECT_EQ(tokens_found(*store, some_tokens(128 * 10, before)), 128 * 10) << seed;
  }
}

TEST(DiskQuotaTest, B35RestartsWithoutTrafficChangeNothing) {
  const StoreFolder folder("b35");
  const auto tokens = some_tokens(128 * 10, 1);
  {
    auto store = open_store(folder.path(), 50 * kPageBytes);
    ASSERT_TRUE(store->write_turn(turn_of(*store, tokens, {256}).write));
  }
  open_store(folder.path(), 50 * kPageBytes);
  const std::uint64_t after_one = allocated_bytes_below(folder.path());
  open_store(folder.path(), 50 * kPageBytes);
  EXPECT_NEAR(static_cast<double>(allocated_bytes_below(folder.path())),
              static_cast<double>(after_one), 16'384);
  auto store = open_store(folder.path(), 50 * kPageBytes);
  EXPECT_EQ(tokens_found(*store, tokens), 128 * 10);
}

TEST(DiskQuotaTest, ASmallerQuotaIsReachedByEviction) {
  const StoreFolder folder("shrink");
  {
    auto store = open_store(folder.path());
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      ASSERT_TRUE(store->write_turn(turn_of(*store, some_tokens(128 * 10, seed)).write));
    }
    EXPECT_GT(store->used_bytes(), 40 * kPageBytes);
  }
  auto store = open_store(folder.path(), 25 * kPageBytes);
  ASSERT_TRUE(store->write_turn(turn_of(*store, some_tokens(128 * 5, 9)).write));
  EXPECT_LE(store->used_bytes(), 25 * kPageBytes);
  EXPECT_EQ(tokens_found(*store, some_tokens(128 * 5, 9)), 128 * 5);
}

TEST(DiskQuotaTest, APinnedPrefixIsNeverEvicted) {
  const StoreFolder folder("pins");
  const auto pinned = some_tokens(128 * 10, 100);
  {
    auto store = open_store(folder.path(), 30 * kPageBytes);
    ASSERT_TRUE(store->write_turn(turn_of(*store, pinned, {256}).write));
    const auto points = test_support::points_of(root_of(*store), pinned);
    ASSERT_TRUE(store->impl().set_pinned(points.back().name, true));
  }
  auto store = open_store(folder.path(), 30 * kPageBytes);
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    ASSERT_TRUE(store->write_turn(turn_of(*store, some_tokens(128 * 9, seed)).write));
  }
  EXPECT_GT(store->counts().pages_evicted, 0);
  EXPECT_EQ(tokens_found(*store, pinned), 128 * 10);
  EXPECT_EQ(recall(*store, root_of(*store), pinned, kSizes).snapshots, 1);
}

TEST(DiskQuotaTest, AUseInTheFutureAfterTheClockWentBackDoesNoHarm) {
  const StoreFolder folder("clock");
  constexpr std::uint64_t kQuota = 30 * kPageBytes;
  const auto first = some_tokens(128 * 10, 1);
  {
    auto store = open_store(folder.path(), kQuota);
    ASSERT_TRUE(store->write_turn(turn_of(*store, first).write));
    const PageName newest = test_support::points_of(root_of(*store), first).back().name;
    const std::string key = record_key(RecordSpace::kUse, newest);
    RecordBatch batch;
    batch.put(key, encode_use(key, {.last_use_seconds = 1e10, .hits = 1, .is_pinned = false}));
    ASSERT_TRUE(store->impl().write_records(batch));
  }
  auto store = open_store(folder.path(), kQuota);
  for (std::uint64_t seed = 2; seed < 6; ++seed) {
    const auto tokens = some_tokens(128 * 10, seed);
    ASSERT_TRUE(store->write_turn(turn_of(*store, tokens).write));
    EXPECT_EQ(tokens_found(*store, tokens), 128 * 10);
    EXPECT_LE(store->used_bytes(), kQuota);
  }
}

TEST(DiskQuotaTest, RemovedPagesGiveTheirSpaceBack) {
  const StoreFolder folder("removed");
  auto store = open_store(folder.path());
  const auto tokens = some_tokens(128 * 20, 1);
  ASSERT_TRUE(store->write_turn(turn_of(*store, tokens).write));
  const std::uint64_t before = store->used_bytes();
  const auto points = test_support::points_of(root_of(*store), tokens);
  std::vector<PageName> names;
  for (std::size_t i = points.size() - 1; i > 5; --i) names.push_back(points[i].name);
  ASSERT_TRUE(store->impl().remove_pages(names, GoneReason::kRemoved));
  EXPECT_EQ(tokens_found(*store, tokens), 128 * 5);
  EXPECT_LT(store->used_bytes() + 14 * kPageBytes, before);
}

}  // namespace
}  // namespace locket::cache
