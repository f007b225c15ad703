#include "cache/page_pool.h"

#include <fmt/format.h>
#include <utility>

#include "base/check.h"
#include "base/system_memory.h"

namespace locket::cache {

PagePool::PagePool(std::size_t page_bytes, std::uint64_t budget_bytes)
    : page_bytes_(page_bytes), budget_bytes_(budget_bytes) {
  LOCKET_CHECK(page_bytes > 0);
}

Result<PageId> PagePool::acquire() {
  while (true) {
    {
      const std::lock_guard lock(mutex_);
      if (has_room(page_bytes_)) return take_page();
    }
    if (!reclaim()) return tl::make_unexpected(over_budget().error());
  }
}

bool PagePool::has_room(std::uint64_t bytes) const {
  const std::uint64_t used = (pages_.size() - free_.size()) * page_bytes_ + charged_bytes_;
  return used <= budget_bytes_ && bytes <= budget_bytes_ - used;
}

PageId PagePool::take_page() {
  PageId id = static_cast<PageId>(pages_.size());
  if (free_.empty()) {
    pages_.emplace_back();
  } else {
    id = free_.back();
    free_.pop_back();
  }
  Page& page = pages_[static_cast<std::size_t>(id)];
  if (page.buffer.size() == 0) {
    page.buffer = tensor::AlignedBuffer(page_bytes_);
    held_pages_ += 1;
    trim_free_pages();
  }
  page.references = 1;
  return id;
}

// Free pages keep their memory only while the budget has room for it.
void PagePool::trim_free_pages() {
  bool has_freed = false;
  for (const PageId id : free_) {
    if (held_pages_ * page_bytes_ + charged_bytes_ <= budget_bytes_) break;
    Page& page = pages_[static_cast<std::size_t>(id)];
    if (page.buffer.size() == 0) continue;
    page.buffer = {};
    held_pages_ -= 1;
    has_freed = true;
  }
  if (has_freed) return_freed_memory();
}

void PagePool::share(PageId page) {
  const std::lock_guard lock(mutex_);
  LOCKET_CHECK(page >= 0 && static_cast<std::size_t>(page) < pages_.size());
  Page& shared = pages_[static_cast<std::size_t>(page)];
  LOCKET_CHECK(shared.references > 0);
  shared.references += 1;
}

void PagePool::release(PageId page) {
  const std::lock_guard lock(mutex_);
  LOCKET_CHECK(page >= 0 && static_cast<std::size_t>(page) < pages_.size());
  Page& released = pages_[static_cast<std::size_t>(page)];
  LOCKET_CHECK(released.references > 0);
  released.references -= 1;
  if (released.references == 0) free_.push_back(page);
}

std::byte* PagePool::data(PageId page) const {
  const std::lock_guard lock(mutex_);
  LOCKET_CHECK(page >= 0 && static_cast<std::size_t>(page) < pages_.size());
  // The buffer is owned here and never moves; only the vector's element may.
  return const_cast<std::byte*>(pages_[static_cast<std::size_t>(page)].buffer.data());
}

bool PagePool::try_charge(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (!has_room(bytes)) return false;
  charged_bytes_ += bytes;
  trim_free_pages();
  return true;
}

Status PagePool::charge(std::uint64_t bytes) {
  while (!try_charge(bytes)) {
    if (!reclaim()) return over_budget();
  }
  return {};
}

void PagePool::refund(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  LOCKET_CHECK(bytes <= charged_bytes_);
  charged_bytes_ -= bytes;
}

void PagePool::set_reclaimer(std::function<bool()> reclaimer) {
  const std::lock_guard lock(mutex_);
  reclaimer_ = std::move(reclaimer);
}

bool PagePool::reclaim() {
  std::function<bool()> reclaimer;
  {
    const std::lock_guard lock(mutex_);
    reclaimer = reclaimer_;
  }
  return reclaimer && reclaimer();
}

Status PagePool::over_budget() const {
  const std::lock_guard lock(mutex_);
  return fail(ErrorCode::kOverBudget,
              fmt::format("the memory for context is full: {} pages of {} bytes are in use{} and "
                          "the budget is {} bytes; raise the memory budget or use a shorter "
                          "context",
                          pages_.size() - free_.size(), page_bytes_,
                          charged_bytes_ > 0 ? fmt::format(", {} bytes besides", charged_bytes_)
                                             : std::string(),
                          budget_bytes_));
}

std::uint64_t PagePool::used_bytes() const {
  const std::lock_guard lock(mutex_);
  return (pages_.size() - free_.size()) * page_bytes_ + charged_bytes_;
}

}  // namespace locket::cache
