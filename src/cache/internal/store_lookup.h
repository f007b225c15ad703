// Finds what is stored of a prefix. Every record is compared with what was asked for, in every
// respect, before it is given out. Thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "cache/disk_store.h"
#include "cache/internal/record_store.h"
#include "cache/internal/store_drops.h"

namespace locket::cache {

class StoreLookup {
 public:
  StoreLookup(const RecordStore& records, StoreDrops& drops) : records_(records), drops_(drops) {}

  DiskMatch find(const PrefixPoint& from, std::span<const std::int32_t> wanted,
                 const PageSizes& sizes) const;
  std::optional<StoredValue> find_snapshot(const PrefixPoint& point, const PageSizes& sizes) const;
  // Whether the pages are stored, one by one.
  std::vector<bool> has_pages(std::span<const PrefixPoint> parents,
                              std::span<const PrefixPoint> ends) const;

 private:
  // Full pages from `from` on; `at` becomes the point after them.
  std::vector<StoredPage> find_pages(PrefixPoint& at, std::span<const std::int32_t> wanted,
                                     const PageSizes& sizes) const;
  void find_parting(const PrefixPoint& at, std::span<const std::int32_t> rest,
                    const PageSizes& sizes, DiskMatch& match) const;
  // The page of a record that begins at `parent`, without the look at where its own tokens end;
  // nullopt if it is no use or of another prefix.
  std::optional<StoredPage> page_of(std::string_view key, std::string_view value,
                                    const PrefixPoint& parent, const PageSizes& sizes) const;
  // Whether the page ends at `end`, which follows from its tokens.
  bool ends_at(StoredPage& page, std::string_view key, const PrefixPoint& end) const;

  const RecordStore& records_;
  StoreDrops& drops_;
};

}  // namespace locket::cache
