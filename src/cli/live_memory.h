// The measured half of `locket memory`: what a checkpoint's memory really takes on this machine,
// beside what its layout says.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/result.h"

namespace locket::cli {

// A table for one model: a checkpoint folder is loaded and reads `token_count` random ids; a config
// file alone is filled with rows of random values. At most 100 columns.
[[nodiscard]] Result<std::string> live_memory_text(const std::filesystem::path& model,
                                                   std::int64_t token_count);

}  // namespace locket::cli
