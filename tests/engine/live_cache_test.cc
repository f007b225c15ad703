// The bytes that a live memory takes: the released layout at its true row sizes, filled through the
// real write path, and sessions of a small model.
#include "engine/live_cache.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <string>

#include "checkpoint/config_json.h"
#include "model/generations/v41_config.h"
#include "model/generations/v41_layout.h"
#include "tests/support/sanitizer.h"
#include "tests/support/tiny_models.h"

namespace locket::engine {
namespace {

constexpr double kReleasedBytesPerToken = 890.0;

model::MemoryDescription released_memory() {
  const auto path = std::filesystem::path(LOCKET_TEST_DATA) / "configs" / "v41_flash_config.json";
  auto file = checkpoint::ConfigFile::open(path);
  EXPECT_TRUE(file) << file.error().message;
  auto config = model::read_v41_config(file->root());
  EXPECT_TRUE(config) << config.error().message;
  const model::V41Memory memory = model::make_v41_memory(*config, model::NumericsMode::kReference);
  return model::outline_v41(*config, memory).memory;
}

bool is_written(std::span<const std::byte> bytes) {
  return std::ranges::any_of(bytes, [](std::byte value) { return value != std::byte{0}; });
}

std::int64_t written_rows(const cache::KvView& view, std::size_t stream) {
  std::int64_t count = 0;
  for (std::int64_t row = 0; row < view.row_capacity(stream); ++row) {
    if (is_written(view.row(stream, row))) count += 1;
  }
  return count;
}

TEST(LiveCacheTest, HasTheReleasedLayout) {
  const model::MemoryDescription memory = released_memory();
  ASSERT_EQ(memory.layout.streams.size(), 8U);
  for (const cache::RowStream& stream : memory.layout.streams) {
    EXPECT_EQ(stream.row_bytes, stream.name == "rows" ? 288U : 68U);
    EXPECT_EQ(stream.tokens_per_row, stream.layer == 20 ? 1 : 2);
  }
  EXPECT_EQ(memory.layout.bytes_per_token(), kReleasedBytesPerToken);
  EXPECT_EQ(memory.layout.page_bytes(), 113'920U);
  EXPECT_EQ(memory.layout.ring_bytes(), 2'703'360U);
}

TEST(LiveCacheTest, GrowsBy890BytesATokenOver131072Tokens) {
  const auto size = fill_live_cache(released_memory(), 131072);
  ASSERT_TRUE(size) << size.error().message;
  EXPECT_EQ(size->page_bytes_per_token(), kReleasedBytesPerToken);
  EXPECT_EQ(size->ring_bytes, 2'703'360U);
  std::printf("pages %.4f, resident %.4f bytes a token, rings %llu bytes\n",
              size->page_bytes_per_token(), size->resident_bytes_per_token(),
              static_cast<unsigned long long>(size->ring_bytes));
  if (test_support::runs_with_sanitizer()) GTEST_SKIP() << "a sanitizer pads every allocation";
  EXPECT_LE(size->resident_bytes_per_token(), kReleasedBytesPerToken * 1.02);
  // Less would mean that the pages were not written.
  EXPECT_GE(size->resident_bytes_per_token(), kReleasedBytesPerToken * 0.98);
}

TEST(LiveCacheTest, WritesEveryRowThatTheTokensComplete) {
  const model::MemoryDescription memory = released_memory();
  cache::PagePool pool(memory.layout.page_bytes(), std::uint64_t{1} << 24);
  cache::SequenceMemory sequence(memory.layout, pool);
  ASSERT_TRUE(write_synthetic_tokens(memory, {.first = 0, .count = 128}, sequence));
  ASSERT_TRUE(write_synthetic_tokens(memory, {.first = 128, .count = 173}, sequence));
  EXPECT_EQ(sequence.pages().size(), 3U);
  const cache::KvView view = sequence.view();
  for (std::size_t stream = 0; stream < memory.layout.streams.size(); ++stream) {
    EXPECT_EQ(written_rows(view, stream), 301 / memory.layout.streams[stream].tokens_per_row);
  }
  for (std::size_t ring = 0; ring < memory.layout.rings.size(); ++ring) {
    for (std::int64_t slot = 0; slot < 128; ++slot) {
      EXPECT_TRUE(is_written(view.ring_slot(ring, slot))) << ring << " " << slot;
    }
  }
}

TEST(LiveCacheTest, ReportsAFullPool) {
  const model::MemoryDescription memory = released_memory();
  cache::PagePool pool(memory.layout.page_bytes(), 2 * memory.layout.page_bytes());
  cache::SequenceMemory sequence(memory.layout, pool);
  const Status status = write_synthetic_tokens(memory, {.first = 0, .count = 300}, sequence);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kOverBudget);
}

TEST(LiveCacheTest, RefusesMoreThanTheMachineHas) {
  const auto size = fill_live_cache(released_memory(), std::int64_t{1} << 40);
  ASSERT_FALSE(size);
  EXPECT_EQ(size.error().code, ErrorCode::kOverBudget);
  EXPECT_NE(size.error().message.find("1099511627776 tokens"), std::string::npos);
}

LiveCacheSize session_size(const model::V41Model& model, std::size_t token_count) {
  WorkerPool workers(1);
  const auto ids = test_support::random_ids(5, token_count, model.config().vocabulary_size);
  const auto size = measure_live_session(model, workers, ids);
  EXPECT_TRUE(size) << size.error().message;
  return *size;
}

TEST(LiveCacheTest, MeasuresASession) {
  for (const std::string& name : test_support::tiny_names()) {
    const model::V41Model& model = test_support::tiny_model(name, model::NumericsMode::kReference);
    const LiveCacheSize size = session_size(model, 640);
    EXPECT_EQ(size.tokens, 640);
    EXPECT_EQ(size.page_bytes_per_token(), model.memory().layout.bytes_per_token());
    EXPECT_EQ(size.ring_bytes, model.memory().layout.ring_bytes());
  }
}

// What a longer session has more than a shorter one: pages, and the ids.
TEST(LiveCacheTest, ASessionGrowsByItsPages) {
  if (test_support::runs_with_sanitizer()) GTEST_SKIP() << "a sanitizer pads every allocation";
  const model::V41Model& model = test_support::tiny_model("micro", model::NumericsMode::kReference);
  const LiveCacheSize shorter = session_size(model, 512);
  const LiveCacheSize longer = session_size(model, 2560);
  const double growth =
      static_cast<double>(longer.resident_bytes) - static_cast<double>(shorter.resident_bytes);
  const double per_token = growth / 2048;
  std::printf("resident growth %.2f bytes a token, pages %.2f\n", per_token,
              longer.page_bytes_per_token());
  EXPECT_GE(per_token, 0.9 * longer.page_bytes_per_token());
  EXPECT_LE(per_token, 1.2 * longer.page_bytes_per_token());
}

}  // namespace
}  // namespace locket::engine
