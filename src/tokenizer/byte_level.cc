#include "tokenizer/byte_level.h"

#include <array>
#include <cstddef>
#include <cstdint>

#include "tokenizer/utf8.h"

namespace locket::tokenizer {
namespace {

constexpr std::size_t kByteCount = 256;
constexpr char32_t kFirstSubstitute = 0x100;
constexpr char32_t kAlphabetEnd = kFirstSubstitute + 68;

constexpr bool stands_for_itself(std::size_t byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

constexpr std::array<char16_t, kByteCount> make_characters() {
  std::array<char16_t, kByteCount> characters = {};
  char16_t substitute = kFirstSubstitute;
  for (std::size_t byte = 0; byte < kByteCount; ++byte) {
    characters[byte] = stands_for_itself(byte) ? static_cast<char16_t>(byte) : substitute++;
  }
  return characters;
}

constexpr std::int16_t kNoByte = -1;

constexpr std::array<std::int16_t, kAlphabetEnd> make_bytes() {
  std::array<std::int16_t, kAlphabetEnd> bytes = {};
  bytes.fill(kNoByte);
  const auto characters = make_characters();
  for (std::size_t byte = 0; byte < kByteCount; ++byte) {
    bytes[characters[byte]] = static_cast<std::int16_t>(byte);
  }
  return bytes;
}

constexpr std::array<char16_t, kByteCount> kCharacterOfByte = make_characters();
constexpr std::array<std::int16_t, kAlphabetEnd> kByteOfCharacter = make_bytes();

}  // namespace

std::string spell_bytes(std::string_view bytes) {
  std::string spelling;
  for (const char byte : bytes) {
    const unsigned character = kCharacterOfByte[static_cast<std::uint8_t>(byte)];
    if (character < 0x80) {
      spelling += static_cast<char>(character);
    } else {
      spelling += static_cast<char>(0xC0U | (character >> 6));
      spelling += static_cast<char>(0x80U | (character & 0x3FU));
    }
  }
  return spelling;
}

std::optional<std::string> bytes_of_spelling(std::string_view spelling) {
  std::string bytes;
  while (!spelling.empty()) {
    const Utf8Part part = first_utf8_part(spelling);
    if (part.kind != Utf8PartKind::kCharacter || part.code_point >= kAlphabetEnd) return {};
    const std::int16_t byte = kByteOfCharacter[part.code_point];
    if (byte == kNoByte) return {};
    bytes += static_cast<char>(byte);
    spelling.remove_prefix(part.bytes);
  }
  return bytes;
}

}  // namespace locket::tokenizer
