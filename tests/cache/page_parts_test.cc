#include "cache/page_parts.h"

#include <cstring>
#include <gtest/gtest.h>
#include <vector>

namespace locket::cache {
namespace {

KvLayout layout() {
  return {
      .streams = {{.name = "rows", .tokens_per_row = 2, .row_bytes = 3},
                  {.name = "keys", .tokens_per_row = 2, .row_bytes = 2, .part = PagePart::kKeys},
                  {.name = "rows", .tokens_per_row = 1, .row_bytes = 5},
                  {.name = "keys", .tokens_per_row = 1, .row_bytes = 1, .part = PagePart::kKeys}},
      .rings = {}};
}

std::vector<std::byte> numbered_page(const KvLayout& layout) {
  std::vector<std::byte> page(layout.page_bytes());
  for (std::size_t i = 0; i < page.size(); ++i) page[i] = static_cast<std::byte>(i * 7 % 251);
  return page;
}

TEST(PagePartsTest, RowsLieBeforeKeys) {
  const KvLayout kv = layout();
  EXPECT_EQ(kv.part_offset(PagePart::kKeys), 64U * 3 + 128 * 5);
  EXPECT_EQ(kv.part_bytes(PagePart::kKeys), 64U * 2 + 128);
  EXPECT_EQ(kv.part_offset(PagePart::kRows), 0U);
  EXPECT_EQ(kv.part_bytes(PagePart::kRows), 64U * 3 + 128 * 5);
  EXPECT_EQ(kv.page_bytes(), 256U + 192 + 640);
  EXPECT_EQ(kv.stream_offset(0), 0U);
  EXPECT_EQ(kv.stream_offset(2), 192U);
  EXPECT_EQ(kv.stream_offset(1), 832U);
  EXPECT_EQ(kv.stream_offset(3), 832U + 128);
}

TEST(PagePartsTest, AFullPartIsThePartAsItLies) {
  const KvLayout kv = layout();
  const std::vector<std::byte> page = numbered_page(kv);
  for (const PagePart part : {PagePart::kKeys, PagePart::kRows}) {
    std::vector<std::byte> packed(packed_bytes(kv, part, kTokensPerPage));
    ASSERT_EQ(packed.size(), kv.part_bytes(part));
    pack_part(kv, part, kTokensPerPage, page.data(), packed);
    EXPECT_EQ(std::memcmp(packed.data(), page.data() + kv.part_offset(part), packed.size()), 0);
  }
}

TEST(PagePartsTest, ATailComesBackRowForRow) {
  const KvLayout kv = layout();
  const std::vector<std::byte> page = numbered_page(kv);
  for (const std::int64_t tokens : {2, 6, 127, 128}) {
    SCOPED_TRACE(tokens);
    std::vector<std::byte> back(kv.page_bytes(), std::byte{0xee});
    for (const PagePart part : {PagePart::kKeys, PagePart::kRows}) {
      std::vector<std::byte> packed(packed_bytes(kv, part, tokens));
      pack_part(kv, part, tokens, page.data(), packed);
      unpack_part(kv, part, tokens, packed, back.data());
    }
    std::vector<std::byte> copied(kv.page_bytes(), std::byte{0xee});
    copy_rows(kv, tokens, page.data(), copied.data());
    EXPECT_EQ(back, copied);
    std::size_t same = 0;
    for (std::size_t i = 0; i < page.size(); ++i) same += back[i] != std::byte{0xee};
    const auto pairs = static_cast<std::size_t>(tokens / 2);
    EXPECT_GE(same + 8, pairs * 5 + static_cast<std::size_t>(tokens) * 6);
    for (std::size_t stream = 0; stream < kv.streams.size(); ++stream) {
      const std::size_t offset = kv.stream_offset(stream);
      const auto rows = static_cast<std::size_t>(tokens / kv.streams[stream].tokens_per_row);
      EXPECT_EQ(std::memcmp(back.data() + offset, page.data() + offset,
                            rows * kv.streams[stream].row_bytes),
                0);
    }
  }
}

}  // namespace
}  // namespace locket::cache
