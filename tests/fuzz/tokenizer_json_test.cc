// Broken copies of a small tokenizer.json: read or refused, and what is read can be used.
#include <gtest/gtest.h>

#include "base/file.h"
#include "tests/fuzz/broken_text.h"
#include "tokenizer/engram_token_map.h"
#include "tokenizer/tokenizer.h"

namespace locket::fuzz {
namespace {

constexpr const char* kText = "Hello wörld 😀 123 \xFF <｜User｜> \n\t end";

std::string tokenizer_text() {
  return read_whole_file(std::filesystem::path(LOCKET_TEST_DATA) / "checkpoints" / "odd" /
                         "tokenizer.json")
      .value();
}

struct Tally {
  int accepted = 0;
  int refused = 0;
};

void try_text(const std::string& text, Tally& tally) {
  const auto tokenizer = tokenizer::Tokenizer::parse(text, "tokenizer.json");
  if (!tokenizer) {
    ++tally.refused;
    EXPECT_EQ(tokenizer.error().code, ErrorCode::kBadCheckpoint) << tokenizer.error().message;
    EXPECT_EQ(tokenizer::repair_utf8(tokenizer.error().message), tokenizer.error().message);
    EXPECT_NE(tokenizer.error().message.find("tokenizer.json"), std::string::npos);
    return;
  }
  ++tally.accepted;
  for (const tokenizer::TokenId id : tokenizer->encode_text(kText)) {
    EXPECT_GE(id, 0);
    EXPECT_LT(static_cast<std::size_t>(id), tokenizer->vocabulary_size());
    tokenizer->decode_bytes({&id, 1});
  }
  tokenizer->encode_with_added_tokens(kText);
  const auto map = tokenizer::make_engram_token_map(*tokenizer);
  if (map) {
    EXPECT_EQ(map->size(), tokenizer->vocabulary_size());
  }
}

TEST(TokenizerJsonFuzzTest, EveryCutTextIsRefused) {
  BrokenText source(tokenizer_text(), 20260931);
  Tally tally;
  for (int round = 0; round < 300; ++round) try_text(source.cut(), tally);
  EXPECT_LT(tally.accepted, 3) << "only white space may be missing";
}

TEST(TokenizerJsonFuzzTest, EveryFlippedTextIsReadOrRefused) {
  BrokenText source(tokenizer_text(), 20260932);
  Tally tally;
  for (int round = 0; round < 400; ++round) try_text(source.flipped(), tally);
  EXPECT_GT(tally.accepted, 1);
  EXPECT_GT(tally.refused, 100);
}

TEST(TokenizerJsonFuzzTest, EveryEditedTextIsReadOrRefused) {
  BrokenText source(tokenizer_text(), 20260933);
  Tally tally;
  for (int round = 0; round < 300; ++round) try_text(source.edited(), tally);
  for (int round = 0; round < 300; ++round) try_text(source.renumbered(), tally);
  EXPECT_GT(tally.refused, 200);
}

}  // namespace
}  // namespace locket::fuzz
