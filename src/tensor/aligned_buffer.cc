#include "tensor/aligned_buffer.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/memory_region.h"

namespace locket::tensor {

AlignedBuffer::AlignedBuffer(std::size_t size_bytes) : size_(size_bytes) {
  if (size_bytes == 0) return;
  if (size_bytes >= kLargeBytes) {
    auto region =
        std::make_shared<MemoryRegion>(size_bytes + kLargePage, MemoryRegion::Pages::kLarge);
    const auto address = reinterpret_cast<std::uintptr_t>(region->data());
    std::byte* const first = region->data() + (kLargePage - address % kLargePage) % kLargePage;
    data_ = {first, Free{std::move(region)}};
    return;
  }
  const std::size_t rounded = (size_bytes + kAlignment - 1) / kAlignment * kAlignment;
  auto* pointer = static_cast<std::byte*>(std::aligned_alloc(kAlignment, rounded));
  LOCKET_CHECK(pointer != nullptr);
  std::memset(pointer, 0, rounded);
  data_.reset(pointer);
}

std::array<AlignedBuffer, 2> AlignedBuffer::two(std::size_t first_bytes, std::size_t second_bytes) {
  const std::size_t offset = (first_bytes + kAlignment - 1) / kAlignment * kAlignment;
  const auto whole = std::make_shared<AlignedBuffer>(offset + second_bytes);
  std::array<AlignedBuffer, 2> parts;
  parts[0].size_ = first_bytes;
  parts[1].size_ = second_bytes;
  if (first_bytes > 0) parts[0].data_ = {whole->data(), Free{whole}};
  if (second_bytes > 0) parts[1].data_ = {whole->data() + offset, Free{whole}};
  return parts;
}

void AlignedBuffer::Free::operator()(std::byte* pointer) const {
  if (memory == nullptr) std::free(pointer);
}

}  // namespace locket::tensor
