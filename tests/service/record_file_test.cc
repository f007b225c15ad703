// A file of records: what comes back after a crash, after damage, and from files of other kinds.
#include "service/record_file.h"

#include <algorithm>
#include <filesystem>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "base/file.h"
#include "tests/support/checkpoint_files.h"

namespace locket::service {
namespace {

namespace fs = std::filesystem;
using Records = std::vector<std::string>;

struct Read {
  Records records;
  std::size_t dropped = 0;
  friend bool operator==(const Read&, const Read&) = default;
};

class RecordFileTest : public testing::Test {
 protected:
  void SetUp() override { fs::permissions(folder_.path(), fs::perms::owner_all); }

  Result<RecordFile> open(Records* records = nullptr) const {
    return RecordFile::open(path_, [records](std::string_view payload) {
      if (records != nullptr) records->emplace_back(payload);
    });
  }
  Read read() const {
    Read read;
    const Result<RecordFile> file = open(&read.records);
    EXPECT_TRUE(file.has_value()) << file.error().message;
    if (file) read.dropped = file->dropped();
    return read;
  }
  void append(const Records& records) const {
    auto file = open().value();
    for (const std::string& record : records) EXPECT_TRUE(file.append(record));
  }
  std::string content() const { return read_whole_file(path_).value(); }
  // The file as another process left it.
  void put(const std::string& content) const {
    EXPECT_TRUE(write_whole_file(path_, std::as_bytes(std::span(content))));
    fs::permissions(path_, fs::perms::owner_read | fs::perms::owner_write);
  }

  test_support::TempFolder folder_;
  fs::path path_ = folder_ / "records";
};

TEST_F(RecordFileTest, RecordsComeBackInTheirOrder) {
  EXPECT_EQ(read(), Read{});
  append({"one", "", std::string("a\0b", 3)});
  append({std::string(100000, 'x')});
  EXPECT_EQ(read(), (Read{{"one", "", std::string("a\0b", 3), std::string(100000, 'x')}, 0}));
  EXPECT_EQ(fs::status(path_).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(RecordFileTest, ARecordThatIsNotWholeIsDroppedAndTheFileGoesOnBeforeIt) {
  append({"first", "second"});
  const std::size_t whole = content().size();
  append({"the last one"});
  const std::string all = content();
  for (std::size_t bytes = whole + 1; bytes < all.size(); ++bytes) {
    put(all.substr(0, bytes));
    ASSERT_EQ(read(), (Read{{"first", "second"}, 1})) << bytes;
    ASSERT_EQ(content().size(), whole);
    append({"third"});
    ASSERT_EQ(read(), (Read{{"first", "second", "third"}, 0})) << bytes;
  }
}

TEST_F(RecordFileTest, OneFlippedBitNeverGivesAnotherRecordAndNeverFails) {
  const Records records = {"first", "second", "third"};
  append(records);
  const std::string all = content();
  std::size_t survivors = 0;
  for (std::size_t bit = 0; bit < all.size() * 8; ++bit) {
    std::string damaged = all;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    put(damaged);
    const Read found = read();
    ASSERT_LT(found.records.size(), records.size()) << bit;
    ASSERT_GE(found.dropped, 1U) << bit;
    for (const std::string& record : found.records) {
      ASSERT_NE(std::ranges::find(records, record), records.end()) << bit;
    }
    survivors += found.records.size();
  }
  EXPECT_GT(survivors, 0U);
}

TEST_F(RecordFileTest, ADamagedPayloadCostsItsOwnRecordOnly) {
  append({"first", "second", "third"});
  std::string all = content();
  all[all.find("second")] = 'S';
  put(all);
  EXPECT_EQ(read(), (Read{{"first", "third"}, 1}));
  append({"fourth"});
  EXPECT_EQ(read(), (Read{{"first", "third", "fourth"}, 1}));
}

TEST_F(RecordFileTest, ARecordThatStandsInsideAnotherIsNotFoundWhenThatIsDamaged) {
  append({"stolen"});
  const std::string forged = content().substr(16);
  fs::remove(path_);
  append({forged + forged, "next"});
  std::string all = content();
  all[16] = static_cast<char>(all[16] ^ 1);  // the length of the first record
  put(all);
  EXPECT_EQ(read(), (Read{{}, 1}));
}

TEST_F(RecordFileTest, AFileOfAnotherFormatIsBegunAnew) {
  for (const std::string& other : {std::string(), std::string("LOCKET"), std::string(500, 'x')}) {
    put(other);
    EXPECT_EQ(read(), (Read{{}, 1}));
    append({"one"});
    EXPECT_EQ(read(), (Read{{"one"}, 0}));
  }
  std::string next_version = content();
  ++next_version[13];
  put(next_version);
  EXPECT_EQ(read(), (Read{{}, 1}));
}

TEST_F(RecordFileTest, RewritingPutsOtherRecordsInPlace) {
  append({"one", "two", "three"});
  {
    auto file = open().value();
    ASSERT_TRUE(file.rewrite({"two", "new"}));
    ASSERT_TRUE(file.append("last"));
    EXPECT_EQ(file.size_bytes(), content().size());
  }
  EXPECT_EQ(read(), (Read{{"two", "new", "last"}, 0}));
}

TEST_F(RecordFileTest, OneOwnerAtATime) {
  const auto first = open().value();
  const auto second = open();
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code, ErrorCode::kOverloaded);
}

TEST_F(RecordFileTest, FilesThatOthersCanReachAreRefusedAndLeftAsTheyAre) {
  append({"one"});
  const std::string before = content();
  fs::permissions(path_, fs::perms::owner_all | fs::perms::group_read);
  EXPECT_EQ(open().error().code, ErrorCode::kBadMemory);
  fs::permissions(path_, fs::perms::owner_read | fs::perms::owner_write);
  fs::rename(path_, folder_ / "elsewhere");
  fs::create_symlink(folder_ / "elsewhere", path_);
  EXPECT_EQ(open().error().code, ErrorCode::kBadMemory);
  EXPECT_EQ(content(), before);
}

}  // namespace
}  // namespace locket::service
