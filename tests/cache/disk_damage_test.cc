// B13: whatever happens to the files of a store, a look-up gives the right bytes or a miss.
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>
#include <string>
#include <vector>

#include "base/file.h"
#include "cache/disk_store.h"
#include "cache/internal/record_codec.h"
#include "cache/internal/segment_format.h"
#include "tests/support/stored_prefix.h"

namespace locket::cache {
namespace {

namespace fs = std::filesystem;
using test_support::make_turn;
using test_support::open_store;
using test_support::PrefixTurn;
using test_support::recall;
using test_support::Recalled;
using test_support::root_of;
using test_support::some_tokens;
using test_support::StoreFolder;

constexpr std::int64_t kTokens = 128 * 12 + 40;

void put_file(const fs::path& path, const std::string& content) {
  ASSERT_TRUE(write_whole_file(path, std::as_bytes(std::span(content))));
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
}

// A store with one prefix, its records partly in a table and partly in the log.
class DiskDamageTest : public ::testing::Test {
 protected:
  DiskDamageTest() : whole_("damage_whole"), folder_("damage") {
    tokens_ = some_tokens(kTokens, 1);
    for (const std::size_t pages : {4, 8, 13}) {
      auto store = open_store(whole_.path());
      const auto count = std::min<std::size_t>(pages * 128, kTokens);
      const std::vector<std::int32_t> part(tokens_.begin(),
                                           tokens_.begin() + static_cast<std::ptrdiff_t>(count));
      EXPECT_TRUE(store->write_turn(turn_of(*store, part, pages).write));
    }
    const Recalled whole = recall_in(whole_.path());
    EXPECT_EQ(whole.tokens, kTokens);
    EXPECT_EQ(whole.snapshots, 2);
    fresh_copy();
    for (const auto& entry : fs::recursive_directory_iterator(whole_.path())) {
      if (entry.is_regular_file()) files_.push_back(fs::relative(entry.path(), whole_.path()));
    }
    std::sort(files_.begin(), files_.end());
  }

  PrefixTurn turn_of(const DiskStore& store, const std::vector<std::int32_t>& part,
                     std::size_t pages) const {
    std::vector<std::int64_t> snapshots;
    if (pages == 8) snapshots = {256, 1024};
    return make_turn(root_of(store), part, {.snapshots = snapshots});
  }

  void fresh_copy() const {
    fs::remove_all(folder_.path());
    fs::copy(whole_.path(), folder_.path(), fs::copy_options::recursive);
    fs::permissions(folder_.path(), fs::perms::owner_all);
    fs::permissions(folder_.path() / "records", fs::perms::owner_all);
  }

  Recalled recall_in(const fs::path& folder) const {
    auto store = open_store(folder);
    return recall(*store, root_of(*store), tokens_);
  }

  // What is found after the damage, nothing of it wrong; and after the next turn all is there.
  Recalled expect_no_wrong_answer(const std::string& what, bool also_writes) const {
    auto store = open_store(folder_.path());
    const Recalled found = recall(*store, root_of(*store), tokens_);
    EXPECT_EQ(found.wrong, 0) << what;
    if (!also_writes) return found;
    const Status status = store->write_turn(turn_of(*store, tokens_, 8).write);
    EXPECT_TRUE(status) << what;
    const Recalled again = recall(*store, root_of(*store), tokens_);
    EXPECT_EQ(again.wrong + again.damaged, 0) << what;
    EXPECT_EQ(again.tokens, kTokens) << what;
    EXPECT_EQ(again.snapshots, 2) << what;
    return found;
  }

  std::string content_of(const fs::path& file) const {
    return *read_whole_file(folder_.path() / file);
  }
  void put(const fs::path& file, const std::string& content) const {
    put_file(folder_.path() / file, content);
  }

  StoreFolder whole_;
  StoreFolder folder_;
  std::vector<std::int32_t> tokens_;
  std::vector<fs::path> files_;
};

TEST_F(DiskDamageTest, AFlippedBitAnywhereGivesTheRightBytesOrAMiss) {
  std::mt19937_64 random(20);
  constexpr int kFlips = 200;
  int noticed = 0;
  for (int i = 0; i < kFlips; ++i) {
    fresh_copy();
    const fs::path& file = files_[static_cast<std::size_t>(i) % files_.size()];
    std::string content = content_of(file);
    if (content.empty()) continue;
    const std::size_t at = random() % content.size();
    const auto mask = static_cast<char>(1U << random() % 8);
    content[at] = static_cast<char>(content[at] ^ mask);
    put(file, content);
    const std::string what = file.string() + " byte " + std::to_string(at);
    const Recalled found = expect_no_wrong_answer(what, i % 4 == 0);
    if (found.tokens < kTokens || found.snapshots < 2) ++noticed;
  }
  EXPECT_GT(noticed, kFlips / 4) << "the flips hit what is used";
}

TEST_F(DiskDamageTest, ShortEmptyAndMissingFilesAreMisses) {
  for (const fs::path& file : files_) {
    fresh_copy();
    const std::string content = content_of(file);
    if (!content.empty()) put(file, content.substr(0, content.size() - 1));
    expect_no_wrong_answer(file.string() + " cut by a byte", true);
    fresh_copy();
    put(file, "");
    expect_no_wrong_answer(file.string() + " empty", true);
    fresh_copy();
    fs::remove(folder_.path() / file);
    expect_no_wrong_answer(file.string() + " missing", true);
  }
}

TEST_F(DiskDamageTest, ASegmentOfAnotherVersionIsAMiss) {
  for (const fs::path& file : files_) {
    const auto name = parse_segment_file_name(file.string());
    if (!name) continue;
    fresh_copy();
    std::string content = content_of(file);
    content[8] = 2;  // the version
    const Checksum128 sum = xxh3_128(std::as_bytes(std::span(content).first(48)));
    std::memcpy(content.data() + 48, &sum.low, 8);
    std::memcpy(content.data() + 56, &sum.high, 8);
    put(file, content);
    const Recalled found = expect_no_wrong_answer(file.string(), true);
    EXPECT_GT(found.damaged, 0);
  }
}

TEST_F(DiskDamageTest, DamagedValuesAreCounted) {
  std::string content = content_of("rows-000002.seg");
  content[512 + 3] ^= 1;  // the first payload begins at a sector
  put("rows-000002.seg", content);
  auto store = open_store(folder_.path());
  EXPECT_EQ(recall(*store, root_of(*store), tokens_).tokens, 0);
  EXPECT_EQ(store->counts().values_dropped, 1);
}

TEST(RecordCodecTest, NoBitOfARecordCanChangeUnnoticed) {
  PageRecord record;
  record.page.tokens = some_tokens(90, 3);
  record.page.end.position = 90;
  record.page.keys = {.segment = 3, .offset = 64, .bytes = 900, .checksum = {1, 2}};
  record.page.rows = {.segment = 4, .offset = 640, .bytes = 9000, .checksum = {3, 4}};
  const std::string key = page_key(record.page.parent.name, record.page.end.name);
  std::string value = encode_page(key, record);
  ASSERT_TRUE(decode_page(key, value));
  EXPECT_EQ(decode_page(key, value)->page.tokens, record.page.tokens);
  for (std::size_t bit = 0; bit < value.size() * 8; ++bit) {
    const auto mask = static_cast<char>(1U << bit % 8);
    value[bit / 8] = static_cast<char>(value[bit / 8] ^ mask);
    EXPECT_FALSE(decode_page(key, value)) << bit;
    value[bit / 8] = static_cast<char>(value[bit / 8] ^ mask);
  }
  for (std::size_t length = 0; length < value.size(); ++length) {
    EXPECT_FALSE(decode_page(key, value.substr(0, length))) << length;
  }
  std::string other_key = key;
  other_key.back() ^= 1;
  EXPECT_FALSE(decode_page(other_key, value)) << "the value of another key";
}

TEST(RecordCodecTest, NumbersThatMakeNoSenseAreRefusedEvenWithARightChecksum) {
  PageRecord record;
  record.page.tokens = some_tokens(128, 3);
  const std::string key = page_key(record.page.parent.name, record.page.end.name);
  const auto is_refused = [&](const auto& change) {
    PageRecord changed = record;
    change(changed.page);
    return !decode_page(key, encode_page(key, changed));
  };
  EXPECT_FALSE(is_refused([](StoredPage&) {}));
  EXPECT_TRUE(is_refused([](StoredPage& page) { page.keys.offset = ~std::uint64_t{0}; }));
  EXPECT_TRUE(is_refused([](StoredPage& page) { page.rows.bytes = ~std::uint64_t{0}; }));
  EXPECT_TRUE(is_refused([](StoredPage& page) { page.parent.position = -128; }));
  EXPECT_TRUE(is_refused([](StoredPage& page) { page.parent.position = 100; }));
  EXPECT_TRUE(is_refused([](StoredPage& page) { page.tokens.clear(); }));
  EXPECT_TRUE(is_refused([](StoredPage& page) { page.tokens.resize(129); }));
}

}  // namespace
}  // namespace locket::cache
