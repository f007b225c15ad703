// Address space that costs memory only where it has been touched: zero bytes until the first
// write.
// Movable, not copyable; not thread-safe but for the bytes themselves.
#pragma once

#include <cstddef>

namespace locket {

class MemoryRegion {
 public:
  // Large pages are asked for where the system has them: most of the cost of new memory is the
  // number of its pages. Memory is then taken in steps of 2 MiB.
  enum class Pages { kSystem, kLarge };
  // The machine's refusal is a failed check: only address space is asked for.
  explicit MemoryRegion(std::size_t bytes, Pages pages = Pages::kSystem);
  MemoryRegion(MemoryRegion&& other) noexcept;
  MemoryRegion& operator=(MemoryRegion&&) = delete;
  ~MemoryRegion();

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }

  // Gives the memory of a range back, as far as whole pages of the system lie in it; those bytes
  // are zero afterwards.
  void forget(std::size_t offset, std::size_t bytes);

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace locket
