// Values under names within a byte budget, in memory and in a file.
#include "service/kept_records.h"

#include <filesystem>
#include <gtest/gtest.h>
#include <string>

#include "base/file.h"
#include "base/task_thread.h"
#include "tests/support/checkpoint_files.h"

namespace locket::service {
namespace {

namespace fs = std::filesystem;

class KeptRecordsTest : public testing::Test {
 protected:
  void SetUp() override { fs::permissions(folder_.path(), fs::perms::owner_all); }

  KeptRecords open(std::size_t max_bytes = 1 << 20, const std::string& model = "m") const {
    return KeptRecords::open({.memory = folder_.path(), .model = model, .max_bytes = max_bytes},
                             "test")
        .value();
  }
  fs::path file() const {
    for (const auto& entry : fs::directory_iterator(folder_ / "answers")) {
      if (entry.path().extension() == ".test") return entry.path();
    }
    return {};
  }

  test_support::TempFolder folder_;
};

std::string found(KeptRecords& records, const std::string& name) {
  const auto value = records.find(name);
  return value == nullptr ? "none" : *value;
}

TEST_F(KeptRecordsTest, AValueIsFoundUnderEachOfItsNames) {
  auto records = KeptRecords::open({}, "test").value();
  records.keep({"a", "b"}, "one");
  EXPECT_EQ(found(records, "a"), "one");
  EXPECT_EQ(found(records, "b"), "one");
  EXPECT_EQ(found(records, "c"), "none");
  EXPECT_EQ(records.use().values, 1U);
}

TEST_F(KeptRecordsTest, ANewValueTakesTheNamesOfTheOldOne) {
  auto records = open();
  records.keep({"a", "b"}, "one");
  records.keep({"b", "c"}, "two");
  EXPECT_EQ(found(records, "a"), "none");
  EXPECT_EQ(found(records, "b"), "two");
  EXPECT_EQ(found(records, "c"), "two");
  EXPECT_EQ(records.use().values, 1U);
}

TEST_F(KeptRecordsTest, TheLeastRecentlyUsedGoesFirstWhenTheBudgetIsFull) {
  auto records = KeptRecords::open({.max_bytes = 4000}, "test").value();
  for (const char* name : {"a", "b", "c"}) records.keep({name}, std::string(1000, 'x'));
  EXPECT_EQ(records.use().values, 3U);
  EXPECT_NE(records.find("a"), nullptr);
  records.keep({"d"}, std::string(1000, 'x'));
  EXPECT_EQ(records.find("b"), nullptr);
  for (const char* name : {"a", "c", "d"}) EXPECT_NE(records.find(name), nullptr) << name;
  EXPECT_EQ(records.use().evicted, 1U);
  EXPECT_LE(records.use().bytes, 4000U);
  records.keep({"e"}, std::string(4000, 'x'));
  EXPECT_EQ(records.find("e"), nullptr);
  EXPECT_EQ(records.use().values, 3U) << "one that is too large pushes nothing out";
}

TEST_F(KeptRecordsTest, ManyNamesCountToo) {
  auto records = KeptRecords::open({.max_bytes = 4000}, "test").value();
  std::vector<std::string> names;
  for (int number = 0; number < 100; ++number) names.push_back("name " + std::to_string(number));
  records.keep(names, "small");
  EXPECT_EQ(records.use().values, 0U);
}

TEST_F(KeptRecordsTest, ValuesComeBackAfterARestart) {
  {
    auto records = open();
    records.keep({"a", "b"}, "one");
    records.keep({"b"}, "two");
    records.keep({"c"}, std::string("\0\xFF", 2));
  }
  auto records = open();
  EXPECT_EQ(found(records, "a"), "none");
  EXPECT_EQ(found(records, "b"), "two");
  EXPECT_EQ(found(records, "c"), std::string("\0\xFF", 2));
  EXPECT_EQ(records.use().values, 2U);
  EXPECT_EQ(fs::status(folder_ / "answers").permissions(), fs::perms::owner_all);
}

TEST_F(KeptRecordsTest, AnotherModelHasNoneOfThem) {
  {
    auto records = open();
    records.keep({"a"}, "one");
  }
  auto other = open(1 << 20, "another");
  EXPECT_EQ(found(other, "a"), "none");
}

TEST_F(KeptRecordsTest, ASmallerBudgetAfterARestartKeepsTheNewest) {
  {
    auto records = open();
    for (int number = 0; number < 10; ++number) {
      records.keep({std::to_string(number)}, std::string(1000, 'x'));
    }
    records.keep({"large"}, std::string(5000, 'x'));
  }
  auto records = open(4000);
  EXPECT_EQ(records.find("large"), nullptr);
  EXPECT_EQ(records.find("6"), nullptr);
  EXPECT_NE(records.find("7"), nullptr);
  EXPECT_NE(records.find("9"), nullptr);
}

TEST_F(KeptRecordsTest, TheFileStaysInProportionToWhatIsAlive) {
  constexpr std::size_t kBudget = 200000;
  {
    auto records = open(kBudget);
    records.keep({"old and used"}, "still here");
    for (int number = 0; number < 500; ++number) {
      records.keep({std::to_string(number)}, std::string(20000, 'x'));
      ASSERT_NE(records.find("old and used"), nullptr);
      ASSERT_LT(fs::file_size(file()), 2 * kBudget + (1 << 20) + 30000);
    }
    EXPECT_EQ(records.use().write_failures, 0U);
  }
  auto records = open(kBudget);
  EXPECT_NE(records.find("499"), nullptr);
  EXPECT_NE(records.find("495"), nullptr);
}

TEST_F(KeptRecordsTest, AFileWrittenAnewEndsWithWhatWasUsedLast) {
  int number = 0;
  {
    auto records = open(200000);
    records.keep({"used"}, "small");
    std::uintmax_t before = 0;
    while (fs::file_size(file()) >= before) {
      ASSERT_LT(number, 1000) << "the file is never written anew";
      before = fs::file_size(file());
      static_cast<void>(records.find("used"));
      records.keep({std::to_string(number++)}, std::string(20000, 'x'));
    }
  }
  auto records = open(30000);
  EXPECT_NE(records.find(std::to_string(number - 1)), nullptr);
  EXPECT_EQ(records.find(std::to_string(number - 2)), nullptr);
  EXPECT_NE(records.find("used"), nullptr);
}

TEST_F(KeptRecordsTest, DamageIsCountedAndCostsNothingElse) {
  {
    auto records = open();
    records.keep({"a"}, "one");
    records.keep({"b"}, "two");
  }
  std::string content = read_whole_file(file()).value();
  content[content.find("one")] = 'O';
  ASSERT_TRUE(write_whole_file(file(), std::as_bytes(std::span(content))));
  fs::permissions(file(), fs::perms::owner_read | fs::perms::owner_write);
  auto records = open();
  EXPECT_EQ(found(records, "a"), "none");
  EXPECT_EQ(found(records, "b"), "two");
  EXPECT_EQ(records.use().dropped, 1U);
}

TEST_F(KeptRecordsTest, SaysWhatIsWrongWithTheOptions) {
  const auto large = KeptRecords::open({.max_bytes = kMostKeptBytes + 1}, "test");
  ASSERT_FALSE(large.has_value());
  EXPECT_EQ(large.error().code, ErrorCode::kBadRequest);
  const auto first = open();
  const auto second = KeptRecords::open({.memory = folder_.path(), .model = "m"}, "test");
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code, ErrorCode::kOverloaded);
}

TEST_F(KeptRecordsTest, ManyThreadsMayUseIt) {
  auto records = open(20000);
  const auto work = [&records](const std::string& thread) {
    for (int number = 0; number < 300; ++number) {
      const std::string name = thread + std::to_string(number);
      records.keep({name}, name);
      const auto value = records.find(name);
      EXPECT_TRUE(value == nullptr || *value == name);
      static_cast<void>(records.find("b" + std::to_string(number)));
    }
  };
  {
    TaskThread other;
    other.post([&work] { work("a"); });
    work("b");
  }
  EXPECT_LE(records.use().bytes, 20000U);
}

TEST_F(KeptRecordsTest, NamesOfTenantsCannotBeMixedUp) {
  EXPECT_NE(tenant_name("a", "bc"), tenant_name("ab", "c"));
  EXPECT_NE(tenant_name("", "1:a"), tenant_name("1", ":a"));
  EXPECT_NE(tenant_name("1:a", "b"), tenant_name("1", ":ab"));
  EXPECT_EQ(tenant_name("a", "b"), tenant_name("a", "b"));
}

}  // namespace
}  // namespace locket::service
