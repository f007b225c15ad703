// The bytes that a memory takes on disk: the released layout through the real store.
#include "engine/stored_cache.h"

#include <filesystem>
#include <gtest/gtest.h>

#include "checkpoint/config_json.h"
#include "model/generations/generation.h"
#include "tests/support/checkpoint_files.h"

namespace locket::engine {
namespace {

model::ModelOutline released_outline() {
  const auto path = std::filesystem::path(LOCKET_TEST_DATA) / "configs" / "v41_flash_config.json";
  const auto file = checkpoint::ConfigFile::open(path);
  EXPECT_TRUE(file) << file.error().message;
  const auto generation = model::find_generation(file->root());
  EXPECT_TRUE(generation) << generation.error().message;
  return (*generation)->outline(file->root(), (*generation)->modes.front()).value();
}

TEST(StoredCacheTest, RowsOnDiskAreLittleMoreThanRowsInMemory) {
  const test_support::TempFolder folder;
  const auto size = fill_stored_cache(released_outline(), 16384, folder.path());
  ASSERT_TRUE(size) << size.error().message;
  EXPECT_EQ(size->tokens, 16384);
  EXPECT_GE(size->row_bytes_per_token(), 890);
  EXPECT_LE(size->row_bytes_per_token(), 890 * 1.05);
  // At 8,192, at the end, and at the last boundary before the window.
  EXPECT_EQ(size->snapshots, 3U);
  EXPECT_EQ(size->snapshot_bytes, 3U * 1'351'680);
  EXPECT_DOUBLE_EQ(size->bytes_per_token(), size->row_bytes_per_token() + 3.0 * 1'351'680 / 16384);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(StoredCacheTest, TooManyTokensAreRefusedWithTheNumbers) {
  const test_support::TempFolder folder;
  const auto size = fill_stored_cache(released_outline(), std::int64_t{1} << 32, folder.path());
  ASSERT_FALSE(size);
  EXPECT_EQ(size.error().code, ErrorCode::kOverBudget);
  EXPECT_NE(size.error().message.find("4294967296 tokens"), std::string::npos);
}

TEST(StoredCacheTest, AFolderThatIsNotThereIsAnError) {
  const auto size = fill_stored_cache(released_outline(), 128, "/proc/nothing");
  ASSERT_FALSE(size);
  EXPECT_NE(size.error().message.find("/proc/nothing"), std::string::npos) << size.error().message;
}

}  // namespace
}  // namespace locket::engine
