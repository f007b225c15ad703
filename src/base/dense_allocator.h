// Memory for small blocks that stay: nodes of a long-lived structure, kept apart from what requests
// take and free. In the common heap each of them would hold the page on which it happened to land,
// and a server would keep the pages of its busiest hour.
//
// Blocks of one size lie together; freed ones are used again by the next of their size. What has
// been taken from the system is kept. Thread-safe.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory_resource>
#include <set>
#include <utility>
#include <vector>

namespace locket {

std::pmr::memory_resource& dense_memory();

// Stateless: containers move as with the standard allocator.
template <class T>
class DenseAllocator {
 public:
  using value_type = T;

  DenseAllocator() = default;
  template <class Other>
  DenseAllocator(const DenseAllocator<Other>&) {}  // NOLINT(google-explicit-constructor)

  T* allocate(std::size_t count) {
    return static_cast<T*>(dense_memory().allocate(count * sizeof(T), alignof(T)));
  }
  void deallocate(T* block, std::size_t count) {
    dense_memory().deallocate(block, count * sizeof(T), alignof(T));
  }

  friend bool operator==(const DenseAllocator&, const DenseAllocator&) { return true; }
};

template <class T>
using DenseVector = std::vector<T, DenseAllocator<T>>;
template <class T>
using DenseSet = std::set<T, std::less<T>, DenseAllocator<T>>;
template <class Key, class Value>
using DenseMap = std::map<Key, Value, std::less<Key>, DenseAllocator<std::pair<const Key, Value>>>;

}  // namespace locket
