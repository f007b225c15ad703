// The part of disk_catalog.h that reads everything and compares it with its records.
#include <algorithm>
#include <fmt/format.h>
#include <numeric>
#include <utility>

#include "cache/disk_catalog.h"
#include "cache/internal/disk_store_impl.h"

namespace locket::cache {
namespace {

constexpr std::uint64_t kBatchBytes = std::uint64_t{32} << 20;
// No payload is that large; a record that says so is damaged.
constexpr std::uint64_t kMostValueBytes = std::uint64_t{1} << 30;

enum class Part { kKeys, kRows, kSnapshot };

// One payload, and the index of the page or snapshot that it belongs to.
struct Item {
  StoredValue value;
  Part part = Part::kKeys;
  std::size_t owner = 0;
};

class Verifier {
 public:
  Verifier(DiskStore& store, Repair repair) : store_(store), repair_(repair) {}

  void collect();
  // Every so manieth payload stays, so that about `most_bytes` are read.
  void thin_out(std::uint64_t most_bytes);
  void read_all(const std::function<void(std::uint64_t, std::uint64_t)>& on_progress);
  VerifyReport take_report() { return std::move(report_); }

 private:
  void add_page(StoredPage page);
  void add_finding(std::int64_t damaged, std::string line);
  void add_damaged_page(const StoredPage& page, const char* what);
  void add_damaged(const Item& item);
  // Items from `first` on that are read together; the index after them.
  std::size_t read_batch(std::size_t first);

  DiskStore& store_;
  Repair repair_;
  std::vector<StoredPage> pages_;  // without token ids
  std::vector<PrefixPoint> snapshots_;
  std::vector<Item> items_;
  std::vector<std::byte> buffer_;
  VerifyReport report_;
};

void Verifier::collect() {
  store_.impl().catch_up();
  const std::uint64_t dropped = store_.counts().values_dropped;
  store_.impl().scan_pages([this](const PageRecord& record) {
    add_page(record.page);
    return true;
  });
  store_.impl().scan_snapshots([this](const SnapshotRecord& record) {
    items_.push_back({record.value, Part::kSnapshot, snapshots_.size()});
    snapshots_.push_back(record.point);
    return true;
  });
  const auto records = static_cast<std::int64_t>(store_.counts().values_dropped - dropped);
  if (records > 0) add_finding(records, fmt::format("records that cannot be read: {}", records));
  // In the order of the files.
  std::ranges::sort(items_, [](const Item& left, const Item& right) {
    return std::pair(left.value.segment, left.value.offset) <
           std::pair(right.value.segment, right.value.offset);
  });
}

void Verifier::thin_out(std::uint64_t most_bytes) {
  std::uint64_t total = 0;
  for (const Item& item : items_) total += std::min(item.value.bytes, kMostValueBytes);
  if (total <= most_bytes) return;
  const std::uint64_t step = total / std::max<std::uint64_t>(1, most_bytes) + 1;
  std::vector<Item> kept;
  for (std::size_t i = 0; i < items_.size(); i += step) kept.push_back(items_[i]);
  report_.left_out = static_cast<std::int64_t>(items_.size() - kept.size());
  items_ = std::move(kept);
}

void Verifier::add_page(StoredPage page) {
  const PrefixPoint end = next_point(page.parent, page.tokens);
  page.tokens.clear();
  if (end.ids != page.end.ids || end.position != page.end.position) {
    add_damaged_page(page, "its token ids");
    return;
  }
  items_.push_back({page.keys, Part::kKeys, pages_.size()});
  items_.push_back({page.rows, Part::kRows, pages_.size()});
  pages_.push_back(std::move(page));
}

void Verifier::add_finding(std::int64_t damaged, std::string line) {
  report_.damaged += damaged;
  if (report_.findings.size() < kMostFindings) report_.findings.push_back(std::move(line));
}

void Verifier::add_damaged_page(const StoredPage& page, const char* what) {
  add_finding(1, fmt::format("page {:.12} (tokens {} to {}): {} are damaged", to_hex(page.end.name),
                             page.parent.position, page.end.position, what));
  if (repair_ == Repair::kDropDamaged) store_.drop_page(page);
}

void Verifier::add_damaged(const Item& item) {
  if (item.part != Part::kSnapshot) {
    add_damaged_page(pages_[item.owner], item.part == Part::kKeys ? "its index keys" : "its rows");
    return;
  }
  const PrefixPoint& point = snapshots_[item.owner];
  add_finding(1, fmt::format("snapshot {:.12} (at token {}): it is damaged", to_hex(point.name),
                             point.position));
  if (repair_ == Repair::kDropDamaged) store_.drop_snapshot(point);
}

std::size_t Verifier::read_batch(std::size_t first) {
  std::vector<std::size_t> read;
  std::uint64_t bytes = 0;
  std::size_t end = first;
  for (; end < items_.size(); ++end) {
    const std::uint64_t value_bytes = items_[end].value.bytes;
    if (value_bytes > kMostValueBytes) {
      add_damaged(items_[end]);
      continue;
    }
    if (!read.empty() && bytes + value_bytes > kBatchBytes) break;
    bytes += value_bytes;
    read.push_back(end);
  }
  if (buffer_.size() < bytes) buffer_.resize(bytes);
  std::vector<PayloadLoad> loads;
  std::span<std::byte> rest(buffer_);
  for (const std::size_t item : read) {
    loads.push_back({items_[item].value, rest.first(items_[item].value.bytes)});
    rest = rest.subspan(items_[item].value.bytes);
  }
  for (const std::size_t bad : store_.load(loads)) add_damaged(items_[read[bad]]);
  report_.values += static_cast<std::int64_t>(read.size());
  report_.bytes += bytes;
  return end;
}

void Verifier::read_all(const std::function<void(std::uint64_t, std::uint64_t)>& on_progress) {
  std::uint64_t total = 0;
  for (const Item& item : items_) {
    total += item.value.bytes <= kMostValueBytes ? item.value.bytes : 0;
  }
  for (std::size_t first = 0; first < items_.size();) {
    first = read_batch(first);
    if (on_progress) on_progress(report_.bytes, total);
  }
}

}  // namespace

Result<VerifyReport> verify_stored(
    DiskStore& store, Repair repair,
    const std::function<void(std::uint64_t done, std::uint64_t total)>& on_progress) {
  // Also says so if this process cannot write.
  if (repair == Repair::kDropDamaged) LOCKET_TRY_STATUS(store.impl().write_records({}));
  Verifier verifier(store, repair);
  verifier.collect();
  verifier.read_all(on_progress);
  // What was dropped goes for good with the next write.
  if (repair == Repair::kDropDamaged) LOCKET_TRY_STATUS(store.impl().write_records({}));
  return verifier.take_report();
}

Result<VerifyReport> verify_sample(DiskStore& store, std::uint64_t most_bytes) {
  Verifier verifier(store, Repair::kReport);
  verifier.collect();
  verifier.thin_out(most_bytes);
  verifier.read_all({});
  return verifier.take_report();
}

}  // namespace locket::cache
