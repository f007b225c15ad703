#include "engine/internal/prefix_file_format.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <fmt/format.h>
#include <optional>

#include "base/check.h"

namespace locket::engine::internal {
namespace {

constexpr const char* kFormatKey = "format";
constexpr const char* kVersionKey = "format_version";
constexpr const char* kMemoryFormatKey = "memory_format";
constexpr const char* kModelKey = "model";
constexpr const char* kIdentityKey = "model_identity";
constexpr const char* kModeKey = "numerics_mode";
constexpr const char* kRevisionKey = "numerics_revision";
constexpr const char* kTenantKey = "tenant";
constexpr const char* kRootKey = "root";
constexpr const char* kSealKey = "seal";

template <class Number>
void append_number(std::string& bytes, Number value) {
  for (std::size_t i = 0; i < sizeof(Number); ++i) {
    bytes.push_back(static_cast<char>(static_cast<std::uint64_t>(value) >> (8 * i) & 255));
  }
}

template <class Number>
Number number_at(std::string_view bytes, std::size_t at) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < sizeof(Number); ++i) {
    value |= std::uint64_t{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
  }
  return static_cast<Number>(value);
}

void append_text(std::string& bytes, std::string_view text) {
  append_number(bytes, static_cast<std::uint64_t>(text.size()));
  bytes.append(text);
}

std::string checksum_text(const Checksum128& checksum) {
  return fmt::format("{:016x}{:016x}", checksum.high, checksum.low);
}

std::string seal_of(const Metadata& metadata, const TableBytes& tables) {
  std::string bytes;
  for (const auto& [key, value] : metadata) {
    if (key == kSealKey) continue;
    append_text(bytes, key);
    append_text(bytes, value);
  }
  for (const std::string* table :
       {&tables.tokens, &tables.names, &tables.positions, &tables.checksums}) {
    append_text(bytes, *table);
  }
  return checksum_text(xxh3_128(std::as_bytes(std::span(bytes))));
}

// Words come from folders' and tenants' names, which may be any bytes.
std::string ascii(std::string_view text) {
  std::string plain;
  for (const char byte : text) {
    const auto value = static_cast<unsigned char>(byte);
    const bool is_plain = value >= 0x20 && value < 0x7F && value != '\\';
    plain += is_plain ? std::string(1, byte) : fmt::format("\\x{:02X}", value);
  }
  return plain;
}

// What an unknown file says, for a message.
std::string shown(std::string_view text) {
  constexpr std::size_t kMostShown = 80;
  const std::string plain = ascii(text.substr(0, kMostShown));
  return fmt::format("\"{}\"{}", plain, text.size() > kMostShown ? "..." : "");
}

Result<std::string> require(const Metadata& metadata, const std::string& key) {
  const auto found = metadata.find(key);
  if (found != metadata.end()) return found->second;
  return fail(ErrorCode::kBadMemory, fmt::format("metadata \"{}\" is missing", key));
}

Result<std::uint32_t> require_number(const Metadata& metadata, const std::string& key) {
  LOCKET_TRY(const std::string text, require(metadata, key));
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc{} && end == text.data() + text.size()) return value;
  return fail(ErrorCode::kBadMemory,
              fmt::format("metadata \"{}\" is {}, expected a whole number", key, shown(text)));
}

Result<Sha256Digest> require_digest(const Metadata& metadata, const std::string& key) {
  LOCKET_TRY(const std::string text, require(metadata, key));
  Sha256Digest digest = {};
  bool is_digest = text.size() == 2 * digest.size();
  for (std::size_t i = 0; i < digest.size() && is_digest; ++i) {
    unsigned value = 0;
    const char* const digits = text.data() + 2 * i;
    const auto [end, error] = std::from_chars(digits, digits + 2, value, 16);
    is_digest = error == std::errc{} && end == digits + 2;
    digest[i] = static_cast<std::byte>(value);
  }
  if (is_digest && to_hex(digest) == text) return digest;
  return fail(
      ErrorCode::kBadMemory,
      fmt::format("metadata \"{}\" is {}, expected 64 hexadecimal digits", key, shown(text)));
}

}  // namespace

std::string keys_tensor(std::int64_t page) { return fmt::format("page.{:06}.keys", page); }
std::string rows_tensor(std::int64_t page) { return fmt::format("page.{:06}.rows", page); }
std::string snapshot_tensor(std::int64_t position) { return fmt::format("snapshot.{}", position); }

TableBytes encode_tables(const PrefixFileTables& tables) {
  TableBytes bytes;
  for (const std::int32_t token : tables.tokens) append_number(bytes.tokens, token);
  for (const cache::PageName& name : tables.names) {
    bytes.names.append(reinterpret_cast<const char*>(name.data()), name.size());
  }
  for (const std::int64_t position : tables.positions) append_number(bytes.positions, position);
  for (const Checksum128& checksum : tables.checksums) {
    append_number(bytes.checksums, checksum.low);
    append_number(bytes.checksums, checksum.high);
  }
  return bytes;
}

PrefixFileTables decode_tables(const TableBytes& bytes) {
  constexpr std::size_t kNameBytes = sizeof(cache::PageName);
  PrefixFileTables tables;
  tables.tokens.resize(bytes.tokens.size() / sizeof(std::int32_t));
  for (std::size_t i = 0; i < tables.tokens.size(); ++i) {
    tables.tokens[i] = number_at<std::int32_t>(bytes.tokens, i * sizeof(std::int32_t));
  }
  tables.names.resize(bytes.names.size() / kNameBytes);
  std::memcpy(tables.names.data(), bytes.names.data(), tables.names.size() * kNameBytes);
  tables.positions.resize(bytes.positions.size() / sizeof(std::int64_t));
  for (std::size_t i = 0; i < tables.positions.size(); ++i) {
    tables.positions[i] = number_at<std::int64_t>(bytes.positions, i * sizeof(std::int64_t));
  }
  tables.checksums.resize(bytes.checksums.size() / kChecksumBytes);
  for (std::size_t i = 0; i < tables.checksums.size(); ++i) {
    const std::size_t at = i * kChecksumBytes;
    tables.checksums[i] = {
        .low = number_at<std::uint64_t>(bytes.checksums, at),
        .high = number_at<std::uint64_t>(bytes.checksums, at + sizeof(std::uint64_t))};
  }
  return tables;
}

Metadata encode_head(const PrefixFileHead& head, const TableBytes& tables) {
  Metadata metadata = {
      {kFormatKey, std::string(kPrefixFileFormat)},
      {kVersionKey, std::to_string(kPrefixFileVersion)},
      {kMemoryFormatKey, std::to_string(head.memory_format)},
      {kModelKey, ascii(head.model)},
      {kIdentityKey, to_hex(head.identity.model)},
      {kModeKey, ascii(head.identity.numerics_mode)},
      {kRevisionKey, std::to_string(head.identity.numerics_revision)},
      {kTenantKey, ascii(head.identity.tenant)},
      {kRootKey, to_hex(head.root)},
  };
  metadata[kSealKey] = seal_of(metadata, tables);
  return metadata;
}

Status check_format(const Metadata& metadata) {
  const auto format = metadata.find(kFormatKey);
  if (format == metadata.end() || format->second != kPrefixFileFormat) {
    return fail(
        ErrorCode::kBadMemory,
        fmt::format("metadata \"{}\" is {}, expected \"{}\": this is no exported prefix",
                    kFormatKey, format == metadata.end() ? "missing" : shown(format->second),
                    kPrefixFileFormat));
  }
  LOCKET_TRY(const std::uint32_t version, require_number(metadata, kVersionKey));
  if (version == kPrefixFileVersion) return {};
  return fail(ErrorCode::kBadMemory, fmt::format("metadata \"{}\" is {}, this program reads {}",
                                                 kVersionKey, version, kPrefixFileVersion));
}

Result<PrefixFileHead> decode_head(const Metadata& metadata, const TableBytes& tables) {
  LOCKET_TRY_STATUS(check_format(metadata));
  LOCKET_TRY(const std::string seal, require(metadata, kSealKey));
  const std::string wanted = seal_of(metadata, tables);
  if (seal != wanted) {
    return fail(ErrorCode::kBadMemory,
                fmt::format("metadata \"{}\" is {}, the content gives \"{}\": the file is damaged",
                            kSealKey, shown(seal), wanted));
  }
  PrefixFileHead head;
  LOCKET_TRY(head.memory_format, require_number(metadata, kMemoryFormatKey));
  LOCKET_TRY(head.model, require(metadata, kModelKey));
  LOCKET_TRY(head.identity.model, require_digest(metadata, kIdentityKey));
  LOCKET_TRY(head.identity.numerics_mode, require(metadata, kModeKey));
  LOCKET_TRY(head.identity.numerics_revision, require_number(metadata, kRevisionKey));
  LOCKET_TRY(head.identity.tenant, require(metadata, kTenantKey));
  LOCKET_TRY(head.root, require_digest(metadata, kRootKey));
  return head;
}

}  // namespace locket::engine::internal
