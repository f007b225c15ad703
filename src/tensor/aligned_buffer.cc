#include "tensor/aligned_buffer.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace locket::tensor {

AlignedBuffer::AlignedBuffer(std::size_t size_bytes) : size_(size_bytes) {
  if (size_bytes == 0) return;
  if (size_bytes >= kLargeBytes) {
    auto region =
        std::make_unique<MemoryRegion>(size_bytes + kLargePage, MemoryRegion::Pages::kLarge);
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

void AlignedBuffer::Free::operator()(std::byte* pointer) {
  if (region == nullptr) {
    std::free(pointer);
  } else {
    region.reset();
  }
}

}  // namespace locket::tensor
