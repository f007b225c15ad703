#include "cache/disk_catalog.h"

#include <algorithm>
#include <fmt/format.h>
#include <functional>
#include <map>
#include <utility>

#include "cache/internal/catalog_tree.h"
#include "cache/internal/disk_store_impl.h"
#include "cache/kv_layout.h"

namespace locket::cache {
namespace {

// Files whose last payload goes are removed as a whole, so many pages at once.
constexpr std::size_t kRemovedTogether = 65'536;

std::map<PageName, RootLabel> all_labels(const DiskStore::Impl& store) {
  std::map<PageName, RootLabel> labels;
  store.scan_roots([&labels](const RootLabel& label) {
    labels.emplace(label.root, label);
    return true;
  });
  return labels;
}

StoredPrefix describe(const CatalogTree& tree, const PageName& name,
                      const std::map<PageName, RootLabel>& labels) {
  const CatalogTree::Page& last = *tree.find(name);
  StoredPrefix prefix;
  prefix.name = name;
  prefix.tokens = last.end;
  prefix.last_use_seconds = std::max(last.use.last_use_seconds, last.created_seconds);
  prefix.created_seconds = last.created_seconds;
  prefix.hits = last.use.hits;
  prefix.is_pinned = last.use.is_pinned;
  tree.walk_up(name, [&prefix](const PageName&, const CatalogTree::Page& page) {
    ++prefix.pages;
    prefix.payload_bytes += page.bytes();
    prefix.snapshots += page.has_snapshot ? 1 : 0;
    if (page.prefixes == 1) {
      ++prefix.own_pages;
      prefix.own_bytes += page.bytes();
    }
    prefix.root.root = page.parent;
    return true;
  });
  const auto label = labels.find(prefix.root.root);
  if (label != labels.end()) prefix.root = label->second;
  return prefix;
}

bool is_hex(std::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

Error no_such_prefix(const PageName& name) {
  return {ErrorCode::kNotFound, fmt::format("no prefix {} is stored", to_hex(name))};
}

// As list_prefixes() sorts.
bool is_used_later(const StoredPrefix& left, const StoredPrefix& right) {
  if (left.last_use_seconds != right.last_use_seconds) {
    return left.last_use_seconds > right.last_use_seconds;
  }
  return left.name < right.name;
}

}  // namespace

std::vector<StoredPrefix> list_prefixes(DiskStore& store) {
  const CatalogTree tree(store.impl());
  const std::map<PageName, RootLabel> labels = all_labels(store.impl());
  std::vector<StoredPrefix> prefixes;
  for (const PageName& name : tree.prefixes()) prefixes.push_back(describe(tree, name, labels));
  std::ranges::sort(prefixes, is_used_later);
  return prefixes;
}

CatalogTotals count_stored(DiskStore& store) {
  const CatalogTree tree(store.impl());
  CatalogTotals totals;
  totals.folder_bytes = store.used_bytes();
  totals.quota_bytes = store.impl().options().quota_bytes;
  for (const auto& [name, page] : tree.pages()) {
    totals.key_bytes += page.key_bytes;
    totals.row_bytes += page.row_bytes;
    totals.snapshot_bytes += page.snapshot_bytes;
    totals.snapshots += page.has_snapshot ? 1 : 0;
    totals.tokens += page.end - page.begin;
    totals.tails += page.end - page.begin < kTokensPerPage ? 1 : 0;
    totals.unreachable_pages += page.is_reachable ? 0 : 1;
  }
  totals.pages = static_cast<std::int64_t>(tree.pages().size());
  for (auto& [name, label] : all_labels(store.impl())) totals.roots.push_back(std::move(label));
  return totals;
}

Result<PageName> find_prefix(DiskStore& store, std::string_view hex) {
  std::string digits(hex);
  std::ranges::transform(digits, digits.begin(), [](char digit) {
    return digit >= 'A' && digit <= 'F' ? static_cast<char>(digit - 'A' + 'a') : digit;
  });
  if (digits.empty() || digits.size() > 2 * sizeof(PageName) || !is_hex(digits)) {
    return fail(ErrorCode::kBadRequest,
                "the name of a prefix is its first hexadecimal digits, at most 64 of them");
  }
  const CatalogTree tree(store.impl());
  std::vector<PageName> found;
  for (const PageName& name : tree.prefixes()) {
    if (to_hex(name).starts_with(digits)) found.push_back(name);
  }
  if (found.size() == 1) return found.front();
  if (found.empty()) {
    return fail(ErrorCode::kNotFound,
                fmt::format("no prefix whose name begins with {} is stored", digits));
  }
  return fail(ErrorCode::kBadRequest,
              fmt::format("{} prefixes begin with {}; give more digits", found.size(), digits));
}

Result<std::vector<StoredPage>> pages_of(DiskStore& store, const PageName& name) {
  const CatalogTree tree(store.impl());
  const CatalogTree::Page* const last = tree.find(name);
  if (last == nullptr || !last->is_reachable) return tl::make_unexpected(no_such_prefix(name));
  std::vector<StoredPage> pages;
  Status status;
  tree.walk_up(name, [&](const PageName& at, const CatalogTree::Page& page) {
    const std::string key = page_key(page.parent, at);
    const auto value = store.impl().records().get(key);
    auto record = value ? decode_page(key, *value) : std::nullopt;
    if (!record) {
      status = tl::make_unexpected(no_such_prefix(name));
      return false;
    }
    pages.push_back(std::move(record->page));
    return true;
  });
  LOCKET_TRY_STATUS(status);
  std::ranges::reverse(pages);
  return pages;
}

std::vector<StoredSnapshot> snapshots_of(DiskStore& store, std::span<const StoredPage> pages) {
  std::vector<StoredSnapshot> snapshots;
  for (const StoredPage& page : pages) {
    const auto record = store.impl().snapshot_at(page.end.name);
    if (!record || record->point.position != page.end.position) continue;
    snapshots.push_back({.point = page.end, .value = record->value});
  }
  return snapshots;
}

RootLabel label_of(DiskStore& store, const PageName& root) {
  RootLabel found = {.root = root, .model = {}, .identity = {}};
  store.impl().scan_roots([&found](const RootLabel& label) {
    if (label.root != found.root) return true;
    found = label;
    return false;
  });
  return found;
}

Status set_pin(DiskStore& store, const PageName& name, Pin pin) {
  return store.impl().set_pinned(name, pin == Pin::kOn);
}

Result<std::uint64_t> remove_prefix(DiskStore& store, const PageName& name) {
  const CatalogTree tree(store.impl());
  const CatalogTree::Page* const last = tree.find(name);
  if (last == nullptr || !last->is_reachable) return tl::make_unexpected(no_such_prefix(name));
  if (last->use.is_pinned) {
    return fail(ErrorCode::kBadRequest,
                fmt::format("prefix {} is pinned; take the pin off first", to_hex(name)));
  }
  std::vector<PageName> names;
  std::uint64_t bytes = 0;
  tree.walk_up(name, [&](const PageName& at, const CatalogTree::Page& page) {
    if (page.prefixes > 1 || (page.children > 0 && at == name)) return false;
    names.push_back(at);
    bytes += page.bytes();
    return true;
  });
  LOCKET_TRY_STATUS(store.impl().remove_pages(names, GoneReason::kRemoved));
  return bytes;
}

Result<std::uint64_t> remove_all(DiskStore& store) {
  const CatalogTree tree(store.impl());
  for (const SnapshotRecord& snapshot : tree.lost_snapshots()) store.drop_snapshot(snapshot.point);
  std::vector<std::pair<std::int64_t, PageName>> order;
  std::uint64_t bytes = 0;
  for (const auto& [name, page] : tree.pages()) {
    order.emplace_back(page.begin, name);
    bytes += page.bytes();
  }
  std::ranges::sort(order, std::greater<>());
  std::vector<PageName> names;
  names.reserve(order.size());
  for (const auto& [begin, name] : order) names.push_back(name);
  for (std::size_t first = 0; first == 0 || first < names.size(); first += kRemovedTogether) {
    const std::size_t count = std::min(kRemovedTogether, names.size() - first);
    LOCKET_TRY_STATUS(
        store.impl().remove_pages(std::span(names).subspan(first, count), GoneReason::kRemoved));
  }
  LOCKET_TRY_STATUS(forget_misses(store));
  return bytes;
}

}  // namespace locket::cache
