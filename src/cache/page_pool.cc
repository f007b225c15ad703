#include "cache/page_pool.h"

#include <fmt/format.h>

#include "base/check.h"

namespace locket::cache {

PagePool::PagePool(std::size_t page_bytes, std::uint64_t budget_bytes)
    : page_bytes_(page_bytes), budget_bytes_(budget_bytes) {
  LOCKET_CHECK(page_bytes > 0);
}

Result<PageId> PagePool::acquire() {
  const std::lock_guard lock(mutex_);
  if (!free_.empty()) {
    const PageId page = free_.back();
    free_.pop_back();
    return page;
  }
  if ((pages_.size() + 1) * page_bytes_ > budget_bytes_) {
    return fail(
        ErrorCode::kOverBudget,
        fmt::format("the memory for context is full: {} pages of {} bytes are in use and the "
                    "budget is {} bytes; raise the memory budget or use a shorter context",
                    pages_.size(), page_bytes_, budget_bytes_));
  }
  pages_.emplace_back(page_bytes_);
  return static_cast<PageId>(pages_.size()) - 1;
}

void PagePool::release(PageId page) {
  const std::lock_guard lock(mutex_);
  LOCKET_CHECK(page >= 0 && static_cast<std::size_t>(page) < pages_.size());
  free_.push_back(page);
}

std::byte* PagePool::data(PageId page) const {
  const std::lock_guard lock(mutex_);
  LOCKET_CHECK(page >= 0 && static_cast<std::size_t>(page) < pages_.size());
  // The buffer is owned here and never moves; only the vector's element may.
  return const_cast<std::byte*>(pages_[static_cast<std::size_t>(page)].data());
}

std::uint64_t PagePool::used_bytes() const {
  const std::lock_guard lock(mutex_);
  return (pages_.size() - free_.size()) * page_bytes_;
}

}  // namespace locket::cache
