#include "cache/internal/store_drops.h"

namespace locket::cache {

bool is_same_value(const StoredValue& a, const StoredValue& b) {
  return a.segment == b.segment && a.offset == b.offset && a.bytes == b.bytes &&
         a.checksum == b.checksum;
}

void StoreDrops::drop_page(const StoredPage& page) {
  const std::lock_guard lock(mutex_);
  const auto found = pages_.find(page.end.name);
  if (found == pages_.end() || !is_same_value(found->second.keys, page.keys)) ++count_;
  pages_.insert_or_assign(page.end.name, page);
  note_loss();
}

void StoreDrops::drop_snapshot(const PageName& boundary, const StoredValue& value) {
  const std::lock_guard lock(mutex_);
  const auto found = snapshots_.find(boundary);
  if (found == snapshots_.end() || !is_same_value(found->second, value)) ++count_;
  snapshots_.insert_or_assign(boundary, value);
}

void StoreDrops::drop_record(const std::string& key) {
  const std::lock_guard lock(mutex_);
  if (!keys_.insert(key).second) return;
  ++count_;
  note_loss();
}

bool StoreDrops::hides(const StoredPage& page) const {
  const std::lock_guard lock(mutex_);
  const auto found = pages_.find(page.end.name);
  return found != pages_.end() && is_same_value(found->second.keys, page.keys) &&
         is_same_value(found->second.rows, page.rows);
}

bool StoreDrops::hides(const PageName& boundary, const StoredValue& value) const {
  const std::lock_guard lock(mutex_);
  const auto found = snapshots_.find(boundary);
  return found != snapshots_.end() && is_same_value(found->second, value);
}

StoreDrops::Pending StoreDrops::pending() const {
  const std::lock_guard lock(mutex_);
  Pending pending;
  for (const auto& [name, page] : pages_) pending.pages.push_back(page);
  pending.snapshots.assign(snapshots_.begin(), snapshots_.end());
  pending.keys.assign(keys_.begin(), keys_.end());
  return pending;
}

void StoreDrops::settle(const Pending& done) {
  const std::lock_guard lock(mutex_);
  for (const StoredPage& page : done.pages) pages_.erase(page.end.name);
  for (const auto& [name, value] : done.snapshots) snapshots_.erase(name);
  for (const std::string& key : done.keys) keys_.erase(key);
}

std::uint64_t StoreDrops::count() const {
  const std::lock_guard lock(mutex_);
  return count_;
}

}  // namespace locket::cache
