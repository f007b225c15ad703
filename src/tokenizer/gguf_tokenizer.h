// A byte-level BPE tokenizer from the keys of a GGUF file (tokenizer.ggml.*). The file names its
// pre-tokenizer instead of spelling it; the patterns are those that llama.cpp has for the name.
// Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/tokenizer_json.h"

namespace locket::tokenizer {

struct GgufVocabulary {
  std::string_view model;                     // "gpt2": byte-level BPE
  std::string_view pre;                       // "smollm"; empty: the file says nothing
  std::span<const std::string> tokens;        // spelling by id
  std::span<const std::int64_t> token_types;  // [tokens], the format's numbers
  std::span<const std::string> merges;        // "left right", by rank
};

// kUnsupported names a kind of tokenizer or pre-tokenizer that is not there; kBadCheckpoint what
// does not fit together.
[[nodiscard]] Result<TokenizerFile> gguf_tokenizer_file(const GgufVocabulary& vocabulary);

// The same as a tokenizer; `name` of the file is used in messages.
[[nodiscard]] Result<Tokenizer> make_gguf_tokenizer(const GgufVocabulary& vocabulary,
                                                    std::string_view name);

}  // namespace locket::tokenizer
