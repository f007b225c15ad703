#include "tokenizer/bpe.h"

#include <gtest/gtest.h>
#include <span>
#include <string>
#include <vector>

#include "base/hash.h"
#include "tests/support/tokenizer_files.h"
#include "tokenizer/byte_level.h"

namespace locket::tokenizer {
namespace {

using nlohmann::json;
using test_support::read_text_rows;
using Ids = std::vector<TokenId>;

// The 256 bytes as ids 0 .. 255, then one entry for each merge.
class ToyEncoder {
 public:
  explicit ToyEncoder(const std::vector<Merge>& merges) {
    for (int byte = 0; byte < 256; ++byte) {
      entries_.push_back({spell_bytes(std::string(1, static_cast<char>(byte))), byte});
    }
    for (const Merge& merge : merges) {
      entries_.push_back({merge.left + merge.right, static_cast<TokenId>(entries_.size())});
    }
    encoder_ = BytePairEncoder::build(merges, BaseIndex(entries_)).value();
  }

  std::vector<std::string> pieces(std::string_view text) {
    Ids ids;
    encoder_.encode(text, scratch_, ids);
    std::vector<std::string> pieces;
    for (const TokenId id : ids) pieces.push_back(entries_[static_cast<std::size_t>(id)].spelling);
    return pieces;
  }

 private:
  std::vector<BaseEntry> entries_;
  BytePairEncoder encoder_;
  BytePairEncoder::Scratch scratch_;
};

using Pieces = std::vector<std::string>;

TEST(BytePairEncoderTest, MergesTheLowestRankFirstAndTheLeftmostAmongEquals) {
  ToyEncoder toy({{"b", "c"}, {"a", "b"}, {"a", "a"}});
  EXPECT_EQ(toy.pieces("abc"), (Pieces{"a", "bc"}));
  EXPECT_EQ(toy.pieces("abab"), (Pieces{"ab", "ab"}));
  EXPECT_EQ(toy.pieces("aaaaa"), (Pieces{"aa", "aa", "a"}));
  EXPECT_EQ(toy.pieces("z"), (Pieces{"z"}));
  EXPECT_EQ(toy.pieces(""), Pieces{});
}

TEST(BytePairEncoderTest, UsesAMergeOfLowerRankThatAnotherMergeMakesPossible) {
  ToyEncoder toy({{"ab", "c"}, {"c", "d"}, {"a", "b"}});
  EXPECT_EQ(toy.pieces("abce"), (Pieces{"abc", "e"}));
  // "cd" ranks before "ab", so "abc" cannot come up.
  EXPECT_EQ(toy.pieces("abcd"), (Pieces{"ab", "cd"}));
}

TEST(BytePairEncoderTest, ForgetsPairsThatAMergeHasBrokenUp) {
  ToyEncoder toy({{"b", "a"}, {"a", "b"}, {"ba", "ba"}});
  EXPECT_EQ(toy.pieces("ababab"), (Pieces{"a", "baba", "b"}));
}

// Applies one rank after the other to the whole piece: the training order, slow and obvious.
Ids encode_rank_by_rank(const TokenizerFile& file, std::string_view text) {
  const BaseIndex index(file.vocabulary);
  Ids ids;
  for (const char byte : text) ids.push_back(index.find(spell_bytes({&byte, 1})).value());
  for (const auto& [left, right] : file.merges) {
    const Ids pair = {index.find(left).value(), index.find(right).value()};
    Ids merged;
    for (std::size_t at = 0; at < ids.size(); ++at) {
      const bool joins = at + 1 < ids.size() && ids[at] == pair[0] && ids[at + 1] == pair[1];
      merged.push_back(joins ? index.find(left + right).value() : ids[at]);
      if (joins) ++at;
    }
    ids = std::move(merged);
  }
  return ids;
}

std::string text_of(const json& row) {
  std::string text;
  for (std::size_t time = 0; time < row.at("times"); ++time) text += row.at("unit");
  return text;
}

TEST(BytePairEncoderTest, EqualsRankByRankMergingOnPiecesOfTwelveThousandBytes) {
  const TokenizerFile file =
      parse_tokenizer_file(test_support::read_text_file("small_tokenizer.json")).value();
  const auto encoder = BytePairEncoder::build(file.merges, BaseIndex(file.vocabulary)).value();
  BytePairEncoder::Scratch scratch;
  for (const json& row : read_text_rows("long_piece_vectors.jsonl")) {
    const std::string piece = text_of(row);
    ASSERT_GE(piece.size(), 12000U);
    Ids ids;
    encoder.encode(piece, scratch, ids);
    EXPECT_EQ(ids, encode_rank_by_rank(file, piece)) << row.at("name");
  }
}

void expect_long_pieces(const Tokenizer& tokenizer, const std::string& name) {
  for (const json& row : read_text_rows("long_piece_vectors.jsonl")) {
    const Ids ids = tokenizer.encode_text(text_of(row));
    EXPECT_EQ(ids.size(), row.at(name).at("count")) << row.at("name");
    EXPECT_EQ(to_hex(sha256(std::as_bytes(std::span(ids)))), row.at(name).at("sha256_int32_le"))
        << row.at("name");
  }
}

TEST(BytePairEncoderTest, GivesTheReferenceIdsOfTwelveThousandCharactersWithoutABreak) {
  expect_long_pieces(test_support::small_tokenizer(), "small");
}

TEST(BytePairEncoderTest, GivesTheReferenceIdsOfLongPiecesWithTheReleasedTokenizer) {
  const Tokenizer* tokenizer = test_support::released_tokenizer("v41");
  if (tokenizer == nullptr) {
    const std::string message = test_support::missing_tokenizer_message("v41");
    if (test_support::must_have_released_tokenizers()) FAIL() << message;
    GTEST_SKIP() << message;
  }
  expect_long_pieces(*tokenizer, "v41");
}

}  // namespace
}  // namespace locket::tokenizer
