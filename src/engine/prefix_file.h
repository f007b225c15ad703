// A remembered prefix as one safetensors file, to be carried to another machine: token ids, pages,
// snapshots, and whose memory it is. docs/formats/prefix_file.md has the tensors.
//
// An import trusts nothing in the file: identity, sizes, token ids, names and checksums are
// compared before anything is stored. What it cannot know is whether the bytes of a file that is
// whole were computed by that model: import files only from where you would take a model from.
//
// Both work page by page: memory does not grow with the prefix but for its token ids, names and
// checksums (12 bytes a token). Free functions; one call at a time per store.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "base/result.h"
#include "cache/disk_store.h"
#include "engine/model_memory.h"

namespace locket::engine {

struct PrefixFileFacts {
  std::string model;               // label, for people
  cache::MemoryIdentity identity;  // of the exporter; the tenant, too
  std::int64_t tokens = 0;
  std::int64_t pages = 0;
  std::int64_t snapshots = 0;
  std::uint64_t payload_bytes = 0;
};

// Payload bytes done and their number; may be empty.
using PrefixFileProgress = std::function<void(std::uint64_t done, std::uint64_t total)>;

// Writes the prefix that ends with `name`. kNotFound if there is none, kBadMemory if a part of it
// is damaged, kIo if the file cannot be written.
[[nodiscard]] Result<PrefixFileFacts> export_prefix(cache::DiskStore& store,
                                                    const cache::PageName& name,
                                                    const std::filesystem::path& file,
                                                    const PrefixFileProgress& progress);

struct ImportReport {
  PrefixFileFacts facts;
  std::int64_t pages_known = 0;     // were stored before
  std::int64_t pages_left_out = 0;  // there was no room for them in the quota
  cache::PageName name = {};        // of the last page that is stored now
};

// Where an import goes.
struct ImportTarget {
  cache::DiskStore& store;
  const ModelMemory& memory;
  std::string tenant;
};

// Stores the prefix of `file` in the target's folder, under its names. kBadMemory names the field
// or tensor that is wrong, the value found and what would be right; nothing is stored then unless a
// page's bytes are damaged: the pages before it stay. kBadRequest if the store cannot be written.
[[nodiscard]] Result<ImportReport> import_prefix(const ImportTarget& target,
                                                 const std::filesystem::path& file,
                                                 const PrefixFileProgress& progress);

}  // namespace locket::engine
