#include "tensor/aligned_buffer.h"

#include <algorithm>
#include <cstdint>
#include <gtest/gtest.h>
#include <utility>

namespace locket::tensor {
namespace {

TEST(AlignedBufferTest, IsAlignedAndZero) {
  for (const std::size_t size : {1, 63, 64, 65, 1'000, 113'920}) {
    AlignedBuffer buffer(size);
    EXPECT_EQ(buffer.size(), size);
    EXPECT_EQ(buffer.bytes().size(), size);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % AlignedBuffer::kAlignment, 0U);
    EXPECT_TRUE(std::ranges::all_of(buffer.bytes(), [](std::byte b) { return b == std::byte{0}; }));
    buffer.data()[size - 1] = std::byte{1};
  }
}

TEST(AlignedBufferTest, MayBeEmpty) {
  const AlignedBuffer none;
  EXPECT_EQ(none.size(), 0U);
  EXPECT_EQ(none.data(), nullptr);
  EXPECT_TRUE(none.bytes().empty());
  EXPECT_EQ(AlignedBuffer(0).data(), nullptr);
}

TEST(AlignedBufferTest, MovesWithItsBytes) {
  AlignedBuffer first(100);
  first.data()[7] = std::byte{42};
  const std::byte* place = first.data();
  const AlignedBuffer second = std::move(first);
  EXPECT_EQ(second.data(), place);
  EXPECT_EQ(second.size(), 100U);
  EXPECT_EQ(second.bytes()[7], std::byte{42});
}

TEST(AlignedBufferTest, LiesOnLargePagesFromAnAgreedSizeOn) {
  for (const std::size_t size : {AlignedBuffer::kLargeBytes, AlignedBuffer::kLargeBytes + 1}) {
    AlignedBuffer buffer(size);
    EXPECT_EQ(buffer.size(), size);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % AlignedBuffer::kLargePage, 0U);
    EXPECT_TRUE(std::ranges::all_of(buffer.bytes(), [](std::byte b) { return b == std::byte{0}; }));
    buffer.data()[size - 1] = std::byte{1};
  }
}

TEST(AlignedBufferTest, TakesThePlaceOfAnotherOneOfAnySize) {
  for (const std::size_t from : {std::size_t{100}, AlignedBuffer::kLargeBytes}) {
    for (const std::size_t to : {std::size_t{100}, AlignedBuffer::kLargeBytes}) {
      AlignedBuffer first(from);
      first.data()[7] = std::byte{42};
      AlignedBuffer second(to);
      second = std::move(first);
      EXPECT_EQ(second.size(), from);
      EXPECT_EQ(second.bytes()[7], std::byte{42});
      second = AlignedBuffer(to);
      EXPECT_EQ(second.bytes()[7], std::byte{0});
    }
  }
}

}  // namespace
}  // namespace locket::tensor
