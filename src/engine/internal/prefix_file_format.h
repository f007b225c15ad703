// The parts of a prefix file that are neither pages nor snapshots, and the names of its tensors:
// docs/formats/prefix_file.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cache/page_name.h"

namespace locket::engine::internal {

inline constexpr std::string_view kPrefixFileFormat = "locket prefix";
inline constexpr std::uint32_t kPrefixFileVersion = 1;

inline constexpr std::string_view kTokensTensor = "tokens";
inline constexpr std::string_view kNamesTensor = "names";
inline constexpr std::string_view kChecksumsTensor = "checksums";
inline constexpr std::string_view kPositionsTensor = "snapshot_positions";
inline constexpr std::size_t kTableTensors = 4;
inline constexpr std::int64_t kChecksumBytes = 16;

std::string keys_tensor(std::int64_t page);
std::string rows_tensor(std::int64_t page);
std::string snapshot_tensor(std::int64_t position);

using Metadata = std::map<std::string, std::string>;

// What the file says about itself in words.
struct PrefixFileHead {
  std::string model;
  cache::MemoryIdentity identity;
  std::uint32_t memory_format = cache::kMemoryFormat;
  cache::PageName root = {};
};

// What it says in numbers. Checksums: of keys and rows of every page, in order, then of snapshots.
struct PrefixFileTables {
  std::vector<std::int32_t> tokens;
  std::vector<cache::PageName> names;  // one per page
  std::vector<std::int64_t> positions;
  std::vector<Checksum128> checksums;
};

// The tables as they lie in the file, little-endian.
struct TableBytes {
  std::string tokens;
  std::string names;
  std::string positions;
  std::string checksums;
};
TableBytes encode_tables(const PrefixFileTables& tables);
// REQUIRES: whole numbers of entries.
PrefixFileTables decode_tables(const TableBytes& bytes);

// Metadata with the seal: a checksum over all other metadata and the tables.
Metadata encode_head(const PrefixFileHead& head, const TableBytes& tables);
// kBadMemory names what is missing or wrong: another kind of file, another version, a seal that
// does not fit.
[[nodiscard]] Result<PrefixFileHead> decode_head(const Metadata& metadata,
                                                 const TableBytes& tables);
// Whether it is a prefix file of this version at all; asked before the tables are read.
[[nodiscard]] Status check_format(const Metadata& metadata);

}  // namespace locket::engine::internal
