#include "cache/memory_survey.h"

#include <algorithm>
#include <mutex>
#include <unordered_map>

#include "cache/internal/disk_store_impl.h"
#include "cache/internal/eviction_index.h"
#include "cache/prefix_memory.h"

namespace locket::cache {
namespace {

// Nodes that are read before the lock is let go: well below a millisecond.
constexpr NodeId kNodesPerLock = 2048;

}  // namespace

MemorySurvey survey_disk(DiskStore& store, std::size_t most_pages) {
  const DiskStore::Impl& records = store.impl();
  MemorySurvey survey;
  std::unordered_map<PageName, std::size_t, NameHash> indices;
  records.scan_pages([&](const PageRecord& record) {
    survey.is_complete = survey.pages.size() < most_pages;
    if (!survey.is_complete) return false;
    const StoredPage& page = record.page;
    indices.emplace(page.end.name, survey.pages.size());
    survey.pages.push_back({.name = page.end.name,
                            .parent = page.parent.name,
                            .begin = page.parent.position,
                            .tokens = static_cast<std::int64_t>(page.tokens.size()),
                            .bytes = page.keys.bytes + page.rows.bytes});
    return true;
  });
  records.scan_snapshots([&](const SnapshotRecord& record) {
    const auto found = indices.find(record.point.name);
    if (found != indices.end()) survey.pages[found->second].bytes += record.value.bytes;
    return true;
  });
  records.scan_uses([&](const PageName& name, const UseRecord& use) {
    const auto found = indices.find(name);
    if (found == indices.end()) return true;
    survey.pages[found->second].last_use_seconds = use.last_use_seconds;
    survey.pages[found->second].is_pinned = use.is_pinned;
    return true;
  });
  return survey;
}

MemorySurvey PrefixMemory::survey(std::size_t most_pages) const {
  MemorySurvey survey;
  const std::uint64_t snapshot_bytes = layout_.snapshot_bytes();
  const std::uint64_t page_bytes = layout_.page_bytes();
  const auto add = [&](const TreeNode& node) {
    const auto tokens = static_cast<std::int64_t>(node.tokens.size());
    survey.pages.push_back({.name = node.end.name,
                            .parent = tree_.node(node.parent).end.name,
                            .begin = node.end.position - tokens,
                            .tokens = tokens,
                            .bytes = page_bytes + (node.snapshot ? snapshot_bytes : 0),
                            .last_use_seconds = node.last_use_seconds,
                            .is_in_use = node.pins > 0});
  };
  for (NodeId first = 0;; first += kNodesPerLock) {
    const std::lock_guard lock(mutex_);
    const NodeId end = std::min(tree_.id_end(), first + kNodesPerLock);
    if (first >= end) return survey;
    for (NodeId id = first; id < end; ++id) {
      const TreeNode& node = tree_.node(id);
      if (node.parent == kNoNode) continue;
      survey.is_complete = survey.pages.size() < most_pages;
      if (!survey.is_complete) return survey;
      add(node);
    }
  }
}

}  // namespace locket::cache
