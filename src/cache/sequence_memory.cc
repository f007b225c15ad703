#include "cache/sequence_memory.h"

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
      rings_(std::move(other.rings_)) {}

SequenceMemory::~SequenceMemory() { give_back(); }

void SequenceMemory::give_back() {
  for (const PageId page : pages_) pool_->release(page);
  pages_.clear();
}

Status SequenceMemory::reserve_tokens(std::int64_t token_count) {
  const auto wanted = static_cast<std::size_t>(page_count(token_count));
  std::vector<PageId> taken;
  while (pages_.size() + taken.size() < wanted) {
    Result<PageId> page = pool_->acquire();
    if (!page) {
      for (const PageId unused : taken) pool_->release(unused);
      return tl::make_unexpected(std::move(page.error()));
    }
    taken.push_back(*page);
  }
  pages_.insert(pages_.end(), taken.begin(), taken.end());
  return {};
}

std::int64_t SequenceMemory::token_capacity() const {
  return static_cast<std::int64_t>(pages_.size()) * kTokensPerPage;
}

std::size_t SequenceMemory::byte_count() const {
  return pages_.size() * layout_->page_bytes() + rings_.size();
}

KvView SequenceMemory::view() {
  std::vector<std::byte*> pages;
  pages.reserve(pages_.size());
  for (const PageId page : pages_) pages.push_back(pool_->data(page));
  return {*layout_, std::move(pages), rings_.data()};
}

}  // namespace locket::cache
