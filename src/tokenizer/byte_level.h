// The byte-level alphabet: every byte has one printable character by which tokenizer.json spells
// it. Printable ASCII and Latin-1 bytes stand for themselves; the other 68 take U+0100 onwards, in
// byte order (so a space is U+0120). Pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace locket::tokenizer {

// `bytes` in the alphabet, as UTF-8.
std::string spell_bytes(std::string_view bytes);

// The bytes that `spelling` stands for; nothing if a character is outside the alphabet.
std::optional<std::string> bytes_of_spelling(std::string_view spelling);

}  // namespace locket::tokenizer
