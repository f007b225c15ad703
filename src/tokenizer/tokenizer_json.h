// tokenizer.json as plain data: the parts of the file that decide ids, checked for their types,
// with everything refused that would change ids and is not built. Whether the parts fit together is
// checked by those who use them (vocabulary, bpe, pretokenizer, special_tokens).
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "tokenizer/tokenizer.h"

namespace locket::tokenizer {

struct BaseEntry {
  std::string spelling;  // byte-level alphabet
  TokenId id = 0;
};

struct AddedToken {
  std::string spelling;  // as it appears in text
  TokenId id = 0;
  bool special = false;
  bool normalized = false;  // matched in a second pass, after those that are not
};

enum class PatternKind { kRegex, kLiteral, kCount };

// A pre-tokenizer step: every match becomes a piece of its own, and so does the text between.
struct SplitPattern {
  PatternKind kind = PatternKind::kRegex;
  std::string pattern;
};

struct Merge {
  std::string left;
  std::string right;
};

// Bytes of valid text that have no entry: refused, or known to be left out of what is encoded.
enum class MissingBytes { kRefused, kLeftOut, kCount };

struct TokenizerFile {
  std::vector<BaseEntry> vocabulary;
  std::vector<Merge> merges;  // by rank
  std::vector<AddedToken> added_tokens;
  std::vector<SplitPattern> splits;  // in the order in which they apply
  MissingBytes missing_bytes = MissingBytes::kRefused;
};

// kBadCheckpoint: the message says which part of the file is wrong, without the file's name.
[[nodiscard]] Result<TokenizerFile> parse_tokenizer_file(std::string_view json_text);

}  // namespace locket::tokenizer
