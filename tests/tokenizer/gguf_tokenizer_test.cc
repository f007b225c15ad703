// Tokenizers out of the keys of GGUF files: pieces of every known pre-tokenizer, kinds of tokens,
// and what is refused.
#include "tokenizer/gguf_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "service/load_tokenizer.h"
#include "tokenizer/byte_level.h"
#include "tokenizer/pretokenizer.h"

namespace locket::tokenizer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// All bytes, one merge, and a token of each kind.
struct Parts {
  std::vector<std::string> tokens;
  std::vector<std::int64_t> types;
  std::vector<std::string> merges = {"t h"};

  Parts() {
    for (int byte = 0; byte < 256; ++byte) {
      const char character = static_cast<char>(byte);
      add(spell_bytes({&character, 1}), 1);
    }
    add("th", 1);
    add("<|end|>", 3);
    add("<user>", 4);
    add("[PAD259]", 5);
  }
  void add(const std::string& token, std::int64_t type) {
    tokens.push_back(token);
    types.push_back(type);
  }
  GgufVocabulary vocabulary(std::string_view pre = "smollm",
                            std::string_view model = "gpt2") const {
    return {.model = model, .pre = pre, .tokens = tokens, .token_types = types, .merges = merges};
  }
};

std::vector<std::string_view> pieces(std::string_view pre, std::string_view text) {
  const auto file = gguf_tokenizer_file(Parts().vocabulary(pre));
  EXPECT_TRUE(file) << file.error().message;
  const auto pretokenizer = Pretokenizer::build(file->splits);
  EXPECT_TRUE(pretokenizer) << pretokenizer.error().message;
  return pretokenizer->split(text);
}

Error error_of(const GgufVocabulary& vocabulary) {
  const auto tokenizer = make_gguf_tokenizer(vocabulary, "x.gguf");
  EXPECT_FALSE(tokenizer);
  return tokenizer ? Error{} : tokenizer.error();
}

TEST(GgufTokenizerTest, EveryKnownNameCutsAsPublished) {
  const std::string_view text = "It's 123 dogs...  end";
  EXPECT_THAT(pieces("gpt-2", text), ElementsAre("It", "'s", " 123", " dogs", "...", " ", " end"));
  EXPECT_THAT(pieces("smollm", text),
              ElementsAre("It", "'s", " ", "1", "2", "3", " dogs", "...", " ", " end"));
  EXPECT_THAT(pieces("default", text),
              ElementsAre("It", "'", "s", " ", "123", " dogs", "...", " ", " end"));
  EXPECT_THAT(pieces("", text), pieces("default", text));
  // Its punctuation reaches from : to ~ and so holds the plain letters: others are cut off.
  EXPECT_THAT(pieces("deepseek-llm", "a1 \u4E2D\u6587 Zo\u00EB?\n"),
              ElementsAre("a", "1", " ", "\u4E2D\u6587", " Zo", "\u00EB", "?", "\n"));
}

TEST(GgufTokenizerTest, KindsOfTokensAreKept) {
  const auto tokenizer = make_gguf_tokenizer(Parts().vocabulary(), "x.gguf");
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  EXPECT_EQ(tokenizer->vocabulary_size(), 260U);
  EXPECT_EQ(tokenizer->find_added_token("<|end|>"), 257);
  EXPECT_TRUE(tokenizer->is_special_token(257));
  EXPECT_EQ(tokenizer->find_added_token("<user>"), 258);
  EXPECT_FALSE(tokenizer->is_special_token(258));
  EXPECT_FALSE(tokenizer->is_added_token(259));
  EXPECT_THAT(tokenizer->encode_text("the"), ElementsAre(256, 'e'));
  EXPECT_EQ(tokenizer->decode_bytes(tokenizer->encode_text("th\xC3\xA4t")), "th\xC3\xA4t");
}

TEST(GgufTokenizerTest, BytesWithoutATokenAreLeftOut) {
  Parts parts;
  parts.tokens[4] = "[PAD4]";
  parts.types[4] = 5;
  const auto tokenizer = make_gguf_tokenizer(parts.vocabulary(), "x.gguf");
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  EXPECT_THAT(tokenizer->encode_text("a\x04\x04th"), ElementsAre('a', 256));
}

TEST(GgufTokenizerTest, OtherKindsAreRefusedByName) {
  const Parts parts;
  const Error spm = error_of(parts.vocabulary("default", "llama"));
  EXPECT_EQ(spm.code, ErrorCode::kUnsupported);
  EXPECT_THAT(spm.message, HasSubstr("x.gguf: tokenizer.ggml.model is llama (gpt2"));
  const Error pre = error_of(parts.vocabulary("qwen2"));
  EXPECT_EQ(pre.code, ErrorCode::kUnsupported);
  EXPECT_THAT(pre.message, HasSubstr("tokenizer.ggml.pre is qwen2 (one of default, gpt-2, smollm"));
}

TEST(GgufTokenizerTest, PartsThatDoNotFitAreRefused) {
  Parts short_types;
  short_types.types.pop_back();
  EXPECT_THAT(error_of(short_types.vocabulary()).message, HasSubstr("259 entries for 260 tokens"));
  Parts kind;
  kind.types[7] = 9;
  EXPECT_THAT(error_of(kind.vocabulary()).message, HasSubstr("token 7 has the type 9"));
  Parts empty;
  empty.tokens[9].clear();
  EXPECT_THAT(error_of(empty.vocabulary()).message, HasSubstr("token 9 has the spelling"));
  Parts broken;
  broken.tokens[9] = "\xFF";
  EXPECT_THAT(error_of(broken.vocabulary()).message, HasSubstr("no UTF-8"));
  for (const std::string merge : {"th", "t ", "", "t \xFF"}) {
    Parts merges;
    merges.merges = {merge};
    EXPECT_THAT(error_of(merges.vocabulary()).message, HasSubstr("merges[0]")) << merge;
  }
  Parts unknown;
  unknown.merges = {"t x y"};
  EXPECT_THAT(error_of(unknown.vocabulary()).message, HasSubstr("needs the piece"));
}

TEST(GgufTokenizerTest, AFileHoldsItsTokenizer) {
  const auto tokenizer = service::load_tokenizer(std::string(LOCKET_TEST_DATA) + "/gguf/tiny.gguf");
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  EXPECT_EQ(tokenizer->vocabulary_size(), 264U);
  EXPECT_EQ(tokenizer->find_added_token("<|im_start|>"), 261);
  // "1" and "2" would merge, were they not cut apart.
  EXPECT_THAT(tokenizer->encode_text("in the 12"), ElementsAre(259, 258, ' ', '1', '2'));
}

}  // namespace
}  // namespace locket::tokenizer
