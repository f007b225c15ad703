#include "cache/page_pool.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "base/check.h"

namespace locket::cache {
namespace {

// Sectors: rows are read into pages without a copy.
constexpr std::size_t kAlignment = 512;
// From here on a step of 2 MiB does not matter.
constexpr std::uint64_t kLargeBudget = std::uint64_t{512} << 20;
constexpr std::size_t kRegionBytes = std::size_t{64} << 20;

}  // namespace

PagePool::PagePool(std::size_t page_bytes, std::uint64_t budget_bytes)
    : page_bytes_(page_bytes),
      stride_((page_bytes + kAlignment - 1) / kAlignment * kAlignment),
      pages_per_region_(std::max<std::size_t>(1, kRegionBytes / std::max(stride_, kAlignment))),
      budget_bytes_(budget_bytes) {
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
    if (pages_.size() % pages_per_region_ == 0) add_region();
    pages_.emplace_back();
  } else {
    id = free_.back();
    free_.pop_back();
  }
  Page& page = pages_[static_cast<std::size_t>(id)];
  if (!page.has_memory) {
    page.has_memory = true;
    held_pages_ += 1;
    trim_free_pages();
  }
  page.references = 1;
  return id;
}

void PagePool::add_region() {
  const auto pages =
      budget_bytes_ >= kLargeBudget ? MemoryRegion::Pages::kLarge : MemoryRegion::Pages::kSystem;
  regions_.emplace_back(pages_per_region_ * stride_, pages);
}

// Free pages keep their memory only while the budget has room for it.
void PagePool::trim_free_pages() {
  for (const PageId id : free_) {
    if (held_pages_ * page_bytes_ + charged_bytes_ <= budget_bytes_) return;
    const auto index = static_cast<std::size_t>(id);
    if (!pages_[index].has_memory) continue;
    pages_[index].has_memory = false;
    held_pages_ -= 1;
    regions_[index / pages_per_region_].forget(index % pages_per_region_ * stride_, page_bytes_);
  }
}

// Neighbours in one go: pages need not begin where the system's do.
void PagePool::give_back_free_memory() {
  const std::lock_guard lock(mutex_);
  std::vector<PageId> ids = free_;
  std::ranges::sort(ids);
  for (std::size_t first = 0; first < ids.size();) {
    const auto index = static_cast<std::size_t>(ids[first]);
    const std::size_t region = index / pages_per_region_;
    std::size_t count = 0;
    while (first + count < ids.size() &&
           static_cast<std::size_t>(ids[first + count]) == index + count &&
           (index + count) / pages_per_region_ == region) {
      Page& page = pages_[index + count];
      held_pages_ -= page.has_memory ? 1 : 0;
      page.has_memory = false;
      ++count;
    }
    regions_[region].forget(index % pages_per_region_ * stride_, count * stride_);
    first += count;
  }
}

bool PagePool::is_in_use(PageId page) const {
  return page >= 0 && static_cast<std::size_t>(page) < pages_.size() &&
         pages_[static_cast<std::size_t>(page)].references > 0;
}

void PagePool::share(PageId page) {
  const std::lock_guard lock(mutex_);
  LOCKET_CHECK(is_in_use(page));
  pages_[static_cast<std::size_t>(page)].references += 1;
}

void PagePool::release(PageId page) {
  const std::lock_guard lock(mutex_);
  LOCKET_CHECK(is_in_use(page));
  std::int32_t& references = pages_[static_cast<std::size_t>(page)].references;
  references -= 1;
  if (references == 0) free_.push_back(page);
}

std::byte* PagePool::data(PageId page) const {
  const std::lock_guard lock(mutex_);
  LOCKET_CHECK(is_in_use(page));
  const auto index = static_cast<std::size_t>(page);
  return regions_[index / pages_per_region_].data() + index % pages_per_region_ * stride_;
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
