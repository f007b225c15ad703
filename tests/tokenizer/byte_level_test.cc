#include "tokenizer/byte_level.h"

#include <gtest/gtest.h>
#include <set>
#include <string>

namespace locket::tokenizer {
namespace {

TEST(ByteLevelTest, SpellsEveryByteByACharacterOfItsOwn) {
  std::set<std::string> spellings;
  for (unsigned value = 0; value < 256; ++value) {
    const std::string byte(1, static_cast<char>(value));
    const std::string spelling = spell_bytes(byte);
    EXPECT_EQ(bytes_of_spelling(spelling), byte) << value;
    spellings.insert(spelling);
  }
  EXPECT_EQ(spellings.size(), 256U);
}

TEST(ByteLevelTest, SpellsKnownBytesAsFilesDo) {
  EXPECT_EQ(spell_bytes(" a\n"), "ĠaĊ");
  EXPECT_EQ(spell_bytes("é"), "Ã©");
  EXPECT_EQ(spell_bytes(std::string_view("\0\x7F\xA0\xAD\xFF", 5)), "ĀġłŃÿ");
}

TEST(ByteLevelTest, RefusesCharactersOutsideTheAlphabet) {
  EXPECT_EQ(bytes_of_spelling(" "), std::nullopt);
  EXPECT_EQ(bytes_of_spelling("<｜User｜>"), std::nullopt);
  EXPECT_EQ(bytes_of_spelling("ń"), std::nullopt);  // U+0144, the first after the alphabet
  EXPECT_EQ(bytes_of_spelling("a\xFF"), std::nullopt);
  EXPECT_EQ(bytes_of_spelling(""), "");
}

}  // namespace
}  // namespace locket::tokenizer
