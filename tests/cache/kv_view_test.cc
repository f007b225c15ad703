#include "cache/kv_view.h"

#include <algorithm>
#include <cstdint>
#include <gtest/gtest.h>
#include <numeric>
#include <random>
#include <set>
#include <vector>

namespace locket::cache {
namespace {

KvLayout small_layout() {
  return {.streams = {{.name = "a", .tokens_per_row = 2, .row_bytes = 5},
                      {.name = "b", .tokens_per_row = 2, .row_bytes = 3},
                      {.name = "c", .tokens_per_row = 1, .row_bytes = 2},
                      {.name = "d", .tokens_per_row = 128, .row_bytes = 11}},
          .rings = {{.slots = 7, .row_bytes = 4}, {.slots = 16, .row_bytes = 9}}};
}

// Pages of one block of memory in a shuffled order.
class ShuffledPages {
 public:
  ShuffledPages(const KvLayout& layout, std::size_t count)
      : bytes_(layout.page_bytes() * count), rings_(layout.ring_bytes()) {
    std::vector<std::size_t> order(count);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), std::mt19937(4));
    for (const std::size_t page : order) {
      pages_.push_back(bytes_.data() + page * layout.page_bytes());
    }
  }

  const std::vector<std::byte*>& pages() const { return pages_; }
  std::byte* rings() { return rings_.data(); }

 private:
  std::vector<std::byte> bytes_;
  std::vector<std::byte> rings_;
  std::vector<std::byte*> pages_;
};

TEST(KvViewTest, ARowLiesInItsPageAtItsStreamsOffset) {
  const KvLayout layout = small_layout();
  ShuffledPages memory(layout, 5);
  const KvView view(layout, memory.pages(), memory.rings());
  EXPECT_EQ(view.row(0, 0).data(), memory.pages()[0]);
  EXPECT_EQ(view.row(0, 0).size(), 5U);
  EXPECT_EQ(view.row(0, 63).data(), memory.pages()[0] + 63 * 5);
  EXPECT_EQ(view.row(0, 64).data(), memory.pages()[1]);
  EXPECT_EQ(view.row(1, 65).data(), memory.pages()[1] + 64 * 5 + 3);
  EXPECT_EQ(view.row(2, 127).data(), memory.pages()[0] + 64 * 8 + 127 * 2);
  EXPECT_EQ(view.row(2, 128).data(), memory.pages()[1] + 64 * 8);
  EXPECT_EQ(view.row(3, 4).data(), memory.pages()[4] + 64 * 8 + 128 * 2);
  EXPECT_EQ(view.row(3, 4).size(), 11U);
}

TEST(KvViewTest, RowsFillThePagesWithoutOverlapOrHole) {
  const KvLayout layout = small_layout();
  ShuffledPages memory(layout, 5);
  const KvView view(layout, memory.pages(), memory.rings());
  std::set<const std::byte*> seen;
  for (std::size_t stream = 0; stream < layout.streams.size(); ++stream) {
    EXPECT_EQ(view.row_capacity(stream), 5 * layout.streams[stream].rows_per_page());
    for (std::int64_t row = 0; row < view.row_capacity(stream); ++row) {
      for (const std::byte& byte : view.row(stream, row)) {
        EXPECT_TRUE(seen.insert(&byte).second) << "stream " << stream << ", row " << row;
      }
    }
  }
  EXPECT_EQ(seen.size(), 5 * layout.page_bytes());
}

TEST(KvViewTest, RingSlotsFollowThePosition) {
  const KvLayout layout = small_layout();
  ShuffledPages memory(layout, 1);
  const KvView view(layout, memory.pages(), memory.rings());
  EXPECT_EQ(view.ring_slot(0, 0).data(), memory.rings());
  EXPECT_EQ(view.ring_slot(0, 6).data(), memory.rings() + 6 * 4);
  EXPECT_EQ(view.ring_slot(0, 7).data(), memory.rings());
  EXPECT_EQ(view.ring_slot(0, 7 * 1'000'000 + 3).data(), memory.rings() + 3 * 4);
  EXPECT_EQ(view.ring_slot(1, 15).data(), memory.rings() + 7 * 4 + 15 * 9);
  EXPECT_EQ(view.ring_slot(1, 16).data(), memory.rings() + 7 * 4);
  EXPECT_EQ(view.ring_slot(1, 16).size(), 9U);
}

// 2,048 pages of rows of 2^20 bytes and more pass 2^32 bytes many times over. The pages are
// addresses only, nothing is read.
TEST(KvViewTest, OffsetsHave64Bits) {
  const KvLayout layout = {
      .streams = {{.name = "e", .tokens_per_row = 1, .row_bytes = std::size_t{1} << 20},
                  {.name = "f", .tokens_per_row = 1, .row_bytes = std::size_t{1} << 26}},
      .rings = {{.slots = std::int64_t{1} << 33, .row_bytes = 528}}};
  EXPECT_EQ(layout.page_bytes(), (std::size_t{1} << 27) + (std::size_t{1} << 33));
  const auto at = [](std::uint64_t address) { return reinterpret_cast<std::byte*>(address); };
  const auto address = [](std::span<std::byte> bytes) {
    return reinterpret_cast<std::uint64_t>(bytes.data());
  };
  constexpr std::uint64_t kBase = std::uint64_t{1} << 32;
  std::vector<std::byte*> pages;
  for (std::uint64_t page = 0; page < 2'049; ++page) {
    pages.push_back(at(kBase + page * layout.page_bytes()));
  }
  const KvView view(layout, pages, at(kBase));
  const std::int64_t last_row = 2'048 * kTokensPerPage + 127;
  EXPECT_EQ(view.row_capacity(1), last_row + 1);
  EXPECT_EQ(address(view.row(0, 2'048 * kTokensPerPage)), kBase + 2'048 * layout.page_bytes());
  EXPECT_EQ(address(view.row(1, last_row)), kBase + 2'048 * layout.page_bytes() +
                                                (std::uint64_t{1} << 27) +
                                                127 * (std::uint64_t{1} << 26));
  const std::int64_t far = (std::int64_t{1} << 33) - 1;
  EXPECT_EQ(address(view.ring_slot(0, far)), kBase + static_cast<std::uint64_t>(far) * 528);
  EXPECT_EQ(address(view.ring_slot(0, far + 2)), kBase + 528);
}

}  // namespace
}  // namespace locket::cache
