#include "base/dense_allocator.h"

#include <memory>
#include <mutex>

namespace locket {
namespace {

class DenseMemory final : public std::pmr::memory_resource {
 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    const std::lock_guard lock(mutex_);
    return pools_.allocate(bytes, alignment);
  }
  void do_deallocate(void* block, std::size_t bytes, std::size_t alignment) override {
    const std::lock_guard lock(mutex_);
    pools_.deallocate(block, bytes, alignment);
  }
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
    return this == &other;
  }

  std::mutex mutex_;
  // Not the library's own with a lock: that one has pools for each thread.
  std::pmr::unsynchronized_pool_resource pools_{std::pmr::new_delete_resource()};
};

}  // namespace

std::pmr::memory_resource& dense_memory() {
  // Never destroyed: blocks may be freed by destructors of static objects.
  static DenseMemory& memory = *std::make_unique<DenseMemory>().release();
  return memory;
}

}  // namespace locket
