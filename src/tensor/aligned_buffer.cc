#include "tensor/aligned_buffer.h"

#include <cstdlib>
#include <cstring>

#include "base/check.h"

namespace locket::tensor {

AlignedBuffer::AlignedBuffer(std::size_t size_bytes) : size_(size_bytes) {
  if (size_bytes == 0) return;
  const std::size_t rounded = (size_bytes + kAlignment - 1) / kAlignment * kAlignment;
  auto* pointer = static_cast<std::byte*>(std::aligned_alloc(kAlignment, rounded));
  LOCKET_CHECK(pointer != nullptr);
  std::memset(pointer, 0, rounded);
  data_.reset(pointer);
}

void AlignedBuffer::Free::operator()(std::byte* pointer) const { std::free(pointer); }

}  // namespace locket::tensor
