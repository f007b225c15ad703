// The folder of a store: made and checked, its secret, and who may write.
#pragma once

#include <array>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>

#include "base/folder.h"
#include "base/result.h"

namespace locket::cache {

using StoreSecret = std::array<std::byte, 32>;

// Makes the folder if it is missing. kBadMemory if it cannot be trusted.
[[nodiscard]] Status prepare_store_folder(const std::filesystem::path& folder);

// The secret of the folder, made if it is missing; processes that race for it agree. One of another
// length is worth nothing and is replaced.
[[nodiscard]] Result<StoreSecret> load_secret(const std::filesystem::path& folder);
// Puts this secret there unless there is one.
[[nodiscard]] Status restore_secret(const std::filesystem::path& folder, const StoreSecret& secret);

// kOverloaded if another process writes.
[[nodiscard]] Result<FolderLock> lock_for_writing(const std::filesystem::path& folder);
// Removes files that were left half written. REQUIRES: the lock is held.
void remove_temporary_files(const std::filesystem::path& folder);

}  // namespace locket::cache
