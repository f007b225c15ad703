// The records of the disk store as bytes, and back: docs/formats/kv_store.md. Every value begins
// with the format version and ends with a checksum over itself and its key; what does not fit in
// every respect is not decoded. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cache/disk_store.h"

namespace locket::cache {

inline constexpr std::uint32_t kRecordFormat = 1;

// First byte of a key.
enum class RecordSpace : char {
  kPage = 'P',        // parent name, name
  kSnapshot = 'S',    // name of the boundary
  kUse = 'U',         // name
  kRoot = 'R',        // name
  kTombstone = 'X',   // name
  kMiss = 'M',        // number, big-endian, so that they come in order
  kNextSegment = 'N'  // nothing
};

std::string record_key(RecordSpace space, std::string_view rest);
std::string record_key(RecordSpace space, const PageName& name);
std::string page_key(const PageName& parent, const PageName& name);
// All pages that begin where `parent` ends.
std::string children_prefix(const PageName& parent);

struct PageRecord {
  StoredPage page;
  double created_seconds = 0;
};

struct SnapshotRecord {
  PrefixPoint point;
  StoredValue value;
  double created_seconds = 0;
};

// How a page that was the deepest of its prefix has been used.
struct UseRecord {
  double last_use_seconds = 0;
  std::uint64_t hits = 0;
  bool is_pinned = false;
};

enum class GoneReason : std::uint8_t { kEvicted = 1, kDamaged = 2, kRemoved = 3 };

struct Tombstone {
  GoneReason reason = GoneReason::kEvicted;
  double seconds = 0;
};

// Version and checksum around the content of a record, and the content of one that is whole.
std::string seal_record(std::string_view key, std::string_view content);
std::optional<std::string_view> open_record(std::string_view key, std::string_view value);

std::string encode_page(std::string_view key, const PageRecord& record);
std::string encode_snapshot(std::string_view key, const SnapshotRecord& record);
std::string encode_use(std::string_view key, const UseRecord& record);
std::string encode_tombstone(std::string_view key, const Tombstone& record);
std::string encode_root(std::string_view key, const RootLabel& label);
std::string encode_next_segment(std::string_view key, std::uint32_t id);

// Keys are checked too. nullopt: damaged, foreign or of another version.
std::optional<PageRecord> decode_page(std::string_view key, std::string_view value);
std::optional<SnapshotRecord> decode_snapshot(std::string_view key, std::string_view value);
std::optional<UseRecord> decode_use(std::string_view key, std::string_view value);
std::optional<Tombstone> decode_tombstone(std::string_view key, std::string_view value);
std::optional<RootLabel> decode_root(std::string_view key, std::string_view value);
std::optional<std::uint32_t> decode_next_segment(std::string_view key, std::string_view value);

// The name that a key of one name ends with. REQUIRES: key is as long as record_key() makes it.
std::optional<PageName> name_of_key(std::string_view key);

}  // namespace locket::cache
