#include "cache/disk_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "cache/kv_layout.h"
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

}  // namespace
}  // namespace locket::cache
