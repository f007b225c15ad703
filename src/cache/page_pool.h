// Pages of one size within a byte budget. A page is handed out as a PageId and given back; freed
// pages are used again, the last freed first. Memory is taken from the system when a page is used
// for the first time, so an empty pool costs nothing. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/result.h"
#include "tensor/aligned_buffer.h"

namespace locket::cache {

using PageId = std::int64_t;

class PagePool {
 public:
  PagePool(std::size_t page_bytes, std::uint64_t budget_bytes);

  // kOverBudget with pages, bytes and budget if another page does not fit.
  [[nodiscard]] Result<PageId> acquire();
  // REQUIRES: `page` was acquired and not yet released.
  void release(PageId page);

  // The page's bytes; valid until it is released.
  std::byte* data(PageId page) const;

  std::size_t page_bytes() const { return page_bytes_; }
  std::uint64_t budget_bytes() const { return budget_bytes_; }
  // Bytes of pages in use.
  std::uint64_t used_bytes() const;

 private:
  const std::size_t page_bytes_;
  const std::uint64_t budget_bytes_;
  mutable std::mutex mutex_;
  std::vector<tensor::AlignedBuffer> pages_;
  std::vector<PageId> free_;
};

}  // namespace locket::cache
