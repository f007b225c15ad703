// Token ids from a file.
#pragma once

#include <filesystem>
#include <vector>

#include "base/result.h"
#include "engine/sampler.h"

namespace locket::cli {

// A JSON list of whole numbers, at least one. kBadRequest names the file and the entry.
[[nodiscard]] Result<std::vector<engine::TokenId>> read_ids_file(const std::filesystem::path& path);

}  // namespace locket::cli
