#include <gtest/gtest.h>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/tokenizer_files.h"
#include "tokenizer/byte_level.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/utf8.h"

namespace locket::tokenizer {
namespace {

using nlohmann::json;
using test_support::small_tokenizer;

// One token for every byte, whatever the merges are.
TokenId id_of_byte(char byte) {
  const std::string spelling = spell_bytes({&byte, 1});
  for (TokenId id = 0; id < 1024; ++id) {
    if (small_tokenizer().vocabulary_entry(id) == spelling) return id;
  }
  ADD_FAILURE() << "no token for " << spelling;
  return 0;
}

std::vector<std::string> streamed(std::string_view bytes) {
  StreamDecoder decoder(small_tokenizer());
  std::vector<std::string> pieces;
  for (const char byte : bytes) pieces.push_back(decoder.push(id_of_byte(byte)));
  pieces.push_back(decoder.finish());
  return pieces;
}

using Pieces = std::vector<std::string>;

TEST(StreamDecoderTest, HoldsBackTheBytesOfACharacterUntilItIsWhole) {
  EXPECT_EQ(streamed("a😀b"), (Pieces{"a", "", "", "", "😀", "b", ""}));
  EXPECT_EQ(streamed("é€"), (Pieces{"", "é", "", "", "€", ""}));
}

TEST(StreamDecoderTest, EmitsABrokenByteAtOnce) {
  const std::string mark(kReplacementCharacter);
  EXPECT_EQ(streamed("\xFF"
                     "a"),
            (Pieces{mark, "a", ""}));
  EXPECT_EQ(streamed("\x80\x80"), (Pieces{mark, mark, ""}));
  EXPECT_EQ(streamed("\xF0\x9Fy"), (Pieces{"", "", mark + "y", ""}));
  EXPECT_EQ(streamed("\xF0\x9F\x98\xF0"), (Pieces{"", "", "", mark, mark}));
}

TEST(StreamDecoderTest, FinishShowsAnEndInsideACharacterAndStartsAfresh) {
  StreamDecoder decoder(small_tokenizer());
  EXPECT_EQ(decoder.push(id_of_byte('\xE4')), "");
  EXPECT_EQ(decoder.push(id_of_byte('\xB8')), "");
  EXPECT_EQ(decoder.finish(), kReplacementCharacter);
  EXPECT_EQ(decoder.finish(), "");
  EXPECT_EQ(decoder.push(id_of_byte('a')), "a");
}

TEST(StreamDecoderTest, ShowsAControlTokenInsideACharacterWhole) {
  StreamDecoder decoder(small_tokenizer());
  const TokenId think = small_tokenizer().find_added_token("</think>").value();
  EXPECT_EQ(decoder.push(id_of_byte('\xF0')), "");
  EXPECT_EQ(decoder.push(think), std::string(kReplacementCharacter) + "</think>");
  EXPECT_EQ(decoder.push(-1), "");
  EXPECT_EQ(decoder.push(1024), "");
  EXPECT_EQ(decoder.finish(), "");
}

TEST(StreamDecoderTest, JoinedPiecesEqualTheWholeForEveryVector) {
  for (const json& row : test_support::read_text_rows("mini_tokenizer_vectors.jsonl")) {
    StreamDecoder decoder(small_tokenizer());
    std::string joined;
    for (const TokenId id : row.at("ids").get<std::vector<TokenId>>()) {
      const std::string piece = decoder.push(id);
      EXPECT_TRUE(is_valid_utf8(piece)) << row.dump();
      joined += piece;
    }
    EXPECT_EQ(joined + decoder.finish(), row.at("text").get<std::string>()) << row.dump();
  }
}

}  // namespace
}  // namespace locket::tokenizer
