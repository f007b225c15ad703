#include "cache/internal/catalog_tree.h"

#include <algorithm>
#include <utility>

namespace locket::cache {

CatalogTree::CatalogTree(const DiskStore::Impl& store) {
  store.catch_up();
  read(store);
  find_reachable();
  find_prefixes();
}

void CatalogTree::read(const DiskStore::Impl& store) {
  store.scan_pages([this](const PageRecord& record) {
    Page page;
    page.parent = record.page.parent.name;
    page.begin = record.page.parent.position;
    page.end = record.page.end.position;
    page.key_bytes = record.page.keys.bytes;
    page.row_bytes = record.page.rows.bytes;
    page.created_seconds = record.created_seconds;
    pages_.emplace(record.page.end.name, page);
    return true;
  });
  store.scan_snapshots([this](const SnapshotRecord& record) {
    const auto found = pages_.find(record.point.name);
    if (found == pages_.end() || found->second.end != record.point.position) {
      lost_snapshots_.push_back(record);
      return true;
    }
    found->second.has_snapshot = true;
    found->second.snapshot_bytes = record.value.bytes;
    return true;
  });
  store.scan_uses([this](const PageName& name, const UseRecord& use) {
    const auto found = pages_.find(name);
    if (found != pages_.end()) found->second.use = use;
    return true;
  });
}

// A page's parent ends where it begins, so going up always ends.
void CatalogTree::find_reachable() {
  std::vector<std::pair<std::int64_t, PageName>> order;
  order.reserve(pages_.size());
  for (const auto& [name, page] : pages_) order.emplace_back(page.begin, name);
  std::ranges::sort(order);
  for (const auto& [begin, name] : order) {
    Page& page = pages_.at(name);
    const auto parent = pages_.find(page.parent);
    const bool has_parent = parent != pages_.end() && parent->second.end == begin;
    page.is_reachable = begin == 0 || (has_parent && parent->second.is_reachable);
    if (has_parent && page.is_reachable) ++parent->second.children;
  }
}

void CatalogTree::find_prefixes() {
  for (const auto& [name, page] : pages_) {
    if (page.is_reachable && (page.children == 0 || page.use.is_pinned)) prefixes_.push_back(name);
  }
  for (const PageName& name : prefixes_) {
    walk_up(name, [this](const PageName& above, const Page&) {
      ++pages_.at(above).prefixes;
      return true;
    });
  }
}

const CatalogTree::Page* CatalogTree::find(const PageName& name) const {
  const auto found = pages_.find(name);
  return found == pages_.end() ? nullptr : &found->second;
}

void CatalogTree::walk_up(const PageName& name,
                          const std::function<bool(const PageName&, const Page&)>& visit) const {
  PageName at = name;
  for (const Page* page = find(at); page != nullptr; page = find(at)) {
    if (!visit(at, *page) || page->begin == 0) return;
    at = page->parent;
  }
}

PageName CatalogTree::root_of(const PageName& name) const {
  PageName root = {};
  walk_up(name, [&root](const PageName&, const Page& page) {
    root = page.parent;
    return true;
  });
  return root;
}

}  // namespace locket::cache
