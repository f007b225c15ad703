#include "tokenizer/utf8.h"

#include <array>
#include <cstdint>
#include <cstring>

#include "base/check.h"
#include "tokenizer/tokenizer.h"

namespace locket::tokenizer {
namespace {

// What a leading byte announces: the length of the character and the range of its second byte,
// which is narrower than 80..BF where the encoding would be overlong, a surrogate or above
// U+10FFFF.
struct LeadingByte {
  std::size_t bytes = 0;  // 0: no character begins with this byte
  std::uint8_t second_low = 0x80;
  std::uint8_t second_high = 0xBF;
};

LeadingByte classify(std::uint8_t byte) {
  if (byte < 0x80) return {.bytes = 1};
  if (byte < 0xC2) return {};
  if (byte < 0xE0) return {.bytes = 2};
  if (byte == 0xE0) return {.bytes = 3, .second_low = 0xA0};
  if (byte == 0xED) return {.bytes = 3, .second_high = 0x9F};
  if (byte < 0xF0) return {.bytes = 3};
  if (byte == 0xF0) return {.bytes = 4, .second_low = 0x90};
  if (byte < 0xF4) return {.bytes = 4};
  if (byte == 0xF4) return {.bytes = 4, .second_high = 0x8F};
  return {};
}

std::uint8_t byte_at(std::string_view bytes, std::size_t index) {
  return static_cast<std::uint8_t>(bytes[index]);
}

char32_t value_bits(std::uint8_t leading, std::size_t bytes) {
  constexpr std::array<std::uint8_t, 5> kMask = {0, 0x7F, 0x1F, 0x0F, 0x07};
  return static_cast<char32_t>(leading & kMask[bytes]);
}

// Length of the run of ASCII that `bytes` begins with, in steps of 8.
std::size_t ascii_prefix(std::string_view bytes) {
  std::size_t done = 0;
  for (; done + 8 <= bytes.size(); done += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + done, 8);
    if ((word & 0x8080808080808080U) != 0) break;
  }
  return done;
}

// Length of the valid beginning of `bytes`.
std::size_t valid_prefix(std::string_view bytes) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    done += ascii_prefix(bytes.substr(done));
    if (done == bytes.size()) break;
    const Utf8Part part = first_utf8_part(bytes.substr(done));
    if (part.kind != Utf8PartKind::kCharacter) break;
    done += part.bytes;
  }
  return done;
}

}  // namespace

Utf8Part first_utf8_part(std::string_view bytes) {
  LOCKET_DCHECK(!bytes.empty());
  const std::uint8_t leading = byte_at(bytes, 0);
  const LeadingByte expected = classify(leading);
  if (expected.bytes == 0) return {.kind = Utf8PartKind::kBroken, .bytes = 1};
  char32_t code_point = value_bits(leading, expected.bytes);
  for (std::size_t index = 1; index < expected.bytes; ++index) {
    if (index == bytes.size()) return {.kind = Utf8PartKind::kUnfinished, .bytes = index};
    const std::uint8_t byte = byte_at(bytes, index);
    const std::uint8_t low = index == 1 ? expected.second_low : 0x80;
    const std::uint8_t high = index == 1 ? expected.second_high : 0xBF;
    if (byte < low || byte > high) return {.kind = Utf8PartKind::kBroken, .bytes = index};
    code_point = (code_point << 6) | (byte & 0x3F);
  }
  return {.kind = Utf8PartKind::kCharacter, .bytes = expected.bytes, .code_point = code_point};
}

bool is_valid_utf8(std::string_view bytes) { return valid_prefix(bytes) == bytes.size(); }

std::string repair_utf8(std::string_view bytes) {
  std::string repaired;
  repaired.reserve(bytes.size());
  while (!bytes.empty()) {
    const std::size_t valid = valid_prefix(bytes);
    repaired.append(bytes.substr(0, valid));
    bytes.remove_prefix(valid);
    if (bytes.empty()) break;
    repaired.append(kReplacementCharacter);
    bytes.remove_prefix(first_utf8_part(bytes).bytes);
  }
  return repaired;
}

}  // namespace locket::tokenizer
