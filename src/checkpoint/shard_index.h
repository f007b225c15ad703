// Which files of a checkpoint folder hold tensors, and which tensor is in which file.
// model.safetensors.index.json is authoritative when it is there: files that it does not name are
// ignored, a file that it names must exist. Without it the checkpoint is model.safetensors alone.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "checkpoint/safetensors.h"

namespace locket::checkpoint {

struct IndexedTensor {
  std::string name;
  std::size_t shard = 0;  // index into ShardIndex::shards
};

struct ShardIndex {
  std::filesystem::path source;        // the index file, or the single file
  std::vector<std::string> shards;     // file names inside the folder, sorted
  std::vector<IndexedTensor> tensors;  // sorted by name; empty for a single file
  bool is_single_file = false;
};

// kNotFound with every missing file if the index names files that are not there (and with the files
// that are there and not named); kBadCheckpoint if the index itself is wrong.
[[nodiscard]] Result<ShardIndex> read_shard_index(const std::filesystem::path& folder);

// Refuses tensors that the index places in a file that does not hold them, and tensors of a file
// that the index does not place there. REQUIRES: files[i] is index.shards[i], opened.
[[nodiscard]] Status check_against_index(const ShardIndex& index,
                                         std::span<const SafetensorsFile> files);

}  // namespace locket::checkpoint
