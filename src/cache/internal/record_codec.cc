#include "cache/internal/record_codec.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "cache/internal/byte_codec.h"
#include "cache/kv_layout.h"

namespace locket::cache {
namespace {

constexpr std::size_t kNameBytes = sizeof(PageName);
constexpr std::size_t kChecksumBytes = 16;
constexpr double kMicros = 1e6;
constexpr std::int64_t kMostSeconds = std::int64_t{1} << 42;

std::string_view view_of(const PageName& name) {
  return {reinterpret_cast<const char*>(name.data()), name.size()};
}

Checksum128 checksum_of(std::string_view key, std::string_view content) {
  std::string bytes;
  bytes.reserve(key.size() + content.size());
  bytes.append(content).append(key);
  return xxh3_128(std::as_bytes(std::span(bytes)));
}

void put_time(ByteWriter& writer, double seconds) {
  const double bounded = std::clamp(seconds, 0.0, static_cast<double>(kMostSeconds));
  writer.number(static_cast<std::int64_t>(std::llround(bounded * kMicros)));
}

double get_time(ByteReader& reader) {
  return static_cast<double>(std::max<std::int64_t>(0, reader.number<std::int64_t>())) / kMicros;
}

void put_value(ByteWriter& writer, const StoredValue& value) {
  writer.number(value.segment);
  writer.number(value.offset);
  writer.number(value.bytes);
  writer.checksum(value.checksum);
}

StoredValue get_value(ByteReader& reader) {
  StoredValue value;
  value.segment = reader.number<std::uint32_t>();
  value.offset = reader.number<std::uint64_t>();
  value.bytes = reader.number<std::uint64_t>();
  value.checksum = reader.checksum();
  return value;
}

// Numbers that can be added and compared without running over.
bool is_sane(const StoredValue& value) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 48;
  return value.offset < kMost && value.bytes < kMost;
}

PageName name_at(std::string_view key, std::size_t at) {
  PageName name;
  std::memcpy(name.data(), key.data() + at, kNameBytes);
  return name;
}

bool is_key_of(std::string_view key, RecordSpace space, std::size_t bytes) {
  return key.size() == bytes && key.front() == static_cast<char>(space);
}

}  // namespace

std::string record_key(RecordSpace space, std::string_view rest) {
  std::string key(1, static_cast<char>(space));
  key.append(rest);
  return key;
}

std::string record_key(RecordSpace space, const PageName& name) {
  return record_key(space, view_of(name));
}

std::string page_key(const PageName& parent, const PageName& name) {
  std::string key;
  key.reserve(1 + 2 * kNameBytes);
  key.push_back(static_cast<char>(RecordSpace::kPage));
  key.append(view_of(parent)).append(view_of(name));
  return key;
}

std::string children_prefix(const PageName& parent) {
  return record_key(RecordSpace::kPage, parent);
}

std::string seal_record(std::string_view key, std::string_view content) {
  ByteWriter head;
  head.number(kRecordFormat);
  std::string value = head.take();
  value.append(content);
  ByteWriter tail;
  tail.checksum(checksum_of(key, value));
  return value.append(tail.take());
}

std::optional<std::string_view> open_record(std::string_view key, std::string_view value) {
  if (value.size() < sizeof(kRecordFormat) + kChecksumBytes) return std::nullopt;
  const std::string_view body = value.substr(0, value.size() - kChecksumBytes);
  ByteReader tail(value.substr(body.size()));
  if (!(tail.checksum() == checksum_of(key, body))) return std::nullopt;
  ByteReader head(body);
  if (head.number<std::uint32_t>() != kRecordFormat) return std::nullopt;
  return body.substr(sizeof(kRecordFormat));
}

std::string encode_page(std::string_view key, const PageRecord& record) {
  const StoredPage& page = record.page;
  ByteWriter writer;
  writer.number(page.parent.position);
  writer.checksum(page.parent.ids);
  writer.checksum(page.end.ids);
  put_value(writer, page.keys);
  put_value(writer, page.rows);
  put_time(writer, record.created_seconds);
  writer.number(static_cast<std::uint32_t>(page.tokens.size()));
  for (const std::int32_t token : page.tokens) writer.number(token);
  return seal_record(key, writer.take());
}

std::optional<PageRecord> decode_page(std::string_view key, std::string_view value) {
  if (!is_key_of(key, RecordSpace::kPage, 1 + 2 * kNameBytes)) return std::nullopt;
  const auto content = open_record(key, value);
  if (!content) return std::nullopt;
  ByteReader reader(*content);
  PageRecord record;
  StoredPage& page = record.page;
  page.parent.name = name_at(key, 1);
  page.end.name = name_at(key, 1 + kNameBytes);
  page.parent.position = reader.number<std::int64_t>();
  page.parent.ids = reader.checksum();
  page.end.ids = reader.checksum();
  page.keys = get_value(reader);
  page.rows = get_value(reader);
  record.created_seconds = get_time(reader);
  const auto count = reader.number<std::uint32_t>();
  if (count == 0 || count > kTokensPerPage || reader.left() != count * sizeof(std::int32_t)) {
    return std::nullopt;
  }
  page.tokens.resize(count);
  for (std::int32_t& token : page.tokens) token = reader.number<std::int32_t>();
  constexpr std::int64_t kMostTokens = std::int64_t{1} << 48;
  const bool is_placed = page.parent.position >= 0 && page.parent.position < kMostTokens &&
                         page.parent.position % kTokensPerPage == 0;
  if (!reader.is_complete() || !is_placed || !is_sane(page.keys) || !is_sane(page.rows)) {
    return std::nullopt;
  }
  page.end.position = page.parent.position + static_cast<std::int64_t>(count);
  return record;
}

std::string encode_snapshot(std::string_view key, const SnapshotRecord& record) {
  ByteWriter writer;
  writer.number(record.point.position);
  writer.checksum(record.point.ids);
  put_value(writer, record.value);
  put_time(writer, record.created_seconds);
  return seal_record(key, writer.take());
}

std::optional<SnapshotRecord> decode_snapshot(std::string_view key, std::string_view value) {
  if (!is_key_of(key, RecordSpace::kSnapshot, 1 + kNameBytes)) return std::nullopt;
  const auto content = open_record(key, value);
  if (!content) return std::nullopt;
  ByteReader reader(*content);
  SnapshotRecord record;
  record.point.name = name_at(key, 1);
  record.point.position = reader.number<std::int64_t>();
  record.point.ids = reader.checksum();
  record.value = get_value(reader);
  record.created_seconds = get_time(reader);
  if (!reader.is_complete() || record.point.position <= 0 || !is_sane(record.value)) {
    return std::nullopt;
  }
  return record;
}

std::string encode_use(std::string_view key, const UseRecord& record) {
  ByteWriter writer;
  put_time(writer, record.last_use_seconds);
  writer.number(record.hits);
  writer.number(static_cast<std::uint8_t>(record.is_pinned ? 1 : 0));
  return seal_record(key, writer.take());
}

std::optional<UseRecord> decode_use(std::string_view key, std::string_view value) {
  const auto content = open_record(key, value);
  if (!content || !is_key_of(key, RecordSpace::kUse, 1 + kNameBytes)) return std::nullopt;
  ByteReader reader(*content);
  UseRecord record;
  record.last_use_seconds = get_time(reader);
  record.hits = reader.number<std::uint64_t>();
  record.is_pinned = reader.number<std::uint8_t>() != 0;
  if (!reader.is_complete()) return std::nullopt;
  return record;
}

std::string encode_tombstone(std::string_view key, const Tombstone& record) {
  ByteWriter writer;
  writer.number(static_cast<std::uint8_t>(record.reason));
  put_time(writer, record.seconds);
  return seal_record(key, writer.take());
}

std::optional<Tombstone> decode_tombstone(std::string_view key, std::string_view value) {
  const auto content = open_record(key, value);
  if (!content || !is_key_of(key, RecordSpace::kTombstone, 1 + kNameBytes)) return std::nullopt;
  ByteReader reader(*content);
  Tombstone record;
  const auto reason = reader.number<std::uint8_t>();
  record.reason = static_cast<GoneReason>(reason);
  record.seconds = get_time(reader);
  if (!reader.is_complete() || reason < 1 || reason > 3) return std::nullopt;
  return record;
}

std::string encode_root(std::string_view key, const RootLabel& label) {
  ByteWriter writer;
  writer.text(label.model);
  writer.raw(label.identity.model);
  writer.text(label.identity.numerics_mode);
  writer.number(label.identity.numerics_revision);
  writer.text(label.identity.tenant);
  return seal_record(key, writer.take());
}

std::optional<RootLabel> decode_root(std::string_view key, std::string_view value) {
  const auto content = open_record(key, value);
  if (!content || !is_key_of(key, RecordSpace::kRoot, 1 + kNameBytes)) return std::nullopt;
  ByteReader reader(*content);
  RootLabel label;
  label.root = name_at(key, 1);
  label.model = reader.text();
  reader.raw(label.identity.model);
  label.identity.numerics_mode = reader.text();
  label.identity.numerics_revision = reader.number<std::uint32_t>();
  label.identity.tenant = reader.text();
  if (!reader.is_complete()) return std::nullopt;
  return label;
}

std::string encode_next_segment(std::string_view key, std::uint32_t id) {
  ByteWriter writer;
  writer.number(id);
  return seal_record(key, writer.take());
}

std::optional<std::uint32_t> decode_next_segment(std::string_view key, std::string_view value) {
  const auto content = open_record(key, value);
  if (!content || !is_key_of(key, RecordSpace::kNextSegment, 1)) return std::nullopt;
  ByteReader reader(*content);
  const auto id = reader.number<std::uint32_t>();
  if (!reader.is_complete()) return std::nullopt;
  return id;
}

std::optional<PageName> name_of_key(std::string_view key) {
  if (key.size() != 1 + kNameBytes) return std::nullopt;
  return name_at(key, 1);
}

}  // namespace locket::cache
