#include "base/memory_region.h"

#include <cstdint>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

#include "base/check.h"

namespace locket {

MemoryRegion::MemoryRegion(std::size_t bytes, Pages pages) : size_(bytes) {
  LOCKET_CHECK(bytes > 0);
  void* const address = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  LOCKET_CHECK(address != MAP_FAILED);
  data_ = static_cast<std::byte*>(address);
  // A wish, not a need: a system without large pages refuses it.
  if (pages == Pages::kLarge) static_cast<void>(::madvise(address, bytes, MADV_HUGEPAGE));
}

MemoryRegion::MemoryRegion(MemoryRegion&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MemoryRegion::~MemoryRegion() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

void MemoryRegion::forget(std::size_t offset, std::size_t bytes) {
  LOCKET_CHECK(offset <= size_ && bytes <= size_ - offset);
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t first = (offset + page - 1) / page * page;
  const std::size_t end = (offset + bytes) / page * page;
  if (first >= end) return;
  LOCKET_CHECK(::madvise(data_ + first, end - first, MADV_DONTNEED) == 0);
}

}  // namespace locket
