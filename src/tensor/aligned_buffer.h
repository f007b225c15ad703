// Owned bytes at a 64-byte boundary, for everything that kernels stream: weights, pages, scratch.
// Zero-filled. Large ones lie on large pages where the system has them: streams are faster by
// what the translation of addresses costs, and new memory by a multiple. Movable, not copyable.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>

namespace locket::tensor {

class AlignedBuffer {
 public:
  static constexpr std::size_t kAlignment = 64;
  // From here on a buffer begins at a multiple of kLargePage.
  static constexpr std::size_t kLargeBytes = std::size_t{4} << 20;
  static constexpr std::size_t kLargePage = std::size_t{2} << 20;

  AlignedBuffer() = default;
  explicit AlignedBuffer(std::size_t size_bytes);
  // Two buffers in one piece of memory, for what is streamed together: a small one beside a large
  // one lies on large pages, too. The memory is given back when both are gone.
  static std::array<AlignedBuffer, 2> two(std::size_t first_bytes, std::size_t second_bytes);

  std::size_t size() const { return size_; }
  // Memory that a buffer of this size takes.
  static constexpr std::size_t taken_bytes(std::size_t size_bytes) {
    const std::size_t step = size_bytes >= kLargeBytes ? kLargePage : kAlignment;
    return (size_bytes + step - 1) / step * step;
  }
  static constexpr std::size_t taken_by_two(std::size_t first_bytes, std::size_t second_bytes) {
    return taken_bytes((first_bytes + kAlignment - 1) / kAlignment * kAlignment + second_bytes);
  }
  std::byte* data() { return data_.get(); }
  const std::byte* data() const { return data_.get(); }
  std::span<std::byte> bytes() { return {data_.get(), size_}; }
  std::span<const std::byte> bytes() const { return {data_.get(), size_}; }

 private:
  struct Free {
    std::shared_ptr<void> memory;  // of which it is a part; null: from the heap

    void operator()(std::byte* pointer) const;
  };
  std::unique_ptr<std::byte, Free> data_;
  std::size_t size_ = 0;
};

}  // namespace locket::tensor
