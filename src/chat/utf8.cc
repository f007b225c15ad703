#include "chat/utf8.h"

#include <algorithm>

#include "tokenizer/utf8.h"

namespace locket::chat {

using tokenizer::first_utf8_part;
using tokenizer::Utf8Part;
using tokenizer::Utf8PartKind;

std::size_t utf8_character_bytes(std::string_view bytes) {
  if (bytes.empty()) return 0;
  const Utf8Part part = first_utf8_part(bytes);
  return part.kind == Utf8PartKind::kCharacter ? part.bytes : 0;
}

std::size_t incomplete_utf8_tail(std::string_view bytes) {
  for (std::size_t length = std::min<std::size_t>(bytes.size(), 3); length > 0; --length) {
    const Utf8Part part = first_utf8_part(bytes.substr(bytes.size() - length));
    if (part.kind == Utf8PartKind::kUnfinished) return length;
  }
  return 0;
}

void append_utf8(std::uint32_t code_point, std::string& out) {
  const auto put = [&out](std::uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  const auto put_continuation = [&](unsigned shift) {
    put(0x80U | ((code_point >> shift) & 0x3FU));
  };
  if (code_point < 0x80) {
    put(code_point);
  } else if (code_point < 0x800) {
    put(0xC0U | (code_point >> 6U));
    put_continuation(0);
  } else if (code_point < 0x10000) {
    put(0xE0U | (code_point >> 12U));
    put_continuation(6);
    put_continuation(0);
  } else {
    put(0xF0U | (code_point >> 18U));
    put_continuation(12);
    put_continuation(6);
    put_continuation(0);
  }
}

}  // namespace locket::chat
