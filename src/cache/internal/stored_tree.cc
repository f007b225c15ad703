#include "cache/internal/stored_tree.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "base/file.h"
#include "base/folder.h"

namespace locket::cache {
namespace {

// Less than this above what is in use is not worth looking for.
constexpr std::uint64_t kSlackBytes = std::uint64_t{64} << 10;

bool lies_in(const StoredValue& value, SegmentKind kind, const auto& segments) {
  const auto found = segments.find(value.segment);
  return found != segments.end() && found->second.first.kind == kind &&
         value.offset >= kSegmentHeaderBytes && value.offset + value.bytes <= found->second.second;
}

}  // namespace

StoredTree::StoredTree(std::filesystem::path folder, RecordStore& records, SegmentWriter& segments,
                       StoreDrops& drops)
    : folder_(std::move(folder)), records_(records), segments_(segments), drops_(drops) {}

Status StoredTree::ensure_read() {
  if (is_read_) return {};
  index_.clear();
  space_.clear();
  roots_.clear();
  burials_.clear();
  tombstones_.clear();
  freed_.clear();
  const std::uint64_t errors_before = records_.read_errors();
  LOCKET_TRY(const SegmentSizes segments, list_segments());
  std::uint32_t next_id = 1;
  const std::string next_key = record_key(RecordSpace::kNextSegment, std::string_view{});
  const auto stored_next = records_.get(next_key);
  if (stored_next) next_id = decode_next_segment(next_key, *stored_next).value_or(1);
  LOCKET_TRY_STATUS(segments_.start(next_id));
  read_pages(segments);
  read_snapshots(segments);
  read_uses();
  read_tombstones();
  records_.scan(record_key(RecordSpace::kRoot, std::string_view{}),
                [&](std::string_view key, std::string_view value) {
                  if (const auto label = decode_root(key, value)) roots_.insert(label->root);
                  return true;
                });
  // What could not be read may be there all the same: then nothing is an orphan.
  if (records_.read_errors() == errors_before) free_orphans();
  is_read_ = true;
  return {};
}

Result<StoredTree::SegmentSizes> StoredTree::list_segments() const {
  LOCKET_TRY(const auto entries, list_files(folder_));
  SegmentSizes segments;
  for (const FolderEntry& entry : entries) {
    const auto name = parse_segment_file_name(entry.name);
    if (!name) continue;
    auto file = File::open_for_reading(folder_ / entry.name);
    SegmentHeader header = {};
    if (!file || !file->read_at(0, header) || !is_segment_header(header, *name)) continue;
    segments.emplace(name->id, std::pair(*name, entry.size_bytes));
  }
  return segments;
}

void StoredTree::read_pages(const SegmentSizes& segments) {
  std::vector<std::pair<PageName, double>> created;
  const auto read = [&](std::string_view key, std::string_view value) {
    const auto record = decode_page(key, value);
    const bool is_whole = record && lies_in(record->page.keys, SegmentKind::kKeys, segments) &&
                          lies_in(record->page.rows, SegmentKind::kRows, segments) &&
                          index_.page(record->page.end.name) == nullptr;
    if (!is_whole) {
      drops_.drop_record(std::string(key));
      return true;
    }
    add_page(*record);
    created.emplace_back(record->page.end.name, record->created_seconds);
    return true;
  };
  records_.scan(record_key(RecordSpace::kPage, std::string_view{}), read);
  for (const auto& [name, seconds] : created) index_.note_use(name, seconds);
}

void StoredTree::read_snapshots(const SegmentSizes& segments) {
  const auto read = [&](std::string_view key, std::string_view value) {
    const auto record = decode_snapshot(key, value);
    if (record && lies_in(record->value, SegmentKind::kSnapshots, segments)) {
      add_snapshot(*record);
    } else {
      drops_.drop_record(std::string(key));
    }
    return true;
  };
  records_.scan(record_key(RecordSpace::kSnapshot, std::string_view{}), read);
}

void StoredTree::read_uses() {
  const auto read = [&](std::string_view key, std::string_view value) {
    const auto use = decode_use(key, value);
    const auto name = name_of_key(key);
    if (!use || !name) {
      drops_.drop_record(std::string(key));
      return true;
    }
    index_.note_use(*name, use->last_use_seconds);
    if (use->is_pinned) index_.set_pinned(*name, true);
    return true;
  };
  records_.scan(record_key(RecordSpace::kUse, std::string_view{}), read);
}

void StoredTree::read_tombstones() {
  const auto read = [&](std::string_view key, std::string_view value) {
    const auto tombstone = decode_tombstone(key, value);
    const auto name = name_of_key(key);
    if (!tombstone || !name) {
      drops_.drop_record(std::string(key));
      return true;
    }
    burials_.emplace_back(tombstone->seconds, *name);
    tombstones_[*name] = tombstone->seconds;
    return true;
  };
  records_.scan(record_key(RecordSpace::kTombstone, std::string_view{}), read);
  std::sort(burials_.begin(), burials_.end());
}

void StoredTree::free_orphans() {
  const auto entries = list_files(folder_);
  if (!entries) return;
  for (const FolderEntry& entry : *entries) {
    const auto name = parse_segment_file_name(entry.name);
    if (!name) continue;
    if (!space_.is_used(name->id)) {
      segments_.remove(*name);
      continue;
    }
    const std::uint64_t end = space_.used_end(name->id);
    if (end < entry.size_bytes) segments_.truncate(*name, end);
    if (entry.allocated_bytes <= space_.used_bytes(name->id) + kSlackBytes) continue;
    for (const auto& gap : space_.gaps(name->id)) segments_.punch(*name, gap.offset, gap.bytes);
  }
}

void StoredTree::add_page(const PageRecord& record) {
  const StoredPage& page = record.page;
  index_.add_page(page.end.name, {.parent = page.parent.name,
                                  .begin = page.parent.position,
                                  .end = page.end.position,
                                  .bytes = page.keys.bytes + page.rows.bytes,
                                  .last_use = 0,
                                  .children = 0,
                                  .is_pinned = false});
  space_.add(page.keys);
  space_.add(page.rows);
}

void StoredTree::add_snapshot(const SnapshotRecord& record) {
  index_.add_snapshot(record.point.name,
                      {.position = record.point.position, .bytes = record.value.bytes});
  space_.add(record.value);
}

void StoredTree::remove_page(const PageRecord& record) {
  const EvictionIndex::Page* known = index_.page(record.page.end.name);
  if (known == nullptr || known->parent != record.page.parent.name) return;
  index_.remove_page(record.page.end.name);
  for (const StoredValue& value : {record.page.keys, record.page.rows}) {
    const auto ranges = space_.remove(value);
    freed_.insert(freed_.end(), ranges.begin(), ranges.end());
  }
}

void StoredTree::remove_snapshot(const SnapshotRecord& record) {
  if (index_.snapshot(record.point.name) == nullptr) return;
  index_.remove_snapshot(record.point.name);
  const auto ranges = space_.remove(record.value);
  freed_.insert(freed_.end(), ranges.begin(), ranges.end());
}

void StoredTree::free_space() {
  const auto freed = std::exchange(freed_, {});
  const auto entries = list_files(folder_);
  if (!entries || freed.empty()) return;
  for (const FolderEntry& entry : *entries) {
    const auto name = parse_segment_file_name(entry.name);
    if (!name) continue;
    bool is_touched = false;
    const bool is_used = space_.is_used(name->id);
    for (const auto& range : freed) {
      if (range.segment != name->id) continue;
      is_touched = true;
      if (is_used) segments_.punch(*name, range.offset, range.bytes);
    }
    if (is_touched && !is_used) {
      segments_.remove(*name);
      space_.forget(name->id);
    }
  }
}

void StoredTree::bury(const PageName& name, const Tombstone& tombstone, RecordBatch& batch) {
  const std::string key = record_key(RecordSpace::kTombstone, name);
  batch.put(key, encode_tombstone(key, tombstone));
  burials_.emplace_back(tombstone.seconds, name);
  tombstones_[name] = tombstone.seconds;
  while (burials_.size() > kMostTombstones) {
    const auto [seconds, oldest] = burials_.front();
    burials_.pop_front();
    const auto found = tombstones_.find(oldest);
    if (found == tombstones_.end() || found->second != seconds || oldest == name) continue;
    tombstones_.erase(found);
    batch.remove(record_key(RecordSpace::kTombstone, oldest));
  }
}

void StoredTree::unbury(const PageName& name, RecordBatch& batch) {
  if (tombstones_.erase(name) > 0) batch.remove(record_key(RecordSpace::kTombstone, name));
}

}  // namespace locket::cache
