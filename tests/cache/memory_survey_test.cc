#include "cache/memory_survey.h"

#include <algorithm>
#include <gtest/gtest.h>

#include "cache/disk_catalog.h"
#include "tests/cache/memory_world.h"

namespace locket::cache {
namespace {

constexpr std::size_t kNoLimit = 1'000'000;

const SurveyedPage& page_at(const MemorySurvey& survey, std::int64_t begin) {
  const auto found = std::ranges::find(survey.pages, begin, &SurveyedPage::begin);
  EXPECT_NE(found, survey.pages.end()) << "no page begins at " << begin;
  return *found;
}

class MemorySurveyTest : public ::testing::Test {
 protected:
  MemorySurveyTest()
      : folder_(std::string("survey_") +
                ::testing::UnitTest::GetInstance()->current_test_info()->name()),
        world_({.directory = folder_.path()}) {}

  TestFolder folder_;
  MemoryWorld world_;
};

TEST_F(MemorySurveyTest, MemoryAndDiskShowTheSamePages) {
  world_.request(random_tokens(1, 3 * kTokensPerPage + 10));
  world_.memory().flush();
  const MemorySurvey ram = world_.memory().survey(kNoLimit);
  const MemorySurvey disk = survey_disk(world_.disk(), kNoLimit);
  ASSERT_EQ(ram.pages.size(), 4U);
  ASSERT_EQ(disk.pages.size(), 4U);
  EXPECT_TRUE(ram.is_complete);
  EXPECT_TRUE(disk.is_complete);
  for (std::int64_t begin = 0; begin <= 3 * kTokensPerPage; begin += kTokensPerPage) {
    const SurveyedPage& in_ram = page_at(ram, begin);
    const SurveyedPage& on_disk = page_at(disk, begin);
    EXPECT_EQ(in_ram.name, on_disk.name);
    EXPECT_EQ(in_ram.parent, on_disk.parent);
    EXPECT_EQ(in_ram.tokens, on_disk.tokens);
    EXPECT_EQ(in_ram.tokens, begin == 3 * kTokensPerPage ? 10 : kTokensPerPage);
    EXPECT_GT(in_ram.last_use_seconds, 0);
    EXPECT_FALSE(in_ram.is_in_use);
  }
  EXPECT_EQ(page_at(ram, kTokensPerPage).parent, page_at(ram, 0).name);
}

TEST_F(MemorySurveyTest, TheBytesOnDiskAreThoseOfTheCatalog) {
  world_.request(random_tokens(1, 5 * kTokensPerPage));
  world_.memory().flush();
  const CatalogTotals totals = count_stored(world_.disk());
  std::uint64_t bytes = 0;
  for (const SurveyedPage& page : survey_disk(world_.disk(), kNoLimit).pages) bytes += page.bytes;
  ASSERT_GT(totals.snapshot_bytes, 0U);
  EXPECT_EQ(bytes, totals.key_bytes + totals.row_bytes + totals.snapshot_bytes);
}

TEST_F(MemorySurveyTest, AnOpenSequenceUsesItsDeepestPage) {
  const Tokens tokens = random_tokens(1, 2 * kTokensPerPage);
  world_.request(tokens);
  WorldSequence sequence(world_.memory(), world_.pool());
  ASSERT_TRUE(sequence.open(tokens));
  const MemorySurvey ram = world_.memory().survey(kNoLimit);
  EXPECT_FALSE(page_at(ram, 0).is_in_use);
  EXPECT_TRUE(page_at(ram, kTokensPerPage).is_in_use);
}

TEST_F(MemorySurveyTest, ShowsPinsOfTheDisk) {
  world_.request(random_tokens(1, kTokensPerPage));
  world_.memory().flush();
  const PageName name = survey_disk(world_.disk(), kNoLimit).pages.at(0).name;
  ASSERT_TRUE(set_pin(world_.disk(), name, Pin::kOn));
  EXPECT_TRUE(survey_disk(world_.disk(), kNoLimit).pages.at(0).is_pinned);
  ASSERT_TRUE(set_pin(world_.disk(), name, Pin::kOff));
  EXPECT_FALSE(survey_disk(world_.disk(), kNoLimit).pages.at(0).is_pinned);
}

TEST_F(MemorySurveyTest, StopsWhereItIsToldAndSaysSo) {
  world_.request(random_tokens(1, 4 * kTokensPerPage));
  world_.memory().flush();
  const MemorySurvey ram = world_.memory().survey(3);
  EXPECT_EQ(ram.pages.size(), 3U);
  EXPECT_FALSE(ram.is_complete);
  const MemorySurvey disk = survey_disk(world_.disk(), 3);
  EXPECT_EQ(disk.pages.size(), 3U);
  EXPECT_FALSE(disk.is_complete);
  EXPECT_TRUE(world_.memory().survey(4).is_complete);
  EXPECT_TRUE(survey_disk(world_.disk(), 4).is_complete);
}

TEST_F(MemorySurveyTest, AMemoryOfManyPagesIsReadInPieces) {
  for (std::uint32_t seed = 0; seed < 30; ++seed) {
    world_.request(random_tokens(seed, 100 * kTokensPerPage));
  }
  const MemorySurvey ram = world_.memory().survey(kNoLimit);
  EXPECT_EQ(ram.pages.size(), 3000U);
  EXPECT_TRUE(ram.is_complete);
}

}  // namespace
}  // namespace locket::cache
