#include "cache/internal/turn_writer.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/clock.h"
#include "cache/internal/segment_format.h"

namespace locket::cache {

TurnWriter::TurnWriter(const Parts& parts)
    : parts_(parts),
      segments_(parts.folder, parts.faults),
      tree_(parts.folder, parts.records, segments_, parts.drops) {}

double TurnWriter::now() const { return std::max(wall_seconds(), tree_.index().newest_use()); }

DiskCounts TurnWriter::counts() const {
  const std::lock_guard lock(counts_mutex_);
  return counts_;
}

void TurnWriter::start_over() {
  const std::lock_guard lock(mutex_);
  forget_all();
}

void TurnWriter::forget_all() {
  tree_.forget();
  parts_.drops.note_loss();
  stored_next_segment_ = 0;
}

Status TurnWriter::prepare() {
  // Reading everything is also what finds damaged tables.
  for (int tries = 0; tries < 2; ++tries) {
    if (parts_.records.needs_reopen()) {
      forget_all();
      LOCKET_TRY_STATUS(parts_.records.reopen());
    }
    LOCKET_TRY_STATUS(tree_.ensure_read());
    if (!parts_.records.needs_reopen()) break;
  }
  return apply_drops();
}

Status TurnWriter::write_batch(const RecordBatch& batch) {
  if (batch.is_empty()) return {};
  Status status = parts_.records.write(batch);
  // Whether the batch is there is known only when the records have been opened anew.
  if (!status) forget_all();
  return status;
}

void TurnWriter::settle(const Removed& removed) {
  for (const PageRecord& record : removed.pages) tree_.remove_page(record);
  for (const SnapshotRecord& record : removed.snapshots) tree_.remove_snapshot(record);
  tree_.free_space();
}

std::optional<PageRecord> TurnWriter::page_record(const PageName& name) const {
  const EvictionIndex::Page* page = tree_.index().page(name);
  if (page == nullptr) return std::nullopt;
  const std::string key = page_key(page->parent, name);
  const auto value = parts_.records.get(key);
  return value ? decode_page(key, *value) : std::nullopt;
}

std::optional<SnapshotRecord> TurnWriter::snapshot_record(const PageName& boundary) const {
  const std::string key = record_key(RecordSpace::kSnapshot, boundary);
  const auto value = parts_.records.get(key);
  return value ? decode_snapshot(key, *value) : std::nullopt;
}

std::optional<UseRecord> TurnWriter::use_record(const PageName& name) const {
  const std::string key = record_key(RecordSpace::kUse, name);
  const auto value = parts_.records.get(key);
  return value ? decode_use(key, *value) : std::nullopt;
}

void TurnWriter::remove_records(const PageRecord& page, RecordBatch& batch,
                                Removed& removed) const {
  const PageName& name = page.page.end.name;
  batch.remove(page_key(page.page.parent.name, name));
  batch.remove(record_key(RecordSpace::kUse, name));
  removed.pages.push_back(page);
  if (tree_.index().snapshot(name) == nullptr) return;
  batch.remove(record_key(RecordSpace::kSnapshot, name));
  if (auto snapshot = snapshot_record(name)) removed.snapshots.push_back(*snapshot);
}

// Takes the page or snapshot of a record that is no use out of the tree, if it is there.
void TurnWriter::forget_record(const std::string& key, Removed& removed) {
  PageName name;
  if (key.size() < 1 + name.size()) return;
  std::memcpy(name.data(), key.data() + key.size() - name.size(), name.size());
  const auto value = parts_.records.get(key);
  const EvictionIndex::Page* known = tree_.index().page(name);
  if (known != nullptr && key == page_key(known->parent, name)) {
    auto page = value ? decode_page(key, *value) : std::nullopt;
    if (page) {
      removed.pages.push_back(std::move(*page));
    } else {
      tree_.forget_page(name);
    }
  }
  if (tree_.index().snapshot(name) == nullptr) return;
  if (key != record_key(RecordSpace::kSnapshot, name)) return;
  auto snapshot = value ? decode_snapshot(key, *value) : std::nullopt;
  if (snapshot) {
    removed.snapshots.push_back(*snapshot);
  } else {
    tree_.index().remove_snapshot(name);
  }
}

// Values that this process found damaged go for good, before anything else is decided.
Status TurnWriter::apply_drops() {
  const StoreDrops::Pending pending = parts_.drops.pending();
  if (pending.is_empty()) return {};
  RecordBatch batch;
  Removed removed;
  for (const std::string& key : pending.keys) {
    batch.remove(key);
    forget_record(key, removed);
  }
  for (const StoredPage& page : pending.pages) {
    auto record = page_record(page.end.name);
    if (!record || !is_same_value(record->page.keys, page.keys)) continue;
    // What hangs below the page stays: it can be found again once the page has been stored again.
    batch.remove(page_key(page.parent.name, page.end.name));
    removed.pages.push_back(std::move(*record));
    tree_.bury(page.end.name, {.reason = GoneReason::kDamaged, .seconds = now()}, batch);
  }
  for (const auto& [name, value] : pending.snapshots) {
    auto record = snapshot_record(name);
    if (!record || !is_same_value(record->value, value)) continue;
    batch.remove(record_key(RecordSpace::kSnapshot, name));
    removed.snapshots.push_back(*record);
  }
  LOCKET_TRY_STATUS(write_batch(batch));
  parts_.drops.note_loss();
  settle(removed);
  parts_.drops.settle(pending);
  return {};
}

Status TurnWriter::remove(std::span<const PageName> names, GoneReason reason) {
  const std::lock_guard lock(mutex_);
  LOCKET_TRY_STATUS(prepare());
  RecordBatch batch;
  Removed removed;
  for (const PageName& name : names) {
    const auto record = page_record(name);
    if (!record) continue;
    remove_records(*record, batch, removed);
    tree_.bury(name, {.reason = reason, .seconds = now()}, batch);
  }
  LOCKET_TRY_STATUS(write_batch(batch));
  parts_.drops.note_loss();
  for (const PageRecord& record : removed.pages) {
    tree_.index().set_pinned(record.page.end.name, false);
  }
  settle(removed);
  return {};
}

Status TurnWriter::set_pinned(const PageName& name, bool is_pinned) {
  const std::lock_guard lock(mutex_);
  LOCKET_TRY_STATUS(prepare());
  const EvictionIndex::Page* page = tree_.index().page(name);
  if (page == nullptr) return fail(ErrorCode::kNotFound, "no such page is stored");
  UseRecord use = use_record(name).value_or(UseRecord{.last_use_seconds = page->last_use});
  use.is_pinned = is_pinned;
  const std::string key = record_key(RecordSpace::kUse, name);
  RecordBatch batch;
  batch.put(key, encode_use(key, use));
  LOCKET_TRY_STATUS(write_batch(batch));
  tree_.index().set_pinned(name, is_pinned);
  return {};
}

Status TurnWriter::write_records(const RecordBatch& batch) {
  const std::lock_guard lock(mutex_);
  LOCKET_TRY_STATUS(prepare());
  return write_batch(batch);
}

Status TurnWriter::with_tree(const std::function<void(const EvictionIndex&)>& look) {
  const std::lock_guard lock(mutex_);
  LOCKET_TRY_STATUS(prepare());
  look(tree_.index());
  return {};
}

Status TurnWriter::write(const TurnWrite& turn) {
  const std::lock_guard lock(mutex_);
  const auto count_failed = [&](std::uint64_t pages) {
    const std::lock_guard counts_lock(counts_mutex_);
    counts_.pages_not_written += pages;
  };
  if (Status ready = prepare(); !ready) {
    count_failed(turn.pages.size());
    return ready;
  }
  Plan plan = make_plan(turn);
  const std::uint64_t all = plan.left_out + plan.pages.size();
  Status status = make_room(turn, plan);
  if (status) {
    cut_to_room(plan);
    segments_.begin_turn();
    auto written = append(plan);
    status = written ? commit(turn, plan, *written)
                     : Status(tl::make_unexpected(std::move(written.error())));
    if (!status) segments_.rollback();
  }
  count_failed(status ? plan.left_out : all);
  return status;
}

Result<TurnWriter::Written> TurnWriter::append(const Plan& plan) {
  Written written;
  const double created = now();
  for (const NewPage* page : plan.pages) {
    LOCKET_TRY(const StoredValue keys, segments_.append(SegmentKind::kKeys, page->keys));
    LOCKET_TRY(const StoredValue rows, segments_.append(SegmentKind::kRows, page->rows));
    written.pages.push_back({.page = {.parent = page->parent,
                                      .end = page->end,
                                      .tokens = page->tokens,
                                      .keys = keys,
                                      .rows = rows},
                             .created_seconds = created});
    written.bytes += keys.bytes + rows.bytes;
  }
  for (const NewSnapshot* snapshot : plan.snapshots) {
    LOCKET_TRY(const StoredValue value, segments_.append(SegmentKind::kSnapshots, snapshot->rings));
    written.snapshots.push_back(
        {.point = snapshot->point, .value = value, .created_seconds = created});
    written.bytes += value.bytes;
  }
  LOCKET_TRY_STATUS(segments_.sync());
  return written;
}

void TurnWriter::remove_superseded(const TurnWrite& turn, RecordBatch& batch,
                                   Removed& removed) const {
  for (const PageName& name : turn.superseded_tails) {
    const EvictionIndex::Page* page = tree_.index().page(name);
    if (page == nullptr || page->children > 0 || page->is_pinned) continue;
    if (const auto record = page_record(name)) remove_records(*record, batch, removed);
  }
  for (const PageName& name : turn.superseded_snapshots) {
    if (tree_.index().snapshot(name) == nullptr) continue;
    batch.remove(record_key(RecordSpace::kSnapshot, name));
    if (auto record = snapshot_record(name)) removed.snapshots.push_back(*record);
  }
}

// A prefix that grows keeps its hits: they go on from the page that it grew from.
void TurnWriter::put_use(const TurnWrite& turn, const Plan& plan, RecordBatch& batch) const {
  PageName newest = turn.newest;
  const bool is_there = tree_.index().page(newest) != nullptr || plan.names.contains(newest);
  if (!is_there && plan.pages.empty()) return;
  if (!is_there) newest = plan.pages.back()->end.name;
  UseRecord use = use_record(newest).value_or(UseRecord{});
  std::vector<PageName> before = turn.superseded_tails;
  if (!plan.pages.empty()) before.push_back(plan.pages.front()->parent.name);
  for (const PageName& name : before) {
    const auto earlier = use_record(name);
    if (earlier) use.hits = std::max(use.hits, earlier->hits);
  }
  if (turn.hit_tokens > 0) ++use.hits;
  use.last_use_seconds = now();
  const std::string key = record_key(RecordSpace::kUse, newest);
  batch.put(key, encode_use(key, use));
}

Status TurnWriter::commit(const TurnWrite& turn, const Plan& plan, const Written& written) {
  RecordBatch batch;
  Removed removed;
  // A tail goes only if what replaces it is there.
  if (plan.left_out == 0) remove_superseded(turn, batch, removed);
  if (!plan.pages.empty() && !tree_.knows_root(turn.root.root)) {
    const std::string key = record_key(RecordSpace::kRoot, turn.root.root);
    batch.put(key, encode_root(key, turn.root));
  }
  for (const PageRecord& record : written.pages) {
    const std::string key = page_key(record.page.parent.name, record.page.end.name);
    batch.put(key, encode_page(key, record));
    tree_.unbury(record.page.end.name, batch);
  }
  for (const SnapshotRecord& record : written.snapshots) {
    const std::string key = record_key(RecordSpace::kSnapshot, record.point.name);
    batch.put(key, encode_snapshot(key, record));
  }
  if (segments_.next_id() != stored_next_segment_) {
    const std::string key = record_key(RecordSpace::kNextSegment, std::string_view{});
    batch.put(key, encode_next_segment(key, segments_.next_id()));
  }
  put_use(turn, plan, batch);
  const double used = now();
  LOCKET_TRY_STATUS(write_batch(batch));
  stored_next_segment_ = segments_.next_id();
  if (!plan.pages.empty()) tree_.add_root(turn.root.root);
  for (const PageRecord& record : written.pages) {
    tree_.add_page(record);
    tree_.index().note_use(record.page.end.name, used);
  }
  for (const SnapshotRecord& record : written.snapshots) tree_.add_snapshot(record);
  tree_.index().note_use(turn.newest, used);
  settle(removed);
  const std::lock_guard lock(counts_mutex_);
  counts_.pages_written += written.pages.size();
  counts_.snapshots_written += written.snapshots.size();
  counts_.payload_bytes_written += written.bytes;
  return {};
}

}  // namespace locket::cache
