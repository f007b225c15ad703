// What the memory of one sequence costs on disk: rows of random values (live_cache.h) go the way of
// a session's, through the prefix memory into its store, and the folder's files are counted.
//
// A free function; makes its folder and removes it.
#pragma once

#include <cstdint>
#include <filesystem>

#include "base/result.h"
#include "model/language_model.h"

namespace locket::engine {

struct StoredCacheSize {
  std::int64_t tokens = 0;
  std::uint64_t folder_bytes = 0;    // of all files, as the file system counts them
  std::uint64_t snapshot_bytes = 0;  // of them, rings
  std::uint64_t snapshots = 0;

  // Rows, keys, token ids and records.
  double row_bytes_per_token() const;
  double bytes_per_token() const;  // with snapshots
};

// One turn of `token_count` tokens, with the snapshots that a session would keep of it.
// kOverBudget, with the numbers, if pages and snapshots would not fit into the memory that is free;
// kIo.
[[nodiscard]] Result<StoredCacheSize> fill_stored_cache(const model::ModelOutline& outline,
                                                        std::int64_t token_count,
                                                        const std::filesystem::path& scratch);

}  // namespace locket::engine
