// The config of a model, wherever it lies: config.json of a folder, what a GGUF file says
// in its keys, or a config.json by itself. Thread-safe.
#pragma once

#include <filesystem>

#include "base/result.h"
#include "checkpoint/config_json.h"

namespace locket::checkpoint {

// Errors as ConfigFile::open() and GgufFile::open() have them.
[[nodiscard]] Result<ConfigFile> open_model_config(const std::filesystem::path& model);

}  // namespace locket::checkpoint
