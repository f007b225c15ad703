#include "service/issued_items_store.h"

#include <filesystem>
#include <gtest/gtest.h>
#include <string>

#include "tests/support/checkpoint_files.h"

namespace locket::service {
namespace {

namespace fs = std::filesystem;
using chat::IssuedItem;

TEST(IssuedItemsStoreTest, ATenantFindsItsOwnItemsOnly) {
  auto store = IssuedItemsStore::open({}).value();
  store.keep("t", "msg_1", {IssuedItem::Kind::kMessage, "Hello, Grüße 😀\n"});
  store.keep("t", "rs_1", {IssuedItem::Kind::kReasoning, ""});
  const TenantItems own(store, "t");
  ASSERT_TRUE(own.find("msg_1").has_value());
  EXPECT_EQ(own.find("msg_1")->kind, IssuedItem::Kind::kMessage);
  EXPECT_EQ(own.find("msg_1")->text, "Hello, Grüße 😀\n");
  ASSERT_TRUE(own.find("rs_1").has_value());
  EXPECT_EQ(own.find("rs_1")->kind, IssuedItem::Kind::kReasoning);
  EXPECT_EQ(own.find("rs_1")->text, "");
  EXPECT_FALSE(own.find("msg_2").has_value());
  EXPECT_FALSE(TenantItems(store, "u").find("msg_1").has_value());
  EXPECT_FALSE(TenantItems(store, "").find("msg_1").has_value());
}

TEST(IssuedItemsStoreTest, ItemsAreBounded) {
  auto store = IssuedItemsStore::open({.max_bytes = 10000}).value();
  for (int number = 0; number < 100; ++number) {
    store.keep("t", "msg_" + std::to_string(number),
               {IssuedItem::Kind::kMessage, std::string(500, 'x')});
  }
  const TenantItems items(store, "t");
  EXPECT_FALSE(items.find("msg_0").has_value());
  EXPECT_TRUE(items.find("msg_99").has_value());
  EXPECT_LE(store.use().bytes, 10000U);
}

TEST(IssuedItemsStoreTest, ItemsComeBackAfterARestart) {
  const test_support::TempFolder folder;
  fs::permissions(folder.path(), fs::perms::owner_all);
  const KeptOptions options = {.memory = folder.path(), .model = "m"};
  {
    auto store = IssuedItemsStore::open(options).value();
    store.keep("t", "msg_1", {IssuedItem::Kind::kMessage, "a"});
    // Turns lie beside them, in a file of their own.
    EXPECT_TRUE(KeptRecords::open(options, "turns").has_value());
  }
  auto store = IssuedItemsStore::open(options).value();
  ASSERT_TRUE(store.find("t", "msg_1").has_value());
  EXPECT_EQ(store.find("t", "msg_1")->text, "a");
}

}  // namespace
}  // namespace locket::service
