// What of a model concerns text: its generation, its tokenizer, and the format of its prompts. Read
// without its weights, and checked to belong together.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"
#include "chat/chat_format.h"
#include "tokenizer/tokenizer.h"

namespace locket::service {

struct ModelText {
  std::string generation;  // "V1" .. "V4.1"
  tokenizer::Tokenizer tokenizer;
  chat::ChatFormat format;
};

// `path`: a checkpoint's folder, with config.json and tokenizer.json, or a GGUF file. The chat
// template of tokenizer_config.json, or of the GGUF file, is not executed; where control tokens
// leave two formats open, what it mentions decides. kBadCheckpoint if the tokenizer has ids that
// the model does not (of V4.1: another number of ids), or lacks a control token of the format.
[[nodiscard]] Result<ModelText> read_model_text(const std::filesystem::path& path);

}  // namespace locket::service
