#include "cache/internal/row_restore.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "base/clock.h"
#include "cache/page_parts.h"

namespace locket::cache {
namespace {

PayloadLoad part_load(const KvLayout& layout, PagePart part, const StoredValue& value,
                      std::byte* page) {
  return {.value = value, .target = {page + layout.part_offset(part), layout.part_bytes(part)}};
}

}  // namespace

RowRestore::~RowRestore() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !is_running_; });
}

std::size_t RowRestore::load_keys(const DiskMatch& match, std::span<std::byte* const> buffers) {
  start_ = monotonic_seconds();
  pages_ = match.pages;
  hold_ = match.hold;
  buffers_.assign(buffers.begin(), buffers.end());
  std::vector<PayloadLoad> loads;
  for (std::size_t i = 0; i < pages_.size(); ++i) {
    loads.push_back(part_load(layout_, PagePart::kKeys, pages_[i].keys, buffers_[i]));
  }
  const std::vector<std::size_t> damaged = disk_.load(loads);
  if (damaged.empty()) return pages_.size();
  const std::size_t first = *std::ranges::min_element(damaged);
  disk_.drop_page(pages_[first]);
  return first;
}

void RowRestore::start_rows(std::size_t count, TaskThread& loader) {
  pages_.resize(count);
  buffers_.resize(count);
  if (count == 0) return;
  is_running_ = true;
  loader.post([this] { load_rows(); });
}

void RowRestore::load_rows() {
  std::vector<PayloadLoad> loads;
  for (std::size_t i = 0; i < pages_.size(); ++i) {
    loads.push_back(part_load(layout_, PagePart::kRows, pages_[i].rows, buffers_[i]));
  }
  std::vector<std::size_t> damaged = disk_.load(loads);
  for (const std::size_t index : damaged) disk_.drop_page(pages_[index]);
  const std::lock_guard lock(mutex_);
  hold_.reset();
  damaged_ = std::move(damaged);
  seconds_ = monotonic_seconds() - start_;
  is_running_ = false;
  changed_.notify_all();
}

Status RowRestore::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !is_running_; });
  if (damaged_.empty()) return {};
  return fail(ErrorCode::kBadMemory,
              fmt::format("{} of {} pages of {} are damaged; they are computed again",
                          damaged_.size(), pages_.size(), disk_.directory().string()));
}

bool RowRestore::is_open() const {
  const std::lock_guard lock(mutex_);
  return !is_running_;
}

bool RowRestore::load_page(DiskStore& disk, const KvLayout& layout, const StoredPage& page,
                           std::byte* buffer) {
  const auto tokens = static_cast<std::int64_t>(page.tokens.size());
  std::vector<std::byte> keys(packed_bytes(layout, PagePart::kKeys, tokens));
  std::vector<std::byte> rows(packed_bytes(layout, PagePart::kRows, tokens));
  const std::vector<PayloadLoad> loads = {{.value = page.keys, .target = keys},
                                          {.value = page.rows, .target = rows}};
  if (!disk.load(loads).empty()) {
    disk.drop_page(page);
    return false;
  }
  unpack_part(layout, PagePart::kKeys, tokens, keys, buffer);
  unpack_part(layout, PagePart::kRows, tokens, rows, buffer);
  return true;
}

double RowRestore::seconds() const {
  const std::lock_guard lock(mutex_);
  return seconds_;
}

}  // namespace locket::cache
