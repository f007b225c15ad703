// Pages of one size, and other memory of the same purpose, within one byte budget. A page is handed
// out as a PageId with one reference; share() adds references, and the last release() frees it.
// Freed pages are used again, the last freed first. Memory is taken from the system when a page is
// used for the first time, so an empty pool costs nothing; pages that lie free give their memory
// back when something else needs it, or when give_back_free_memory() is called.
//
// When the budget is reached the pool asks its reclaimer, if it has one, to let something go, and
// tries again. Thread-safe; the reclaimer is called without locks held.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include "base/memory_region.h"
#include "base/result.h"

namespace locket::cache {

using PageId = std::int64_t;

class PagePool {
 public:
  PagePool(std::size_t page_bytes, std::uint64_t budget_bytes);

  // kOverBudget with pages, bytes and budget if another page does not fit.
  [[nodiscard]] Result<PageId> acquire();
  // Another reference. REQUIRES: `page` is in use.
  void share(PageId page);
  // REQUIRES: `page` is in use.
  void release(PageId page);

  // The page's bytes; valid until the last reference is released.
  std::byte* data(PageId page) const;

  // Bytes besides pages that count against the budget. kOverBudget: nothing has changed.
  [[nodiscard]] Status charge(std::uint64_t bytes);
  // As charge(), but nothing is let go for it.
  [[nodiscard]] bool try_charge(std::uint64_t bytes);
  void refund(std::uint64_t bytes);

  // Frees some pages or charged bytes and says whether it could. Empty: there is none.
  void set_reclaimer(std::function<bool()> reclaimer);

  // Gives the memory of all free pages back to the system; to be called when little is going on.
  void give_back_free_memory();

  std::size_t page_bytes() const { return page_bytes_; }
  std::uint64_t budget_bytes() const { return budget_bytes_; }
  // Bytes of pages in use and charged bytes.
  std::uint64_t used_bytes() const;

 private:
  struct Page {
    std::int32_t references = 0;
    bool has_memory = false;  // it has been used since its memory was given back
  };

  // All with the lock held.
  bool has_room(std::uint64_t bytes) const;
  PageId take_page();
  void add_region();
  void trim_free_pages();
  bool is_in_use(PageId page) const;

  bool reclaim();
  [[nodiscard]] Status over_budget() const;

  const std::size_t page_bytes_;
  const std::size_t stride_;  // from page to page in a region
  const std::size_t pages_per_region_;
  const std::uint64_t budget_bytes_;
  mutable std::mutex mutex_;
  std::vector<MemoryRegion> regions_;
  std::vector<Page> pages_;
  std::vector<PageId> free_;
  std::uint64_t held_pages_ = 0;  // pages with memory, in use or free
  std::uint64_t charged_bytes_ = 0;
  std::function<bool()> reclaimer_;
};

}  // namespace locket::cache
