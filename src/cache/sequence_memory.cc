#include "cache/sequence_memory.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "base/check.h"

namespace locket::cache {

SequenceMemory::SequenceMemory(const KvLayout& layout, PagePool& pool)
    : layout_(&layout), pool_(&pool), rings_(layout.ring_bytes()) {
  LOCKET_CHECK(pool.page_bytes() == layout.page_bytes());
}

SequenceMemory::SequenceMemory(SequenceMemory&& other) noexcept
    : layout_(other.layout_),
      pool_(other.pool_),
      pages_(std::exchange(other.pages_, {})),
      data_(std::exchange(other.data_, {})),
      rings_(std::move(other.rings_)),
      gate_(std::exchange(other.gate_, nullptr)) {}

SequenceMemory::~SequenceMemory() { give_back(); }

void SequenceMemory::give_back() {
  for (const PageId page : pages_) pool_->release(page);
  pages_.clear();
  data_.clear();
}

Status SequenceMemory::check_budget(std::int64_t token_count) const {
  const auto pages = static_cast<std::uint64_t>(page_count(token_count));
  if (pages <= pool_->budget_bytes() / pool_->page_bytes()) return {};
  return fail(ErrorCode::kOverBudget,
              fmt::format("{} tokens need {} pages of {} bytes and the budget is {} bytes; raise "
                          "the memory budget or use a shorter context",
                          token_count, pages, pool_->page_bytes(), pool_->budget_bytes()));
}

Status SequenceMemory::reserve_tokens(std::int64_t token_count) {
  const auto wanted = static_cast<std::size_t>(page_count(token_count));
  const std::size_t before = pages_.size();
  while (pages_.size() < wanted) {
    Result<PageId> page = pool_->acquire();
    if (!page) {
      while (pages_.size() > before) {
        pool_->release(pages_.back());
        pages_.pop_back();
        data_.pop_back();
      }
      return tl::make_unexpected(std::move(page.error()));
    }
    adopt_page(*page);
  }
  return {};
}

void SequenceMemory::adopt_page(PageId page) {
  pages_.push_back(page);
  data_.push_back(pool_->data(page));
}

void SequenceMemory::replace_page(std::size_t index, PageId page) {
  pool_->release(pages_.at(index));
  pages_[index] = page;
  data_[index] = pool_->data(page);
}

void SequenceMemory::clear() {
  give_back();
  gate_ = nullptr;
  std::ranges::fill(rings_.bytes(), std::byte{0});
}

std::span<std::byte> SequenceMemory::kept_rings() {
  return rings_.bytes().first(layout_->snapshot_bytes());
}

std::int64_t SequenceMemory::token_capacity() const {
  return static_cast<std::int64_t>(pages_.size()) * kTokensPerPage;
}

std::size_t SequenceMemory::byte_count() const {
  return pages_.size() * layout_->page_bytes() + rings_.size();
}

KvView SequenceMemory::view() { return {*layout_, data_, rings_.data(), gate_}; }

}  // namespace locket::cache
