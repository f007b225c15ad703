#include "cli/base64.h"

#include <cstddef>
#include <cstdint>
#include <fmt/format.h>

namespace locket::cli {
namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

// The 6 bits of the character at `place`; 0 from `padding_begin` on.
Result<std::uint32_t> bits_at(std::string_view text, std::size_t place, std::size_t padding_begin) {
  if (place >= padding_begin) return 0;
  const std::size_t value = kAlphabet.find(text[place]);
  if (value == std::string_view::npos) {
    return fail(ErrorCode::kBadRequest,
                fmt::format("character {} is not in the base64 alphabet", place));
  }
  return static_cast<std::uint32_t>(value);
}

}  // namespace

std::string encode_base64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t begin = 0; begin < bytes.size(); begin += 3) {
    const std::string_view group = bytes.substr(begin, 3);
    std::uint32_t bits = 0;
    for (std::size_t index = 0; index < 3; ++index) {
      bits = (bits << 8) | (index < group.size() ? static_cast<std::uint8_t>(group[index]) : 0U);
    }
    for (std::size_t index = 0; index < 4; ++index) {
      const std::uint32_t value = (bits >> (18 - 6 * index)) & 0x3F;
      text += index <= group.size() ? kAlphabet[value] : '=';
    }
  }
  return text;
}

Result<std::string> decode_base64(std::string_view text) {
  if (text.size() % 4 != 0) {
    return fail(ErrorCode::kBadRequest,
                fmt::format("base64 of {} characters, expected a multiple of 4", text.size()));
  }
  std::size_t padding_begin = text.size();
  while (padding_begin > 0 && text.size() - padding_begin < 2 && text[padding_begin - 1] == '=') {
    --padding_begin;
  }
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  for (std::size_t begin = 0; begin < text.size(); begin += 4) {
    std::uint32_t bits = 0;
    for (std::size_t place = begin; place < begin + 4; ++place) {
      LOCKET_TRY(const std::uint32_t value, bits_at(text, place, padding_begin));
      bits = (bits << 6) | value;
    }
    for (const int shift : {16, 8, 0}) bytes += static_cast<char>((bits >> shift) & 0xFF);
  }
  bytes.resize(bytes.size() - (text.size() - padding_begin));
  return bytes;
}

}  // namespace locket::cli
