#include "engine/memory_overview.h"

#include <gtest/gtest.h>

#include "tests/engine/memory_fixture.h"

namespace locket::engine {
namespace {

using cache::MemorySurvey;
using cache::PageName;
using cache::SurveyedPage;

constexpr std::int64_t kPageTokens = cache::kTokensPerPage;

PageName name_of(int number) {
  PageName name = {};
  name[0] = static_cast<std::byte>(number);
  return name;
}

// A full page of 1000 bytes below `parent`; page 0 is the root.
SurveyedPage page(int number, int parent, std::int64_t depth) {
  return {.name = name_of(number),
          .parent = name_of(parent),
          .begin = depth * kPageTokens,
          .tokens = kPageTokens,
          .bytes = 1000};
}

TEST(MemoryOverviewTest, PagesWithoutAForkAreOneNode) {
  const MemoryOverview overview =
      draw_overview({.pages = {page(3, 2, 2), page(1, 0, 0), page(2, 1, 1)}}, {});
  ASSERT_EQ(overview.nodes.size(), 1U);
  EXPECT_EQ(overview.nodes[0].name, "030000000000");
  EXPECT_EQ(overview.nodes[0].parent, -1);
  EXPECT_EQ(overview.nodes[0].tokens, 3 * kPageTokens);
  EXPECT_EQ(overview.nodes[0].ram_bytes, 3000U);
  EXPECT_EQ(overview.nodes[0].disk_bytes, 0U);
}

TEST(MemoryOverviewTest, AForkBeginsNewNodesBelowTheSharedOne) {
  const MemoryOverview overview =
      draw_overview({.pages = {page(1, 0, 0), page(2, 1, 1), page(3, 1, 1), page(4, 3, 2)}}, {});
  ASSERT_EQ(overview.nodes.size(), 3U);
  EXPECT_EQ(overview.nodes[0].tokens, kPageTokens);
  EXPECT_EQ(overview.nodes[0].parent, -1);
  EXPECT_EQ(overview.nodes[1].name, "040000000000");
  EXPECT_EQ(overview.nodes[1].tokens, 2 * kPageTokens);
  EXPECT_EQ(overview.nodes[1].parent, 0);
  EXPECT_EQ(overview.nodes[2].name, "020000000000");
  EXPECT_EQ(overview.nodes[2].parent, 0);
}

TEST(MemoryOverviewTest, MemoryAndDiskArePutTogetherByName) {
  const MemoryOverview overview = draw_overview(
      {.pages = {page(1, 0, 0)}}, {.pages = {page(1, 0, 0), page(2, 1, 1), page(3, 2, 2)}});
  ASSERT_EQ(overview.nodes.size(), 2U);
  EXPECT_EQ(overview.nodes[0].ram_bytes, 1000U);
  EXPECT_EQ(overview.nodes[0].disk_bytes, 1000U);
  EXPECT_EQ(overview.nodes[1].ram_bytes, 0U);
  EXPECT_EQ(overview.nodes[1].disk_bytes, 2000U);
  EXPECT_EQ(overview.nodes[1].parent, 0);
}

TEST(MemoryOverviewTest, APinnedPageEndsItsNode) {
  MemorySurvey disk = {.pages = {page(1, 0, 0), page(2, 1, 1), page(3, 2, 2)}};
  disk.pages[1].is_pinned = true;
  const MemoryOverview overview = draw_overview({}, disk);
  ASSERT_EQ(overview.nodes.size(), 2U);
  EXPECT_TRUE(overview.nodes[0].is_pinned);
  EXPECT_EQ(overview.nodes[0].tokens, 2 * kPageTokens);
  EXPECT_FALSE(overview.nodes[1].is_pinned);
}

TEST(MemoryOverviewTest, UseOfAPageIsUseOfThePagesBeforeIt) {
  MemorySurvey ram = {.pages = {page(1, 0, 0), page(2, 1, 1), page(3, 1, 1)}};
  ram.pages[1].is_in_use = true;
  ram.pages[1].last_use_seconds = 50;
  ram.pages[2].last_use_seconds = 40;
  const MemoryOverview overview = draw_overview(ram, {});
  ASSERT_EQ(overview.nodes.size(), 3U);
  EXPECT_TRUE(overview.nodes[0].is_in_use);
  EXPECT_EQ(overview.nodes[0].last_use_seconds, 50);
  EXPECT_TRUE(overview.nodes[1].is_in_use);
  EXPECT_FALSE(overview.nodes[2].is_in_use);
  EXPECT_EQ(overview.nodes[2].last_use_seconds, 40);
}

TEST(MemoryOverviewTest, PagesWhoseWayIsLostAreLeftOut) {
  const MemoryOverview overview =
      draw_overview({.pages = {page(1, 0, 0), page(5, 4, 2), page(6, 5, 3)}}, {});
  ASSERT_EQ(overview.nodes.size(), 1U);
  EXPECT_EQ(overview.nodes[0].tokens, kPageTokens);
}

TEST(MemoryOverviewTest, OnlyTheLargestNodesAreKeptEachWithItsParent) {
  MemorySurvey ram;
  for (int branch = 0; branch < 20; ++branch) {
    ram.pages.push_back(page(100 + branch, 0, 0));
    // Two pages below, so that the first is a fork; the later branches have more.
    for (int child = 0; child < 2; ++child) {
      ram.pages.push_back(page(20 + 2 * branch + child, 100 + branch, 1));
      ram.pages.back().bytes = 1000 + static_cast<std::uint64_t>(branch);
    }
  }
  const MemoryOverview overview = draw_overview(ram, {}, 7);
  ASSERT_EQ(overview.nodes.size(), 7U);
  EXPECT_EQ(overview.nodes_left_out, 53U);
  EXPECT_TRUE(overview.is_complete);
  for (std::size_t index = 0; index < overview.nodes.size(); ++index) {
    EXPECT_LT(overview.nodes[index].parent, static_cast<std::int64_t>(index));
  }
  EXPECT_EQ(overview.nodes[0].name.substr(0, 2), "77");  // the last branch, 119
}

TEST(MemoryOverviewTest, SaysWhenThereWasMoreThanItLookedAt) {
  MemorySurvey disk = {.pages = {page(1, 0, 0)}};
  disk.is_complete = false;
  EXPECT_FALSE(draw_overview({}, disk).is_complete);
  EXPECT_FALSE(draw_overview(disk, {}).is_complete);
}

class MemoryWatchTest : public MemoryTest {};

TEST_F(MemoryWatchTest, ShowsWhatSessionsHaveLeftBehind) {
  const std::vector<TokenId> shared = ids(1, 300);
  read(joined(shared, ids(2, 200)));
  read(joined(shared, ids(3, 200)));
  memory_->flush();

  MemoryWatch watch(memory_.get());
  EXPECT_EQ(watch.latest()->version, 0U);
  watch.wait();
  const std::shared_ptr<const MemoryOverview> overview = watch.latest();
  ASSERT_EQ(overview->version, 1U);
  ASSERT_EQ(overview->nodes.size(), 3U);
  EXPECT_EQ(overview->nodes[0].parent, -1);
  EXPECT_EQ(overview->nodes[0].tokens, 256);
  EXPECT_EQ(overview->nodes[1].parent, 0);
  EXPECT_EQ(overview->nodes[2].parent, 0);
  std::uint64_t ram_bytes = 0;
  for (const OverviewNode& node : overview->nodes) {
    EXPECT_GT(node.ram_bytes, 0U);
    EXPECT_GT(node.disk_bytes, 0U);
    EXPECT_GT(node.last_use_seconds, 0);
    EXPECT_FALSE(node.is_in_use);
    ram_bytes += node.ram_bytes;
  }
  EXPECT_LE(ram_bytes, pool_->used_bytes());
}

TEST_F(MemoryWatchTest, ShowsWhatIsOnDiskOnlyAfterARestart) {
  read(ids(1, 300));
  restart();
  MemoryWatch watch(memory_.get());
  watch.latest();
  watch.wait();
  const std::shared_ptr<const MemoryOverview> overview = watch.latest();
  ASSERT_EQ(overview->nodes.size(), 1U);
  EXPECT_EQ(overview->nodes[0].ram_bytes, 0U);
  EXPECT_GT(overview->nodes[0].disk_bytes, 0U);
}

TEST_F(MemoryWatchTest, ARunningSessionHoldsItsNodes) {
  const std::vector<TokenId> prompt = ids(1, 300);
  Session running = session();
  ASSERT_TRUE(running.prefill(prompt));
  MemoryWatch watch(memory_.get());
  watch.latest();
  watch.wait();
  const std::shared_ptr<const MemoryOverview> overview = watch.latest();
  ASSERT_EQ(overview->nodes.size(), 1U);
  EXPECT_TRUE(overview->nodes[0].is_in_use);
}

TEST_F(MemoryWatchTest, LooksWhileSessionsRun) {
  MemoryWatch watch(memory_.get());
  for (std::uint32_t seed = 0; seed < 5; ++seed) {
    watch.latest();
    read(ids(seed, 200));
  }
  watch.wait();
  EXPECT_GE(watch.latest()->version, 1U);
}

TEST(MemoryWatchWithoutMemoryTest, ShowsNothing) {
  MemoryWatch watch(nullptr);
  watch.latest();
  watch.wait();
  EXPECT_EQ(watch.latest()->version, 0U);
}

}  // namespace
}  // namespace locket::engine
