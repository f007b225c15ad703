// The part of TurnWriter that decides what of a turn is written, and makes room for it.
#include <algorithm>

#include "base/folder.h"
#include "cache/internal/turn_writer.h"

namespace locket::cache {
namespace {

// A page's record, in the log and in a table.
constexpr std::uint64_t kRecordBytes = 2048;
// What the records may grow by in one turn besides: a table and its index.
constexpr std::uint64_t kTurnBytes = std::uint64_t{64} << 10;
// Of the quota, kept free for merging tables of records: they are below 1 % of what is stored.
constexpr std::uint64_t kQuotaParts = 64;
constexpr std::uint64_t kBlockBytes = 4096;
constexpr int kMostRounds = 4;

std::uint64_t page_bytes(const NewPage& page) {
  return page.keys.size() + page.rows.size() + kRecordBytes;
}

}  // namespace

bool TurnWriter::is_new(const NewPage& page, const TurnWrite& turn, const Plan& plan) const {
  const EvictionIndex& index = tree_.index();
  const PageName& parent = page.parent.name;
  const bool is_first = page.parent.position == 0 && parent == turn.root.root;
  const EvictionIndex::Page* above = index.page(parent);
  const bool has_parent = is_first || plan.names.contains(parent) ||
                          (above != nullptr && above->end == page.parent.position);
  return has_parent && index.page(page.end.name) == nullptr && !plan.names.contains(page.end.name);
}

TurnWriter::Plan TurnWriter::make_plan(const TurnWrite& turn) const {
  Plan plan;
  for (const NewPage& page : turn.pages) {
    if (is_new(page, turn, plan)) {
      plan.pages.push_back(&page);
      plan.names.insert(page.end.name);
    } else if (tree_.index().page(page.end.name) == nullptr) {
      ++plan.left_out;  // its parent is gone
    }
  }
  for (const NewSnapshot& snapshot : turn.snapshots) {
    const PageName& name = snapshot.point.name;
    const EvictionIndex::Page* page = tree_.index().page(name);
    const bool has_page =
        plan.names.contains(name) || (page != nullptr && page->end == snapshot.point.position);
    if (has_page && tree_.index().snapshot(name) == nullptr) plan.snapshots.push_back(&snapshot);
  }
  const auto by_position = [](const NewSnapshot* a, const NewSnapshot* b) {
    return a->point.position < b->point.position;
  };
  std::stable_sort(plan.snapshots.begin(), plan.snapshots.end(), by_position);
  return plan;
}

NameSet TurnWriter::kept_names(const TurnWrite& turn, const Plan& plan) const {
  NameSet kept;
  const EvictionIndex& index = tree_.index();
  index.collect_path(turn.newest, kept);
  for (const NewPage* page : plan.pages) index.collect_path(page->parent.name, kept);
  for (const NewSnapshot* snapshot : plan.snapshots) {
    index.collect_path(snapshot->point.name, kept);
  }
  for (const PageName& name : turn.superseded_tails) index.collect_path(name, kept);
  return kept;
}

std::uint64_t TurnWriter::limit_bytes() const {
  return parts_.quota_bytes - parts_.quota_bytes / kQuotaParts;
}

std::uint64_t TurnWriter::needed_bytes(const Plan& plan) const {
  if (plan.pages.empty() && plan.snapshots.empty()) return 0;
  std::uint64_t bytes = kTurnBytes + 2 * kSegmentKinds * kBlockBytes;
  for (const NewPage* page : plan.pages) bytes += page_bytes(*page);
  for (const NewSnapshot* snapshot : plan.snapshots) {
    bytes += snapshot->rings.size() + kRecordBytes;
  }
  return bytes;
}

Status TurnWriter::make_room(const TurnWrite& turn, const Plan& plan) {
  if (parts_.quota_bytes == 0) return {};
  const std::uint64_t needed = needed_bytes(plan);
  EvictionIndex::Request request = {.bytes = 0,
                                    .now = now(),
                                    .restart_tokens = turn.restart_tokens,
                                    .kept = kept_names(turn, plan)};
  for (int round = 0; round < kMostRounds; ++round) {
    const std::uint64_t used = allocated_bytes_below(parts_.folder);
    if (used + needed <= limit_bytes()) return {};
    request.bytes = used + needed - limit_bytes();
    const auto lock = parts_.holds.lock_for_removal();
    for (const PageName& name : parts_.holds.held()) {
      tree_.index().collect_path(name, request.kept);
    }
    const auto victims = tree_.index().choose(request);
    if (victims.empty()) return {};
    LOCKET_TRY_STATUS(evict(victims));
  }
  return {};
}

Status TurnWriter::evict(const std::vector<EvictionIndex::Victim>& victims) {
  RecordBatch batch;
  Removed removed;
  std::uint64_t pages = 0;
  std::uint64_t snapshots = 0;
  NameSet gone;
  // A parent that stays takes over the use of what hung below it.
  std::unordered_map<PageName, double, NameHash> heirs;
  for (const EvictionIndex::Victim& victim : victims) {
    if (victim.kind == EvictionIndex::Kind::kSnapshot) {
      batch.remove(record_key(RecordSpace::kSnapshot, victim.name));
      if (auto record = snapshot_record(victim.name)) {
        removed.snapshots.push_back(*record);
      }
      ++snapshots;
      continue;
    }
    batch.remove(page_key(victim.parent, victim.name));
    batch.remove(record_key(RecordSpace::kUse, victim.name));
    if (auto record = page_record(victim.name)) removed.pages.push_back(std::move(*record));
    tree_.bury(victim.name, {.reason = GoneReason::kEvicted, .seconds = now()}, batch);
    gone.insert(victim.name);
    double& use = heirs[victim.parent];
    use = std::max(use, victim.last_use);
    ++pages;
  }
  for (const auto& [name, seconds] : heirs) {
    if (gone.contains(name) || tree_.index().page(name) == nullptr) continue;
    UseRecord use = use_record(name).value_or(UseRecord{});
    use.last_use_seconds = std::max(use.last_use_seconds, seconds);
    const std::string key = record_key(RecordSpace::kUse, name);
    batch.put(key, encode_use(key, use));
  }
  LOCKET_TRY_STATUS(write_batch(batch));
  parts_.drops.note_loss();
  settle(removed);
  const std::lock_guard lock(counts_mutex_);
  counts_.pages_evicted += pages;
  counts_.snapshots_evicted += snapshots;
  return {};
}

void TurnWriter::cut_to_room(Plan& plan) const {
  if (parts_.quota_bytes == 0) return;
  const std::uint64_t used = allocated_bytes_below(parts_.folder);
  while (needed_bytes(plan) > 0 && used + needed_bytes(plan) > limit_bytes()) {
    const std::int64_t page = plan.pages.empty() ? -1 : plan.pages.back()->end.position;
    if (!plan.snapshots.empty() && plan.snapshots.back()->point.position >= page) {
      plan.snapshots.pop_back();
      continue;
    }
    plan.names.erase(plan.pages.back()->end.name);
    plan.pages.pop_back();
    ++plan.left_out;
  }
}

}  // namespace locket::cache
