#include "cache/kv_layout.h"

#include <gtest/gtest.h>

namespace locket::cache {
namespace {

// DeepSeek-V4.1-Flash: sources at layers 2, 8 and 14 (two tokens a row) and 20 (one), 512-wide rows
// and 128-wide keys in FP4, 128-slot rings of FP8 rows in `ring_layers` layers.
KvLayout v41_layout(std::int64_t ring_layers) {
  KvLayout layout;
  for (const std::int64_t layer : {2, 8, 14, 20}) {
    const std::int64_t ratio = layer == 20 ? 1 : 2;
    layout.streams.push_back(
        {.name = "rows", .layer = layer, .tokens_per_row = ratio, .row_bytes = 288});
    layout.streams.push_back(
        {.name = "index keys", .layer = layer, .tokens_per_row = ratio, .row_bytes = 68});
  }
  for (std::int64_t layer = 0; layer < ring_layers; ++layer) {
    layout.rings.push_back({.layer = layer, .slots = 128, .row_bytes = 528});
  }
  return layout;
}

TEST(KvLayoutTest, TakesTheReleasedBytes) {
  const KvLayout layout = v41_layout(40);
  EXPECT_EQ(layout.bytes_per_token(), 890.0);
  EXPECT_EQ(layout.page_bytes(), 113'920U);
  EXPECT_EQ(layout.ring_bytes(), 2'703'360U);
  EXPECT_EQ(v41_layout(20).ring_bytes(), 20U * 128 * 528);
  EXPECT_EQ(v41_layout(20).ring_bytes(), 1'351'680U);
  EXPECT_EQ(layout.largest_tokens_per_row(), 2);
}

TEST(KvLayoutTest, StreamsFollowEachOther) {
  const KvLayout layout = v41_layout(3);
  EXPECT_EQ(layout.stream_offset(0), 0U);
  EXPECT_EQ(layout.stream_offset(1), 64U * 288);
  EXPECT_EQ(layout.stream_offset(2), 64U * (288 + 68));
  EXPECT_EQ(layout.stream_offset(6), 3U * 64 * 356);
  EXPECT_EQ(layout.stream_offset(7), 3U * 64 * 356 + 128 * 288);
  EXPECT_EQ(layout.ring_offset(0), 0U);
  EXPECT_EQ(layout.ring_offset(2), 2U * 128 * 528);
  EXPECT_EQ(layout.ring_offset(3), layout.ring_bytes());
}

// Rings that every prompt makes anew are not part of a snapshot.
TEST(KvLayoutTest, ASnapshotHoldsTheKeptRings) {
  KvLayout layout = v41_layout(40);
  for (std::size_t ring = 20; ring < 40; ++ring) {
    layout.rings[ring].kind = RingStream::Kind::kRebuilt;
  }
  EXPECT_EQ(layout.snapshot_bytes(), 1'351'680U);
  EXPECT_EQ(v41_layout(7).snapshot_bytes(), v41_layout(7).ring_bytes());
  layout.rings[39].kind = RingStream::Kind::kKept;
  EXPECT_DEATH(static_cast<void>(layout.snapshot_bytes()), "check failed");
}

TEST(KvLayoutTest, TakesAnyRatioThatDividesAPage) {
  for (const std::int64_t ratio : {1, 2, 4, 8, 16, 32, 64, 128}) {
    const RowStream stream = {.name = "rows", .tokens_per_row = ratio, .row_bytes = 7};
    EXPECT_EQ(stream.rows_per_page(), 128 / ratio);
    EXPECT_EQ(stream.page_bytes(), static_cast<std::size_t>(128 / ratio) * 7);
  }
  const KvLayout layout = {.streams = {{.name = "a", .tokens_per_row = 4, .row_bytes = 10},
                                       {.name = "b", .tokens_per_row = 128, .row_bytes = 3},
                                       {.name = "c", .tokens_per_row = 1, .row_bytes = 1}},
                           .rings = {}};
  EXPECT_EQ(layout.page_bytes(), 320U + 3 + 128);
  EXPECT_EQ(layout.bytes_per_token(), 451.0 / 128.0);
  EXPECT_EQ(layout.largest_tokens_per_row(), 128);
}

TEST(KvLayoutTest, AnEmptyLayoutTakesNothing) {
  const KvLayout layout;
  EXPECT_EQ(layout.page_bytes(), 0U);
  EXPECT_EQ(layout.ring_bytes(), 0U);
  EXPECT_EQ(layout.bytes_per_token(), 0.0);
  EXPECT_EQ(layout.largest_tokens_per_row(), 1);
}

TEST(KvLayoutTest, PagesAreRoundedUp) {
  EXPECT_EQ(page_count(0), 0);
  EXPECT_EQ(page_count(1), 1);
  EXPECT_EQ(page_count(127), 1);
  EXPECT_EQ(page_count(128), 1);
  EXPECT_EQ(page_count(129), 2);
  EXPECT_EQ(page_count(std::int64_t{1} << 40), std::int64_t{1} << 33);
}

TEST(KvLayoutDeathTest, OffsetsBeyondTheLastStreamAreRefused) {
  const KvLayout layout = v41_layout(1);
  EXPECT_DEATH(layout.stream_offset(8), "check failed");
  EXPECT_DEATH(layout.ring_offset(2), "check failed");
}

}  // namespace
}  // namespace locket::cache
