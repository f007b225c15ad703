// Where a command finds its model when none is named, and which tokenizer.json it reads.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"

namespace locket::cli {

// Where the small model that ships may lie.
struct ModelSearch {
  std::string named = {};              // LOCKET_MODEL; if set, the only place that counts
  std::filesystem::path program = {};  // the running program's file
  std::filesystem::path current_folder = {};
};

// The folders to try, in order: what is named; else, from the program's folder upwards (a few
// steps), models/mini and share/locket/models/mini; then models/mini in the current folder. None
// twice.
std::vector<std::filesystem::path> model_candidates(const ModelSearch& search);

// The first candidate that holds a config.json. kNotFound names all that were tried.
[[nodiscard]] Result<std::filesystem::path> find_model(const ModelSearch& search);

// find_model() with this process's environment, program and current folder.
[[nodiscard]] Result<std::filesystem::path> find_default_model();

// The model folder a command should use: `model` itself, or the default if it is empty.
[[nodiscard]] Result<std::filesystem::path> resolve_model(const std::filesystem::path& model);

// What service::load_tokenizer() should read: `tokenizer` if given, else that of resolve_model().
[[nodiscard]] Result<std::filesystem::path> resolve_tokenizer(
    const std::filesystem::path& tokenizer, const std::filesystem::path& model);

}  // namespace locket::cli
