// UTF-8 taken apart without trusting it: a character, a broken part, or the beginning of a
// character that the bytes at hand do not finish. A broken part is maximal: the longest beginning
// of a valid character, else one byte, so that one U+FFFD stands for each. Pure functions.
#pragma once

#include <cstddef>
#include <string_view>

namespace locket::tokenizer {

inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";  // U+FFFD

enum class Utf8PartKind {
  kCharacter,
  kBroken,
  kUnfinished,  // everything up to the end is the beginning of one valid character
  kCount
};

struct Utf8Part {
  Utf8PartKind kind = Utf8PartKind::kCharacter;
  std::size_t bytes = 0;    // 1 .. 4
  char32_t code_point = 0;  // of a kCharacter
};

// The part that `bytes` begins with. REQUIRES: not empty.
Utf8Part first_utf8_part(std::string_view bytes);

// Whether all of it is valid UTF-8.
bool is_valid_utf8(std::string_view bytes);

}  // namespace locket::tokenizer
