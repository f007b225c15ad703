// The memory of one sequence: its pages in the pool and its rings. Pages are taken as the sequence
// grows and given back when it ends. Not thread-safe; the pool must outlive it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "cache/kv_layout.h"
#include "cache/kv_view.h"
#include "cache/page_pool.h"
#include "tensor/aligned_buffer.h"

namespace locket::cache {

class SequenceMemory {
 public:
  // REQUIRES: pool.page_bytes() == layout.page_bytes(); both outlive the sequence.
  SequenceMemory(const KvLayout& layout, PagePool& pool);
  SequenceMemory(SequenceMemory&&) noexcept;
  SequenceMemory& operator=(SequenceMemory&&) = delete;
  ~SequenceMemory();

  // Takes pages so that `token_count` tokens fit; on kOverBudget nothing has changed.
  [[nodiscard]] Status reserve_tokens(std::int64_t token_count);

  std::int64_t token_capacity() const;
  // Bytes that this sequence holds: pages and rings.
  std::size_t byte_count() const;
  const std::vector<PageId>& pages() const { return pages_; }

  // Valid until the next reserve_tokens() and not longer than the sequence.
  KvView view();

 private:
  void give_back();

  const KvLayout* layout_;
  PagePool* pool_;
  std::vector<PageId> pages_;
  tensor::AlignedBuffer rings_;
};

}  // namespace locket::cache
