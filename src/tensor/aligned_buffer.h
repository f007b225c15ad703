// Owned bytes at a 64-byte boundary, for everything that kernels stream: weights, pages, scratch.
// Zero-filled. Movable, not copyable.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

namespace locket::tensor {

class AlignedBuffer {
 public:
  static constexpr std::size_t kAlignment = 64;

  AlignedBuffer() = default;
  explicit AlignedBuffer(std::size_t size_bytes);

  std::size_t size() const { return size_; }
  std::byte* data() { return data_.get(); }
  const std::byte* data() const { return data_.get(); }
  std::span<std::byte> bytes() { return {data_.get(), size_}; }
  std::span<const std::byte> bytes() const { return {data_.get(), size_}; }

 private:
  struct Free {
    void operator()(std::byte* pointer) const;
  };
  std::unique_ptr<std::byte, Free> data_;
  std::size_t size_ = 0;
};

}  // namespace locket::tensor
