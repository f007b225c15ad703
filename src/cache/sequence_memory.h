// The memory of one sequence: its pages in the pool and its rings. Pages are taken as the sequence
// grows; the first ones may be shared with other sequences, which must not write to them. All
// references are given back when the sequence ends. Not thread-safe; the pool must outlive it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
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

  // kOverBudget if `token_count` tokens would not even fit into an empty pool.
  [[nodiscard]] Status check_budget(std::int64_t token_count) const;
  // Takes pages so that `token_count` tokens fit; on kOverBudget nothing has changed.
  [[nodiscard]] Status reserve_tokens(std::int64_t token_count);
  // Appends a page; the caller's reference goes over to the sequence.
  void adopt_page(PageId page);
  // Another page with the same content, in place of page `index`: its reference goes over, too.
  void replace_page(std::size_t index, PageId page);
  // Gives all pages back; rings are zero again.
  void clear();

  std::int64_t token_capacity() const;
  // Bytes that this sequence holds: pages and rings.
  std::size_t byte_count() const;
  const std::vector<PageId>& pages() const { return pages_; }
  std::byte* page_data(std::size_t index) const { return data_[index]; }
  // The kept rings [layout.snapshot_bytes()].
  std::span<std::byte> kept_rings();

  // Rows that are on their way; null: all are there. Part of every view made from now on.
  void set_row_gate(RowGate* gate) { gate_ = gate; }
  // Whether nothing would have to wait for rows.
  bool has_all_rows() const { return gate_ == nullptr || gate_->is_open(); }

  // Valid until the next call that changes pages and not longer than the sequence.
  KvView view();

 private:
  void give_back();

  const KvLayout* layout_;
  PagePool* pool_;
  std::vector<PageId> pages_;
  std::vector<std::byte*> data_;  // of pages_
  tensor::AlignedBuffer rings_;
  RowGate* gate_ = nullptr;
};

}  // namespace locket::cache
