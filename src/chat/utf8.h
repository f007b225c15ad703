// Small facts about UTF-8 that the chat room needs besides the tokenizer's. Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace locket::chat {

// Length of the well-formed character at the start of `bytes`, or 0 if there is none.
std::size_t utf8_character_bytes(std::string_view bytes);

// Bytes at the end of `bytes` that begin a character and may still become a whole one (0 to 3).
std::size_t incomplete_utf8_tail(std::string_view bytes);

// Appends one code point. REQUIRES: below 0x110000 and no surrogate.
void append_utf8(std::uint32_t code_point, std::string& out);

}  // namespace locket::chat
