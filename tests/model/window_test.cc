#include "model/window.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <vector>

#include "tests/model/mechanism_inputs.h"

namespace locket::model {
namespace {

constexpr std::size_t kWidth = 32;

cache::KvLayout ring_layout(std::int64_t slots, kernels::RowFormat format) {
  cache::KvLayout layout;
  layout.streams.push_back({.name = "rows", .row_bytes = 1});
  layout.rings.push_back({.slots = 3, .row_bytes = 5});
  layout.rings.push_back({.slots = slots, .row_bytes = row_bytes(format, kWidth)});
  return layout;
}

std::vector<std::byte> stored(kernels::RowFormat format, std::span<const float> row) {
  std::vector<std::byte> bytes(row_bytes(format, kWidth));
  encode_row(format, row, bytes);
  return bytes;
}

// Feeds rows in steps of the given lengths and checks everything that each position can see.
class WindowTest : public ::testing::TestWithParam<kernels::RowFormat> {
 protected:
  static constexpr std::int64_t kSlots = 7;

  void feed(TestMemory& memory, const tensor::FloatMatrix& rows, std::size_t first,
            std::size_t count, std::int64_t segment_start) {
    const cache::KvView view = memory.view();
    const StepPart step = {.memory = &view,
                           .first_position = static_cast<std::int64_t>(first),
                           .count = count,
                           .segment_start = segment_start};
    const WindowRows window = update_window({.slots = kSlots, .ring = 1},
                                            rows_of(rows, first, first + count), step, GetParam());
    for (std::size_t i = 0; i < count; ++i) {
      const std::int64_t position = step.position(i);
      for (std::int64_t p = std::max(segment_start, position - kSlots + 1); p <= position; ++p) {
        const auto seen = window.row(p);
        EXPECT_TRUE(
            std::ranges::equal(seen, stored(GetParam(), rows.row(static_cast<std::size_t>(p)))))
            << "row " << p << " at position " << position;
      }
    }
  }

  // The ring holds the last min(slots, count) rows, each in its slot.
  void expect_ring(TestMemory& memory, const tensor::FloatMatrix& rows, std::size_t count) {
    const cache::KvView view = memory.view();
    const auto newest = static_cast<std::int64_t>(count) - 1;
    for (std::int64_t p = std::max<std::int64_t>(0, newest - kSlots + 1); p <= newest; ++p) {
      EXPECT_TRUE(std::ranges::equal(view.ring_slot(1, p),
                                     stored(GetParam(), rows.row(static_cast<std::size_t>(p)))))
          << p;
    }
  }
};

TEST_P(WindowTest, StepsOfAnyLength) {
  const tensor::FloatMatrix rows = random_matrix(1, 60, kWidth);
  const std::vector<std::vector<std::size_t>> cuts = {
      {60},                        // longer than the ring many times
      {1, 1, 1, 57},               // a short prompt, then a long step
      {3, 4, 7, 8, 6, 14, 15, 3},  // around the ring's length
      std::vector<std::size_t>(60, 1),
      {6, 1, 1, 1, 51}};
  for (const auto& steps : cuts) {
    TestMemory memory(ring_layout(kSlots, GetParam()), 1);
    std::size_t first = 0;
    for (const std::size_t count : steps) {
      feed(memory, rows, first, count, 0);
      first += count;
      expect_ring(memory, rows, first);
    }
    EXPECT_EQ(first, 60U);
  }
}

// After a prefill of 3 into a ring that is not full, then far beyond the wrap.
TEST_P(WindowTest, AShortPrefillThenManySteps) {
  const tensor::FloatMatrix rows = random_matrix(2, 200, kWidth);
  TestMemory memory(ring_layout(kSlots, GetParam()), 1);
  feed(memory, rows, 0, 3, 0);
  for (std::size_t position = 3; position < 200; ++position) {
    feed(memory, rows, position, 1, 0);
    expect_ring(memory, rows, position + 1);
  }
}

// Slots of positions below the start of the segment are old and must not be read.
TEST_P(WindowTest, NothingBelowTheSegmentIsRead) {
  const tensor::FloatMatrix rows = random_matrix(3, 40, kWidth);
  TestMemory memory(ring_layout(kSlots, GetParam()), 1);
  const cache::KvView view = memory.view();
  for (std::int64_t slot = 0; slot < kSlots; ++slot) {
    std::ranges::fill(view.ring_slot(1, slot), std::byte{0xFF});
  }
  feed(memory, rows, 20, 2, 20);
  feed(memory, rows, 22, 1, 20);
  feed(memory, rows, 23, 9, 20);
}

// A single token costs no copy: what it sees lies in the ring.
TEST_P(WindowTest, RowsOfASingleTokenAreThoseOfTheRing) {
  const tensor::FloatMatrix rows = random_matrix(5, 30, kWidth);
  TestMemory memory(ring_layout(kSlots, GetParam()), 1);
  feed(memory, rows, 0, 29, 0);
  const cache::KvView view = memory.view();
  const WindowRows window =
      update_window({.slots = kSlots, .ring = 1}, rows_of(rows, 29, 30),
                    {.memory = &view, .first_position = 29, .count = 1}, GetParam());
  for (std::int64_t p = 29 - kSlots + 1; p <= 29; ++p) {
    EXPECT_EQ(window.row(p).data(), view.ring_slot(1, p).data()) << p;
  }
}

TEST_P(WindowTest, OtherRingsAreLeftAlone) {
  TestMemory memory(ring_layout(kSlots, GetParam()), 1);
  feed(memory, random_matrix(4, 20, kWidth), 0, 20, 0);
  for (std::int64_t slot = 0; slot < 3; ++slot) {
    for (const std::byte byte : memory.view().ring_slot(0, slot)) EXPECT_EQ(byte, std::byte{0});
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, WindowTest,
                         ::testing::Values(kernels::RowFormat::kFp8, kernels::RowFormat::kF32),
                         [](const auto& test_case) {
                           return test_case.param == kernels::RowFormat::kFp8 ? "Fp8" : "F32";
                         });

}  // namespace
}  // namespace locket::model
