// The tokenizer that belongs to a model, wherever it lies: tokenizer.json of a checkpoint folder,
// the vocabulary inside a GGUF file, or a tokenizer.json by itself. Thread-safe.
#pragma once

#include <filesystem>

#include "base/result.h"
#include "tokenizer/tokenizer.h"

namespace locket::service {

// Errors as Tokenizer::load() and GgufFile have them.
[[nodiscard]] Result<tokenizer::Tokenizer> load_tokenizer(const std::filesystem::path& model);

}  // namespace locket::service
