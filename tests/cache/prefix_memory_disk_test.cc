// The memory with a disk below it.
#include <gtest/gtest.h>

#include "cache/disk_catalog.h"
#include "cache/prefix_memory.h"
#include "tests/cache/memory_world.h"

namespace locket::cache {
namespace {

std::span<const std::int32_t> first(const Tokens& tokens, std::size_t count) {
  return std::span(tokens).first(count);
}

TEST(PrefixMemoryDiskTest, EverythingIsThereAfterARestart) {
  const TestFolder folder("memory_restart");
  MemoryWorld world({.directory = folder.path()});
  const Tokens text = random_tokens(1, 1'000);
  EXPECT_EQ(world.request(text), 0);
  world.restart();
  {
    WorldSequence sequence(world.memory(), world.pool());
    ASSERT_TRUE(sequence.open(text));
    EXPECT_EQ(sequence.hit(), 1'000);
    EXPECT_EQ(sequence.disk_hit(), 1'000);
    EXPECT_TRUE(sequence.check());
    EXPECT_EQ(sequence.restore_best_rings(), 896);
    EXPECT_GT(sequence.lease().restore_seconds(), 0.0);
  }
  EXPECT_EQ(world.request(joined(first(text, 517), random_tokens(2, 99))), 516);
  world.close();
}

TEST(PrefixMemoryDiskTest, WhatDoesNotFitIntoMemoryComesFromDisk) {
  const TestFolder folder("memory_small");
  const KvLayout layout = world_layout();
  MemoryWorld world(
      {.budget_bytes = 12 * (layout.page_bytes() + 1'500), .directory = folder.path()});
  std::vector<Tokens> texts;
  for (std::uint32_t i = 0; i < 12; ++i) texts.push_back(random_tokens(10 + i, 500));
  for (const Tokens& text : texts) EXPECT_EQ(world.request(text), 0);
  for (int round = 0; round < 2; ++round) {
    for (const Tokens& text : texts) EXPECT_EQ(world.request(text), 500);
  }
  world.memory().flush();
  EXPECT_EQ(world.disk().counts().pages_written, 12U * 4) << "every page once";
  world.close();
}

TEST(PrefixMemoryDiskTest, OnlyWhatIsNewIsWritten) {
  const TestFolder folder("memory_new");
  MemoryWorld world({.directory = folder.path()});
  const Tokens text = random_tokens(30, 2'000);
  std::uint64_t written = 0;
  for (std::size_t length = 200; length <= 2'000; length += 200) {
    const Tokens part(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(length));
    world.request(part);
    world.memory().flush();
    const std::uint64_t pages = world.disk().counts().pages_written;
    EXPECT_LE(pages - written, 3U) << "at " << length;
    written = pages;
    world.request(part);
    world.memory().flush();
    EXPECT_EQ(world.disk().counts().pages_written, written) << "the same again";
  }
  world.close();
}

TEST(PrefixMemoryDiskTest, ALongerPageReplacesItsTail) {
  const TestFolder folder("memory_tails");
  MemoryWorld world({.directory = folder.path()});
  const Tokens text = random_tokens(31, 600);
  for (const std::size_t length : {300, 340, 384, 400, 600}) {
    world.request(Tokens(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(length)));
    world.memory().flush();
  }
  const CatalogTotals totals = count_stored(world.disk());
  EXPECT_EQ(totals.pages, 5) << "the tail is one of them";
  EXPECT_EQ(totals.tails, 1);
  EXPECT_EQ(totals.tokens, 600);
  EXPECT_EQ(list_prefixes(world.disk()).size(), 1U);
  world.restart();
  EXPECT_EQ(world.request(text), 600);
  world.close();
}

// Turns that end faster than they are written leave nothing behind either.
TEST(PrefixMemoryDiskTest, TailsOfQuickTurnsAreReplacedToo) {
  const TestFolder folder("memory_quick_tails");
  MemoryWorld world({.directory = folder.path()});
  const Tokens text = random_tokens(41, 900);
  for (std::size_t length = 30; length <= 900; length += 30) {
    world.request(Tokens(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(length)));
  }
  world.memory().flush();
  const CatalogTotals totals = count_stored(world.disk());
  EXPECT_EQ(totals.tails, 1);
  EXPECT_EQ(totals.tokens, 900);
  world.close();
}

// After a restart the tail on disk is found, used, and replaced when its page fills.
TEST(PrefixMemoryDiskTest, ARestoredTailIsReplacedToo) {
  const TestFolder folder("memory_restored_tail");
  MemoryWorld world({.directory = folder.path()});
  const Tokens text = random_tokens(32, 500);
  world.request(Tokens(text.begin(), text.begin() + 301));
  world.restart();
  EXPECT_EQ(world.request(text), 300);
  world.memory().flush();
  const CatalogTotals totals = count_stored(world.disk());
  EXPECT_EQ(totals.pages, 4);
  EXPECT_EQ(totals.tails, 1);
  EXPECT_EQ(totals.tokens, 500);
  world.close();
}

// Rings of older turns go when nothing branches there; spaced ones stay.
TEST(PrefixMemoryDiskTest, RingsOfOlderTurnsAreSuperseded) {
  const TestFolder folder("memory_rings");
  MemoryWorld world({.directory = folder.path()});
  const Tokens text = random_tokens(33, 12'000);
  for (std::size_t length = 400; length <= 12'000; length += 400) {
    world.request(Tokens(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(length)));
  }
  world.memory().flush();
  const CatalogTotals totals = count_stored(world.disk());
  EXPECT_LE(totals.snapshots, 5)
      << "one at 8,192, those of the last turn, and one that stood there";
  EXPECT_GE(totals.snapshots, 2);
  world.close();
}

TEST(PrefixMemoryDiskTest, TwoTenantsOneFolder) {
  const TestFolder folder("memory_tenants");
  MemoryWorld world({.directory = folder.path()});
  const Tokens text = random_tokens(34, 300);
  world.request(text, "a");
  world.restart();
  EXPECT_EQ(world.request(text, "b"), 0);
  EXPECT_EQ(world.request(text, "a"), 300);
  world.close();
}

// What an operator shares is found by everybody, and what they add to it is theirs alone.
TEST(PrefixMemoryDiskTest, EverybodyUsesThePublicPrefix) {
  const TestFolder folder("memory_public");
  MemoryWorld world({.directory = folder.path(), .public_tenant = "public"});
  const Tokens shared = random_tokens(35, 500);
  world.request(shared, "public");
  world.restart();
  const Tokens a = joined(shared, random_tokens(36, 300));
  const Tokens b = joined(shared, random_tokens(37, 300));
  EXPECT_EQ(world.request(a, "a"), 500);
  EXPECT_EQ(world.request(b, "b"), 500);
  EXPECT_EQ(world.request(a, "b"), 500) << "what a has added is a's";
  EXPECT_EQ(world.request(a, "a"), 800);
  world.restart();
  EXPECT_EQ(world.request(a, "a"), 800);
  EXPECT_EQ(world.request(joined(shared, random_tokens(38, 10)), "c"), 500);
  EXPECT_EQ(world.request(shared, "public"), 500) << "the tail of the public prefix stays";
  {
    WorldSequence sequence(world.memory(), world.pool(), "d");
    ASSERT_TRUE(sequence.open(a));
    EXPECT_TRUE(sequence.check());
    EXPECT_EQ(sequence.restore_best_rings(), 384) << "its rings, too";
  }
  world.close();
}

// A tenant's own prefix that goes as far is used, and a shorter one in memory goes on.
TEST(PrefixMemoryDiskTest, WhatIsOwnComesBeforeWhatIsPublic) {
  const TestFolder folder("memory_public_own");
  MemoryWorld world({.directory = folder.path(), .public_tenant = "public"});
  const Tokens shared = random_tokens(39, 700);
  world.request(shared, "public");
  world.memory().flush();
  EXPECT_EQ(world.request({shared.begin(), shared.begin() + 300}, "a"), 300);
  world.memory().flush();
  WorldSequence sequence(world.memory(), world.pool(), "a");
  ASSERT_TRUE(sequence.open(joined(shared, random_tokens(40, 50))));
  EXPECT_EQ(sequence.hit(), 700);
  EXPECT_EQ(sequence.disk_hit(), 700 - 256) << "two pages were in memory";
  EXPECT_TRUE(sequence.check());
}

// B10 on disk: what an arriving request has found stays until it is read, however full the disk is.
TEST(PrefixMemoryDiskTest, B10_WhatARequestReadsIsNotEvictedMeanwhile) {
  const TestFolder folder("memory_holds");
  constexpr std::size_t kRowBytes = 300;
  const KvLayout layout = world_layout(kRowBytes);
  MemoryWorld world({.directory = folder.path(),
                     .quota_bytes = (std::uint64_t{1} << 20) + 30 * layout.page_bytes(),
                     .row_bytes = kRowBytes});
  const Tokens oldest = random_tokens(40, 640);
  world.request(oldest);
  world.restart();
  {
    const PrefixPoint root = root_point(world.memory().root_label({}).root);
    const DiskMatch match = world.disk().find(root, oldest, world.memory().page_sizes());
    ASSERT_EQ(match.pages.size(), 5U);
    for (std::uint32_t i = 0; i < 30; ++i) world.request(random_tokens(100 + i, 640));
    world.memory().flush();
    EXPECT_GT(world.disk().counts().pages_evicted, 50U);
    std::vector<std::byte> keys(match.pages[4].keys.bytes);
    const PayloadLoad load = {.value = match.pages[4].keys, .target = keys};
    EXPECT_TRUE(world.disk().load({&load, 1}).empty());
    EXPECT_EQ(world.request(oldest), 640);
  }
  world.restart();
  for (std::uint32_t i = 0; i < 30; ++i) world.request(random_tokens(200 + i, 640));
  world.restart();
  EXPECT_LT(world.request(oldest), 640) << "nobody holds it any more";
  world.close();
}

// Two processes, one folder: the second one reads what the first has written.
TEST(PrefixMemoryDiskTest, AnotherProcessReadsAndStillHits) {
  const TestFolder folder("memory_reader");
  MemoryWorld writer({.directory = folder.path()});
  const Tokens early = random_tokens(35, 700);
  writer.request(early);
  writer.memory().flush();
  MemoryWorld reader({.directory = folder.path()});
  EXPECT_FALSE(reader.disk().is_writable());
  EXPECT_NE(reader.disk().read_only_reason(), "");
  EXPECT_EQ(reader.request(early), 700);
  const Tokens late = random_tokens(36, 500);
  writer.request(late);
  writer.memory().flush();
  EXPECT_EQ(reader.request(late), 500) << "what came later is seen, too";
  reader.close();
  writer.close();
}

}  // namespace
}  // namespace locket::cache
