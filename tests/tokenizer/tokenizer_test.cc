#include "tokenizer/tokenizer.h"

#include <gtest/gtest.h>
#include <limits>
#include <string>
#include <vector>

#include "base/worker_pool.h"
#include "cli/base64.h"
#include "tests/support/tokenizer_files.h"

namespace locket::tokenizer {
namespace {

using nlohmann::json;
using test_support::read_text_rows;
using test_support::released_tokenizer;
using test_support::small_tokenizer;
using Ids = std::vector<TokenId>;

std::string bytes_of(const json& row) {
  return cli::decode_base64(row.at("bytes_b64").get<std::string>()).value();
}

// Rows with an `invalid` tag state the bytes and, as `text`, what they are repaired to.
std::string input_of(const json& row) {
  return row.contains("bytes_b64") ? bytes_of(row) : row.at("text").get<std::string>();
}

void expect_encodes(const Tokenizer& tokenizer, const json& row) {
  const std::string input = input_of(row);
  const Ids ids = row.at("ids");
  const Ids full = row.contains("ids_full") ? row.at("ids_full").get<Ids>() : ids;
  const auto text = row.at("text").get<std::string>();
  EXPECT_EQ(tokenizer.encode_text(input), ids) << row.dump();
  EXPECT_EQ(tokenizer.encode_with_added_tokens(input), full) << row.dump();
  EXPECT_EQ(repair_utf8(input), text) << row.dump();
  EXPECT_EQ(tokenizer.decode_bytes(ids), text) << row.dump();
}

void expect_decodes(const Tokenizer& tokenizer, const json& row) {
  const Ids ids = row.at("ids");
  EXPECT_EQ(tokenizer.decode_bytes(ids), bytes_of(row)) << row.dump();
  EXPECT_EQ(repair_utf8(tokenizer.decode_bytes(ids)), row.at("text")) << row.dump();
}

// What a decoder that hides tokens with the flag `special` shows.
std::string text_without_special_tokens(const Tokenizer& tokenizer, const Ids& ids) {
  Ids shown;
  for (const TokenId id : ids) {
    if (!tokenizer.is_special_token(id)) shown.push_back(id);
  }
  return repair_utf8(tokenizer.decode_bytes(shown));
}

TEST(TokenizerTest, EncodesAndDecodesEveryVectorOfTheSmallTokenizer) {
  std::size_t encoded = 0;
  std::size_t decoded = 0;
  for (const json& row : read_text_rows("mini_tokenizer_vectors.jsonl")) {
    const bool decode_only = row.value("decode_only", false);
    decode_only ? expect_decodes(small_tokenizer(), row) : expect_encodes(small_tokenizer(), row);
    ++(decode_only ? decoded : encoded);
  }
  EXPECT_EQ(encoded, 854U);
  EXPECT_EQ(decoded, 256U);
}

TEST(TokenizerTest, NeverMatchesAnAddedTokenInOutsideText) {
  const Tokenizer& tokenizer = small_tokenizer();
  std::string everything;
  std::size_t added = 0;
  for (TokenId id = 0; id < static_cast<TokenId>(tokenizer.vocabulary_size()); ++id) {
    if (!tokenizer.is_added_token(id)) continue;
    ++added;
    const std::string spelling(tokenizer.vocabulary_entry(id));
    EXPECT_EQ(tokenizer.find_added_token(spelling), id);
    EXPECT_EQ(tokenizer.encode_with_added_tokens(spelling), Ids{id});
    everything += "```" + spelling + "\n";
  }
  EXPECT_EQ(added, 67U);
  for (const TokenId id : tokenizer.encode_text(everything)) {
    EXPECT_FALSE(tokenizer.is_added_token(id)) << id;
  }
  EXPECT_EQ(tokenizer.decode_bytes(tokenizer.encode_text(everything)), everything);
}

TEST(TokenizerTest, KeepsSpacesAndAddsNone) {
  for (const std::string text : {"hello world", " hello  world ", "\thello\n\nworld\r\n", " "}) {
    EXPECT_EQ(small_tokenizer().decode_bytes(small_tokenizer().encode_text(text)), text);
  }
  EXPECT_TRUE(small_tokenizer().encode_text("").empty());
  EXPECT_TRUE(small_tokenizer().encode_with_added_tokens("").empty());
}

TEST(TokenizerTest, GivesNothingForIdsThatDoNotExist) {
  const Tokenizer& tokenizer = small_tokenizer();
  ASSERT_EQ(tokenizer.vocabulary_size(), 1024U);
  for (const TokenId id :
       {-1, 1024, std::numeric_limits<TokenId>::max(), std::numeric_limits<TokenId>::min()}) {
    EXPECT_EQ(tokenizer.decode_bytes({&id, 1}), "");
    EXPECT_EQ(tokenizer.vocabulary_entry(id), "");
    EXPECT_FALSE(tokenizer.is_added_token(id));
    EXPECT_FALSE(tokenizer.is_special_token(id));
  }
  EXPECT_EQ(tokenizer.find_added_token("<｜nobody｜>"), std::nullopt);
  EXPECT_EQ(tokenizer.find_added_token(""), std::nullopt);
}

TEST(TokenizerTest, KnowsTheFlagsOfAddedTokens) {
  const Tokenizer& tokenizer = small_tokenizer();
  const TokenId begin = tokenizer.find_added_token("<｜begin▁of▁sentence｜>").value();
  const TokenId user = tokenizer.find_added_token("<｜User｜>").value();
  EXPECT_TRUE(tokenizer.is_special_token(begin));
  EXPECT_TRUE(tokenizer.is_added_token(user));
  EXPECT_FALSE(tokenizer.is_special_token(user));
  EXPECT_FALSE(tokenizer.is_added_token(3));
}

TEST(TokenizerTest, AnswersManyThreadsAtOnce) {
  const std::vector<json> rows = read_text_rows("mini_tokenizer_vectors.jsonl");
  std::vector<Ids> ids(rows.size());
  WorkerPool pool(4);
  pool.parallel_for(rows.size(), 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t row = begin; row < end; ++row) {
      ids[row] = small_tokenizer().encode_text(rows[row].at("text").get<std::string>());
    }
  });
  for (std::size_t row = 0; row < rows.size(); ++row) {
    if (rows[row].value("decode_only", false)) continue;
    EXPECT_EQ(ids[row], rows[row].at("ids"));
  }
}

class ReleasedTokenizerTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    tokenizer_ = released_tokenizer(GetParam());
    if (tokenizer_ != nullptr) return;
    const std::string message = test_support::missing_tokenizer_message(GetParam());
    if (test_support::must_have_released_tokenizers()) FAIL() << message;
    GTEST_SKIP() << message;
  }

  const Tokenizer* tokenizer_ = nullptr;
};

class V41TokenizerTest : public ReleasedTokenizerTest {};

TEST_P(V41TokenizerTest, EncodesEveryVector) {
  const std::vector<json> rows = read_text_rows("tokenizer_vectors.jsonl");
  EXPECT_EQ(rows.size(), 551U);
  for (const json& row : rows) expect_encodes(*tokenizer_, row);
}

TEST_P(V41TokenizerTest, DecodesEveryVector) {
  const std::vector<json> rows = read_text_rows("tokenizer_decode_vectors.jsonl");
  EXPECT_EQ(rows.size(), 109U);
  for (const json& row : rows) {
    expect_decodes(*tokenizer_, row);
    if (!row.contains("text_skip_special")) continue;
    EXPECT_EQ(text_without_special_tokens(*tokenizer_, row.at("ids")), row.at("text_skip_special"));
  }
}

TEST_P(V41TokenizerTest, StreamsEveryVectorInWholeCharacters) {
  for (const json& row : read_text_rows("tokenizer_decode_vectors.jsonl")) {
    StreamDecoder decoder(*tokenizer_);
    std::string streamed;
    for (const TokenId id : row.at("ids").get<Ids>()) {
      const std::string piece = decoder.push(id);
      EXPECT_EQ(repair_utf8(piece), piece) << row.dump();
      streamed += piece;
    }
    streamed += decoder.finish();
    EXPECT_EQ(streamed, row.at("text").get<std::string>()) << row.dump();
  }
}

TEST_P(V41TokenizerTest, HasTheIdsOfTheRelease) {
  EXPECT_EQ(tokenizer_->vocabulary_size(), 129280U);
  EXPECT_EQ(tokenizer_->find_added_token("<｜System｜>"), 128799);
  EXPECT_EQ(tokenizer_->find_added_token("｜DSML｜"), 128825);
  EXPECT_EQ(tokenizer_->find_added_token("<｜deepseek_image｜>"), 129264);
  EXPECT_TRUE(tokenizer_->is_special_token(0));
  EXPECT_FALSE(tokenizer_->is_special_token(128804));
}

INSTANTIATE_TEST_SUITE_P(Files, V41TokenizerTest, testing::Values("v41"));

TEST_P(ReleasedTokenizerTest, EncodesEveryLineageVector) {
  const std::string version =
      GetParam() == std::string("v32") ? "V3.2" : 'V' + std::string(1, GetParam()[1]);
  std::size_t rows = 0;
  for (const json& row : read_text_rows("tokenizer_lineage_vectors.jsonl")) {
    if (row.at("version") != version) continue;
    ++rows;
    expect_encodes(*tokenizer_, row);
    if (!row.contains("decoded_full")) continue;
    EXPECT_EQ(repair_utf8(tokenizer_->decode_bytes(row.at("ids_full").get<Ids>())),
              row.at("decoded_full"));
  }
  EXPECT_EQ(rows, 80U);
}

INSTANTIATE_TEST_SUITE_P(Files, ReleasedTokenizerTest, testing::Values("v1", "v2", "v3", "v32"));

}  // namespace
}  // namespace locket::tokenizer
