#include "cache/internal/disk_store_impl.h"

#include <fmt/format.h>

#include "base/clock.h"
#include "cache/kv_layout.h"

namespace locket::cache {
namespace {

constexpr const char* kRecordsFolder = "records";

std::string space_prefix(RecordSpace space) { return record_key(space, std::string_view{}); }

}  // namespace

Result<std::unique_ptr<DiskStore::Impl>> DiskStore::Impl::open(const DiskOptions& options) {
  auto impl = std::make_unique<Impl>(options);
  LOCKET_TRY_STATUS(impl->open_parts());
  return impl;
}

Status DiskStore::Impl::open_parts() {
  LOCKET_TRY_STATUS(prepare_store_folder(options_.directory));
  LOCKET_TRY(secret_, load_secret(options_.directory));
  identity_ = folder_identity(options_.directory);
  reader_ =
      std::make_unique<SegmentReader>(options_.directory, options_.read_threads, options_.faults);
  if (options_.access == DiskOptions::Access::kReadOnly) {
    read_only_reason_ = "it was opened for reading only";
  } else if (Status status = try_to_write(); !status) {
    read_only_reason_ = status.error().message;
  }
  if (writer_ != nullptr) return {};
  LOCKET_TRY(records_, RecordStore::open({.folder = options_.directory / kRecordsFolder,
                                          .access = RecordStoreOptions::Access::kRead,
                                          .faults = options_.faults}));
  return {};
}

Status DiskStore::Impl::try_to_write() {
  LOCKET_TRY(FolderLock lock, lock_for_writing(options_.directory));
  LOCKET_TRY(records_, RecordStore::open({.folder = options_.directory / kRecordsFolder,
                                          .access = RecordStoreOptions::Access::kWrite,
                                          .faults = options_.faults}));
  remove_temporary_files(options_.directory);
  lock_.emplace(std::move(lock));
  writer_ = std::make_unique<TurnWriter>(TurnWriter::Parts{.folder = options_.directory,
                                                           .quota_bytes = options_.quota_bytes,
                                                           .records = *records_,
                                                           .drops = drops_,
                                                           .holds = holds_,
                                                           .faults = options_.faults});
  return {};
}

bool DiskStore::Impl::is_complete(const DiskMatch& match, std::size_t wanted) const {
  const std::size_t tokens = match.pages.size() * static_cast<std::size_t>(kTokensPerPage) +
                             static_cast<std::size_t>(match.parting_tokens);
  return tokens >= wanted;
}

DiskMatch DiskStore::Impl::find(const PrefixPoint& from, std::span<const std::int32_t> wanted,
                                const PageSizes& sizes) const {
  const StoreLookup lookup(*records_, drops_);
  const auto lock = holds_.lock_for_lookup();
  DiskMatch match = lookup.find(from, wanted, sizes);
  if (!is_writable() && !is_complete(match, wanted.size())) {
    records_->catch_up();
    match = lookup.find(from, wanted, sizes);
  }
  std::vector<PageName> names;
  for (const StoredPage& page : match.pages) names.push_back(page.end.name);
  if (match.parting) names.push_back(match.parting->end.name);
  if (!names.empty()) match.hold = holds_.hold(std::move(names));
  return match;
}

std::optional<StoredValue> DiskStore::Impl::find_snapshot(const PrefixPoint& point,
                                                          const PageSizes& sizes) const {
  return StoreLookup(*records_, drops_).find_snapshot(point, sizes);
}

std::vector<bool> DiskStore::Impl::has_pages(std::span<const PrefixPoint> parents,
                                             std::span<const PrefixPoint> ends) const {
  return StoreLookup(*records_, drops_).has_pages(parents, ends);
}

std::vector<std::size_t> DiskStore::Impl::load(std::span<const PayloadLoad> loads) const {
  return reader_->load(loads);
}

void DiskStore::Impl::drop_snapshot(const PrefixPoint& point) {
  const auto record = snapshot_at(point.name);
  if (record) drops_.drop_snapshot(point.name, record->value);
}

Status DiskStore::Impl::check_writable() const {
  if (is_writable()) return {};
  return fail(ErrorCode::kBadRequest, fmt::format("the memory in {} can only be read here: {}",
                                                  options_.directory.string(), read_only_reason_));
}

Status DiskStore::Impl::ensure_folder() {
  const std::lock_guard lock(folder_mutex_);
  if (folder_identity(options_.directory) == identity_) return {};
  LOCKET_TRY_STATUS(prepare_store_folder(options_.directory));
  LOCKET_TRY_STATUS(restore_secret(options_.directory, secret_));
  LOCKET_TRY(FolderLock fresh, lock_for_writing(options_.directory));
  reader_->forget_files();
  writer_->start_over();
  LOCKET_TRY_STATUS(records_->reopen());
  lock_.emplace(std::move(fresh));
  identity_ = folder_identity(options_.directory);
  return {};
}

Status DiskStore::Impl::write_turn(const TurnWrite& turn) {
  LOCKET_TRY_STATUS(check_writable());
  LOCKET_TRY_STATUS(ensure_folder());
  const double start = monotonic_seconds();
  Status written = writer_->write(turn);
  write_seconds_ += monotonic_seconds() - start;
  return written;
}

Status DiskStore::Impl::remove_pages(std::span<const PageName> names, GoneReason reason) {
  LOCKET_TRY_STATUS(check_writable());
  LOCKET_TRY_STATUS(ensure_folder());
  return writer_->remove(names, reason);
}

Status DiskStore::Impl::set_pinned(const PageName& name, bool is_pinned) {
  LOCKET_TRY_STATUS(check_writable());
  LOCKET_TRY_STATUS(ensure_folder());
  return writer_->set_pinned(name, is_pinned);
}

Status DiskStore::Impl::write_records(const RecordBatch& batch) {
  LOCKET_TRY_STATUS(check_writable());
  LOCKET_TRY_STATUS(ensure_folder());
  return writer_->write_records(batch);
}

DiskCounts DiskStore::Impl::counts() const {
  DiskCounts counts = writer_ == nullptr ? DiskCounts{} : writer_->counts();
  counts.values_dropped = drops_.count();
  counts.write_seconds = write_seconds_;
  return counts;
}

std::uint64_t DiskStore::Impl::used_bytes() const {
  return allocated_bytes_below(options_.directory);
}

void DiskStore::Impl::catch_up() const { records_->catch_up(); }

void DiskStore::Impl::scan_pages(const std::function<bool(const PageRecord&)>& visit) const {
  records_->scan(space_prefix(RecordSpace::kPage),
                 [&](std::string_view key, std::string_view value) {
                   const auto record = decode_page(key, value);
                   if (!record) drops_.drop_record(std::string(key));
                   return !record || drops_.hides(record->page) || visit(*record);
                 });
}

void DiskStore::Impl::scan_snapshots(
    const std::function<bool(const SnapshotRecord&)>& visit) const {
  records_->scan(
      space_prefix(RecordSpace::kSnapshot), [&](std::string_view key, std::string_view value) {
        const auto record = decode_snapshot(key, value);
        if (!record) drops_.drop_record(std::string(key));
        return !record || drops_.hides(record->point.name, record->value) || visit(*record);
      });
}

void DiskStore::Impl::scan_uses(
    const std::function<bool(const PageName&, const UseRecord&)>& visit) const {
  records_->scan(space_prefix(RecordSpace::kUse),
                 [&](std::string_view key, std::string_view value) {
                   const auto use = decode_use(key, value);
                   const auto name = name_of_key(key);
                   return !use || !name || visit(*name, *use);
                 });
}

void DiskStore::Impl::scan_roots(const std::function<bool(const RootLabel&)>& visit) const {
  records_->scan(space_prefix(RecordSpace::kRoot),
                 [&](std::string_view key, std::string_view value) {
                   const auto label = decode_root(key, value);
                   return !label || visit(*label);
                 });
}

std::vector<PageRecord> DiskStore::Impl::children_of(const PageName& parent) const {
  std::vector<PageRecord> children;
  records_->scan(children_prefix(parent), [&](std::string_view key, std::string_view value) {
    auto record = decode_page(key, value);
    if (record && !drops_.hides(record->page)) children.push_back(std::move(*record));
    return true;
  });
  return children;
}

std::optional<SnapshotRecord> DiskStore::Impl::snapshot_at(const PageName& boundary) const {
  const std::string key = record_key(RecordSpace::kSnapshot, boundary);
  const auto value = records_->get(key);
  return value ? decode_snapshot(key, *value) : std::nullopt;
}

std::optional<UseRecord> DiskStore::Impl::use_of(const PageName& name) const {
  const std::string key = record_key(RecordSpace::kUse, name);
  const auto value = records_->get(key);
  return value ? decode_use(key, *value) : std::nullopt;
}

std::optional<Tombstone> DiskStore::Impl::tombstone_of(const PageName& name) const {
  const std::string key = record_key(RecordSpace::kTombstone, name);
  const auto value = records_->get(key);
  return value ? decode_tombstone(key, *value) : std::nullopt;
}

}  // namespace locket::cache
