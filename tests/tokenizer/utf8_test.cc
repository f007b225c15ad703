#include "tokenizer/utf8.h"

#include <gtest/gtest.h>
#include <string>

#include "tokenizer/tokenizer.h"

namespace locket::tokenizer {
namespace {

// Plain UTF-8 of any value below U+110000, surrogates included.
std::string encoded(char32_t value) {
  const auto byte = [value](int shift, unsigned mask, unsigned mark) {
    return static_cast<char>(((value >> shift) & mask) | mark);
  };
  if (value < 0x80) return {byte(0, 0x7F, 0)};
  if (value < 0x800) return {byte(6, 0x1F, 0xC0), byte(0, 0x3F, 0x80)};
  if (value < 0x10000) return {byte(12, 0xF, 0xE0), byte(6, 0x3F, 0x80), byte(0, 0x3F, 0x80)};
  return {byte(18, 7, 0xF0), byte(12, 0x3F, 0x80), byte(6, 0x3F, 0x80), byte(0, 0x3F, 0x80)};
}

bool is_surrogate(char32_t value) { return value >= 0xD800 && value < 0xE000; }

TEST(Utf8Test, ReadsEveryCharacterAndNoSurrogate) {
  std::size_t wrong = 0;
  for (char32_t value = 0; value < 0x110000; ++value) {
    const std::string bytes = encoded(value);
    const Utf8Part part = first_utf8_part(bytes);
    const bool as_character = part.kind == Utf8PartKind::kCharacter && part.bytes == bytes.size() &&
                              part.code_point == value;
    const bool as_broken = part.kind == Utf8PartKind::kBroken && part.bytes == 1;
    if (!(is_surrogate(value) ? as_broken : as_character)) ++wrong;
  }
  EXPECT_EQ(wrong, 0U);
}

TEST(Utf8Test, CallsEveryProperBeginningUnfinished) {
  std::size_t wrong = 0;
  for (char32_t value = 0x80; value < 0x110000; value += 0x3B) {
    if (is_surrogate(value)) continue;
    const std::string bytes = encoded(value);
    for (std::size_t length = 1; length < bytes.size(); ++length) {
      const Utf8Part part = first_utf8_part(std::string_view(bytes).substr(0, length));
      if (part.kind != Utf8PartKind::kUnfinished || part.bytes != length) ++wrong;
    }
  }
  EXPECT_EQ(wrong, 0U);
}

TEST(Utf8Test, RepairsEachMaximalBrokenPartOnce) {
  const std::string mark(kReplacementCharacter);
  EXPECT_EQ(repair_utf8("\xFF"), mark);
  EXPECT_EQ(repair_utf8("\xF0\x9F\x98"), mark);
  EXPECT_EQ(repair_utf8("\xF0\x9F\x98x"), mark + "x");
  EXPECT_EQ(repair_utf8("\xED\xA0\x80"), mark + mark + mark);
  EXPECT_EQ(repair_utf8("\xC0\xAF"), mark + mark);
  EXPECT_EQ(repair_utf8("\xF4\x90\x80\x80"), mark + mark + mark + mark);
  EXPECT_EQ(repair_utf8("\xE2\x82\xE2\x82\xAC"), mark + "€");
  EXPECT_EQ(repair_utf8("12345678\x80"
                        "12345678"),
            "12345678" + mark + "12345678");
  EXPECT_EQ(repair_utf8(""), "");
}

TEST(Utf8Test, RepairedTextIsValidForEveryPairOfBytes) {
  std::size_t wrong = 0;
  for (unsigned first = 0; first < 256; ++first) {
    for (unsigned second = 0; second < 256; ++second) {
      const std::string bytes = {'a', static_cast<char>(first), static_cast<char>(second), 'b'};
      const std::string repaired = repair_utf8(bytes);
      if (!is_valid_utf8(repaired)) ++wrong;
      if (is_valid_utf8(bytes) != (repaired == bytes)) ++wrong;
    }
  }
  EXPECT_EQ(wrong, 0U);
}

}  // namespace
}  // namespace locket::tokenizer
