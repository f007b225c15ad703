#include "cache/internal/store_lookup.h"

#include <algorithm>
#include <string>

#include "base/check.h"
#include "cache/internal/record_codec.h"
#include "cache/kv_layout.h"

namespace locket::cache {
namespace {

constexpr std::size_t kFirstBatch = 32;
constexpr std::size_t kLargestBatch = 1024;
constexpr std::size_t kPageTokens = static_cast<std::size_t>(kTokensPerPage);

bool is_same_place(const PrefixPoint& stored, const PrefixPoint& wanted) {
  return stored.name == wanted.name && stored.ids == wanted.ids &&
         stored.position == wanted.position;
}

std::size_t common_length(std::span<const std::int32_t> a, std::span<const std::int32_t> b) {
  const std::size_t count = std::min(a.size(), b.size());
  const auto parting =
      std::mismatch(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(count), b.begin());
  return static_cast<std::size_t>(parting.first - a.begin());
}

}  // namespace

std::optional<StoredPage> StoreLookup::page_of(std::string_view key, std::string_view value,
                                               const PrefixPoint& parent,
                                               const PageSizes& sizes) const {
  auto record = decode_page(key, value);
  if (!record) {
    drops_.drop_record(std::string(key));
    return std::nullopt;
  }
  StoredPage& page = record->page;
  // Names that collide: not this prefix's page, but somebody's.
  if (!is_same_place(page.parent, parent)) return std::nullopt;
  const auto tokens = static_cast<std::int64_t>(page.tokens.size());
  if (page.keys.bytes != sizes.key_bytes(tokens) || page.rows.bytes != sizes.row_bytes(tokens)) {
    drops_.drop_record(std::string(key));
    return std::nullopt;
  }
  if (drops_.hides(page)) return std::nullopt;
  page.parent = parent;
  return std::move(page);
}

bool StoreLookup::ends_at(StoredPage& page, std::string_view key, const PrefixPoint& end) const {
  if (!is_same_place(page.end, end)) {
    drops_.drop_record(std::string(key));
    return false;
  }
  page.end = end;
  return true;
}

std::vector<StoredPage> StoreLookup::find_pages(PrefixPoint& at,
                                                std::span<const std::int32_t> wanted,
                                                const PageSizes& sizes) const {
  std::vector<StoredPage> pages;
  std::size_t batch = kFirstBatch;
  for (std::size_t left = wanted.size() / kPageTokens; left > 0;) {
    const std::size_t count = std::min(left, batch);
    std::vector<std::string> keys;
    std::vector<PrefixPoint> ends;
    PrefixPoint point = at;
    for (std::size_t i = 0; i < count; ++i) {
      const PrefixPoint next =
          next_point(point, wanted.subspan((pages.size() + i) * kPageTokens, kPageTokens));
      keys.push_back(page_key(point.name, next.name));
      ends.push_back(next);
      point = next;
    }
    const auto values = records_.get_all(keys);
    for (std::size_t i = 0; i < count; ++i) {
      if (!values[i]) return pages;
      auto page = page_of(keys[i], *values[i], at, sizes);
      const auto tokens = wanted.subspan(pages.size() * kPageTokens, kPageTokens);
      if (!page ||
          !std::equal(tokens.begin(), tokens.end(), page->tokens.begin(), page->tokens.end())) {
        return pages;
      }
      at = page->end;
      pages.push_back(std::move(*page));
    }
    left -= count;
    batch = std::min(kLargestBatch, batch * 4);
  }
  return pages;
}

void StoreLookup::find_parting(const PrefixPoint& at, std::span<const std::int32_t> rest,
                               const PageSizes& sizes, DiskMatch& match) const {
  if (rest.empty()) return;
  records_.scan(children_prefix(at.name), [&](std::string_view key, std::string_view value) {
    auto page = page_of(key, value, at, sizes);
    if (!page || !ends_at(*page, key, next_point(at, page->tokens))) return true;
    const auto common = static_cast<std::int64_t>(common_length(page->tokens, rest));
    // Keys come in the order of names: the first of equals has the smallest.
    if (common > match.parting_tokens) {
      match.parting_tokens = common;
      match.parting = std::move(page);
    }
    return true;
  });
}

DiskMatch StoreLookup::find(const PrefixPoint& from, std::span<const std::int32_t> wanted,
                            const PageSizes& sizes) const {
  DiskMatch match;
  PrefixPoint at = from;
  match.pages = find_pages(at, wanted, sizes);
  find_parting(at, wanted.subspan(match.pages.size() * kPageTokens), sizes, match);
  return match;
}

std::vector<bool> StoreLookup::has_pages(std::span<const PrefixPoint> parents,
                                         std::span<const PrefixPoint> ends) const {
  LOCKET_CHECK(parents.size() == ends.size());
  std::vector<std::string> keys;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    keys.push_back(page_key(parents[i].name, ends[i].name));
  }
  const auto values = records_.get_all(keys);
  std::vector<bool> found(ends.size(), false);
  for (std::size_t i = 0; i < ends.size(); ++i) {
    const auto record = values[i] ? decode_page(keys[i], *values[i]) : std::nullopt;
    found[i] = record && is_same_place(record->page.parent, parents[i]) &&
               is_same_place(record->page.end, ends[i]) && !drops_.hides(record->page);
  }
  return found;
}

std::optional<StoredValue> StoreLookup::find_snapshot(const PrefixPoint& point,
                                                      const PageSizes& sizes) const {
  const std::string key = record_key(RecordSpace::kSnapshot, point.name);
  const auto value = records_.get(key);
  if (!value) return std::nullopt;
  const auto record = decode_snapshot(key, *value);
  if (!record || record->value.bytes != sizes.snapshot_bytes) {
    drops_.drop_record(key);
    return std::nullopt;
  }
  if (!is_same_place(record->point, point) || drops_.hides(point.name, record->value)) {
    return std::nullopt;
  }
  return record->value;
}

}  // namespace locket::cache
