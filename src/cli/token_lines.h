// One line of `locket tokens`: JSON in, ids or text out. Pure functions of the line; the command
// reads and prints.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"
#include "tokenizer/tokenizer.h"

namespace locket::cli {

enum class TokenLineFormat {
  kReadable,  // 671:"The" 67544:" ferry"
  kJson,      // {"ids": [671, 67544], "pieces": ["The", " ferry"]}
  kCount
};

struct TokenLine {
  std::string_view text;   // a JSON object
  std::size_t number = 1;  // in the input, from 1; for messages
};

// The ids of {"text": "..."} or {"base64": "..."} as plain text, where no added token is matched. A
// piece that is not whole UTF-8 shows its bytes as \xF0 in the readable form, and as U+FFFD in
// JSON. kBadRequest names the line and, where the JSON itself is wrong, the byte in it.
[[nodiscard]] Result<std::string> encode_token_line(const tokenizer::Tokenizer& tokenizer,
                                                    const TokenLine& line, TokenLineFormat format);

// The text of {"ids": [...]} as {"text": "...", "base64": "..."}: broken parts of the text are
// U+FFFD, the base64 holds the exact bytes. kBadRequest also for an id that the tokenizer does not
// have.
[[nodiscard]] Result<std::string> decode_token_line(const tokenizer::Tokenizer& tokenizer,
                                                    const TokenLine& line);

// {"error": {"code": ..., "message": ..., "line": ...}}, on one line.
std::string error_line(const Error& error, const TokenLine& line);

}  // namespace locket::cli
