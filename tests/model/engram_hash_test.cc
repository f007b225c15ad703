// Row ids against three sources: the release's published constants and vectors, the recorded rows
// of the official code and of transformers on the tiny checkpoints, and the training code.
#include "model/engram_hash.h"

#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>

namespace locket::model {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;
using Ids = std::vector<std::int64_t>;
using Tokens = std::vector<std::int32_t>;

constexpr std::int64_t kReleaseClasses = 99092;

EngramHashConfig release_config() {
  return {.layer_ids = {1, 14},
          .max_ngram_size = 4,
          .head_count = 8,
          .vocabulary_size = 16000000,
          .compressed_vocabulary_size = kReleaseClasses,
          .pad_token_id = 2,
          .table_rows = {384006168, 384016682}};
}

// Token ids that are their own classes.
Tokens identity_map(std::int64_t classes) {
  Tokens map(static_cast<std::size_t>(classes));
  std::iota(map.begin(), map.end(), 0);
  return map;
}

EngramHash release_hash() {
  return EngramHash::create(release_config(), identity_map(kReleaseClasses)).value();
}

Ids rows_of(const EngramHash& hash, std::size_t engram_index, const Tokens& recent) {
  Ids out(hash.columns());
  hash.row_ids(engram_index, recent, out);
  return out;
}

TEST(EngramHashTest, DrawsTheMultipliersOfTheRelease) {
  const EngramHash hash = release_hash();
  EXPECT_THAT(hash.multipliers(0),
              ElementsAre(76632096046245, 4839876093313, 35959672319349, 73987337458391));
  EXPECT_THAT(hash.multipliers(1),
              ElementsAre(67716810739261, 51510806800915, 30921347202721, 82619226485591));
}

TEST(EngramHashTest, FindsThePrimesOfTheRelease) {
  const Ids first = {57,  79,  81,  97,  121, 129, 133, 183, 189, 207, 211, 253,
                     277, 289, 307, 321, 339, 381, 393, 399, 403, 409, 447, 463};
  const Ids second = {477, 487, 499, 507, 511, 573, 609, 627, 667, 669, 693, 697,
                      711, 729, 759, 769, 781, 799, 813, 819, 841, 877, 879, 889};
  const EngramHash hash = release_hash();
  ASSERT_EQ(hash.columns(), 24u);
  ASSERT_EQ(hash.layer_count(), 2u);
  for (std::size_t column = 0; column < 24; ++column) {
    EXPECT_EQ(hash.primes(0)[column], 16000000 + first[column]);
    EXPECT_EQ(hash.primes(1)[column], 16000000 + second[column]);
  }
}

TEST(EngramHashTest, OffsetsAreThePrimesSummedFromZeroInEveryLayer) {
  const EngramHash hash = release_hash();
  const Ids sums = {384006168, 384016682};
  for (std::size_t layer = 0; layer < 2; ++layer) {
    std::int64_t sum = 0;
    for (std::size_t column = 0; column < hash.columns(); ++column) {
      EXPECT_EQ(hash.offsets(layer)[column], sum);
      sum += hash.primes(layer)[column];
    }
    EXPECT_EQ(sum, sums[layer]);
  }
}

TEST(EngramHashTest, GivesThePublishedRowsOfFourTokens) {
  const EngramHash hash = release_hash();
  const Tokens recent = {40, 30, 20, 10};
  EXPECT_THAT(
      rows_of(hash, 0, recent),
      ElementsAreArray(Ids{1326936,   22120929,  40011923,  55142539,  77849479,  85421395,
                           105208034, 120570043, 142088989, 151706440, 164511320, 186980067,
                           199834903, 222266846, 231919637, 244765195, 270969918, 287524568,
                           292261800, 310632033, 322879311, 341250912, 361620893, 378628807}));
  EXPECT_THAT(
      rows_of(hash, 1, recent),
      ElementsAreArray(Ids{5403109,   26519290,  42262171,  52759697,  74009651,  83431750,
                           98759453,  114437397, 136663117, 159466275, 161102974, 190712189,
                           206344738, 219595678, 225703309, 243746465, 258079010, 283475728,
                           290789713, 309926711, 321434350, 340293184, 357342800, 378588994}));
}

TEST(EngramHashTest, PadsTheLookBacksOfAFirstToken) {
  const EngramHash hash = release_hash();
  const Ids first = {4052413,   23667694,  42906971,  52829082,  75741025,  88719377,
                     111210122, 112422857, 138893193, 154754281, 160059424, 191821447,
                     207733256, 223702343, 239672137, 250328800, 270913409, 282584305,
                     299653391, 308191258, 324551334, 349093302, 360573537, 378065828};
  const Ids second = {12021899,  20784535,  37706961,  54326366,  70637610,  83563719,
                      102518839, 112022409, 129899157, 150805120, 161683417, 187500518,
                      205864025, 218060649, 227759873, 252338043, 258127387, 282088587,
                      288292330, 306955190, 332733788, 348791174, 365686218, 370160343};
  EXPECT_EQ(rows_of(hash, 0, {100}), first);
  EXPECT_EQ(rows_of(hash, 0, {100, 2, 2, 2}), first);
  EXPECT_EQ(rows_of(hash, 1, {100, 2, 2, 2}), second);
}

TEST(EngramHashTest, AnImageEndsTheLookBack) {
  const EngramHash hash = release_hash();
  const Ids after_image = rows_of(hash, 0, {100, 2, 2, 2});
  EXPECT_EQ(rows_of(hash, 0, {100, kDeadToken, 30, 20}), after_image);
  EXPECT_EQ(rows_of(hash, 0, {100, kDeadToken, kDeadToken, kDeadToken}), after_image);
  EXPECT_EQ(rows_of(hash, 0, {100, 50, kDeadToken, 20}), rows_of(hash, 0, {100, 50, 2, 2}));
  EXPECT_EQ(rows_of(hash, 0, {kDeadToken, 50, 40, 20}), rows_of(hash, 0, {2, 2, 2, 2}));
  EXPECT_NE(rows_of(hash, 0, {100, 50, kDeadToken, 20}), rows_of(hash, 0, {100, 50, 2, 20}));
}

TEST(EngramHashTest, PadIsTheClassOfThePadTokenNotItsId) {
  EngramHashConfig config = release_config();
  config.compressed_vocabulary_size = 5;
  const Tokens map = {0, 1, 1, 2, 3, 4};  // token 3, the pad token, has class 2
  config.pad_token_id = 3;
  const EngramHash hash = EngramHash::create(config, map).value();
  EXPECT_EQ(rows_of(hash, 0, {5}), rows_of(hash, 0, {5, 3, 3, 3}));
  EXPECT_NE(rows_of(hash, 0, {5}), rows_of(hash, 0, {5, 2, 2, 2}));
}

// Classes and multipliers at their upper ends: no product leaves 63 bits, no row its column.
TEST(EngramHashTest, RowsStayInsideTheirColumns) {
  const EngramHash hash = release_hash();
  const std::int32_t last = static_cast<std::int32_t>(kReleaseClasses) - 1;
  for (std::int32_t step = 0; step < 2000; ++step) {
    const Tokens recent = {last, last - step, last - 2 * step, last - 3 * step};
    for (std::size_t layer = 0; layer < 2; ++layer) {
      const Ids rows = rows_of(hash, layer, recent);
      for (std::size_t column = 0; column < rows.size(); ++column) {
        const std::int64_t row = rows[column] - hash.offsets(layer)[column];
        ASSERT_GE(row, 0);
        ASSERT_LT(row, hash.primes(layer)[column]);
      }
    }
  }
}

class RecordedRowsTest : public testing::TestWithParam<const char*> {
 protected:
  RecordedRowsTest() {
    std::ifstream file(std::string(LOCKET_TEST_DATA) + "/engram/row_ids.json");
    record_ = nlohmann::json::parse(file).at(GetParam());
  }

  EngramHashConfig config() const {
    const auto& config = record_.at("config");
    return {.layer_ids = config.at("layer_ids"),
            .max_ngram_size = config.at("max_ngram_size"),
            .head_count = config.at("head_count"),
            .vocabulary_size = config.at("vocabulary_size"),
            .compressed_vocabulary_size = config.at("compressed_vocabulary_size"),
            .pad_token_id = config.at("pad_token_id"),
            .table_rows = config.at("table_rows")};
  }
  EngramHash hash() const {
    return EngramHash::create(config(), record_.at("token_map").get<Tokens>()).value();
  }

  nlohmann::json record_;
};

// The newest `limit` tokens up to `position`, newest first.
Tokens recent_tokens(const Tokens& tokens, std::size_t position, std::size_t limit) {
  Tokens recent;
  for (std::size_t back = 0; back <= position && back < limit; ++back) {
    recent.push_back(tokens[position - back]);
  }
  return recent;
}

TEST_P(RecordedRowsTest, EveryPositionReadsTheRecordedRows) {
  const EngramHash hash = this->hash();
  std::size_t compared = 0;
  for (const auto& sequence : record_.at("sequences")) {
    const auto tokens = sequence.at("tokens").get<Tokens>();
    const auto rows = sequence.at("rows").get<std::vector<std::vector<Ids>>>();
    ASSERT_EQ(rows.size(), tokens.size());
    for (std::size_t position = 0; position < tokens.size(); ++position) {
      const Tokens recent = recent_tokens(tokens, position, hash.max_ngram_size());
      for (std::size_t layer = 0; layer < hash.layer_count(); ++layer) {
        ASSERT_EQ(rows_of(hash, layer, recent), rows[position][layer])
            << sequence.at("source") << " position " << position << " layer " << layer;
        compared += hash.columns();
      }
    }
  }
  EXPECT_GT(compared, 0u);
  RecordProperty("row_ids_compared", static_cast<int>(compared));
}

TEST_P(RecordedRowsTest, DrawsTheRecordedMultipliers) {
  const EngramHash hash = this->hash();
  const auto expected = record_.at("multipliers").get<std::vector<Ids>>();
  ASSERT_EQ(expected.size(), hash.layer_count());
  for (std::size_t layer = 0; layer < expected.size(); ++layer) {
    EXPECT_THAT(hash.multipliers(layer), ElementsAreArray(expected[layer]));
  }
}

TEST_P(RecordedRowsTest, RefusesAnotherRowCount) {
  EngramHashConfig changed = config();
  const std::string right = std::to_string(changed.table_rows[1]);
  changed.table_rows[1] += 1;
  const auto result = EngramHash::create(changed, record_.at("token_map").get<Tokens>());
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code, ErrorCode::kBadCheckpoint);
  EXPECT_THAT(result.error().message, HasSubstr("engram_num_embeddings[1] is"));
  EXPECT_THAT(result.error().message, HasSubstr(std::to_string(changed.table_rows[1])));
  EXPECT_THAT(result.error().message, HasSubstr("sum to " + right));
}

TEST_P(RecordedRowsTest, RefusesAMapWithAnotherNumberOfClasses) {
  EngramHashConfig changed = config();
  changed.compressed_vocabulary_size += 1;
  const auto result = EngramHash::create(changed, record_.at("token_map").get<Tokens>());
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code, ErrorCode::kBadCheckpoint);
  EXPECT_THAT(result.error().message, HasSubstr("engram_compressed_vocab_size is"));
  EXPECT_THAT(result.error().message,
              HasSubstr("has " + std::to_string(config().compressed_vocabulary_size) + " classes"));
}

INSTANTIATE_TEST_SUITE_P(Checkpoints, RecordedRowsTest, testing::Values("micro", "odd", "mini"),
                         [](const auto& instance) { return std::string(instance.param); });

struct BadConfig {
  const char* name;
  void (*damage)(EngramHashConfig&);
  const char* message;
};

class BadEngramConfigTest : public testing::TestWithParam<BadConfig> {};

TEST_P(BadEngramConfigTest, IsRefusedByName) {
  EngramHashConfig config = release_config();
  GetParam().damage(config);
  const auto result = EngramHash::create(config, identity_map(kReleaseClasses));
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code, ErrorCode::kBadCheckpoint);
  EXPECT_THAT(result.error().message, HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Keys, BadEngramConfigTest,
    testing::Values(
        BadConfig{"NoLayers", [](EngramHashConfig& c) { c.layer_ids.clear(); },
                  "engram_layer_ids is empty"},
        BadConfig{"NegativeLayer", [](EngramHashConfig& c) { c.layer_ids[1] = -1; },
                  "engram_layer_ids[1] is -1"},
        BadConfig{"LayerTwice", [](EngramHashConfig& c) { c.layer_ids[1] = 1; },
                  "names layer 1 twice"},
        BadConfig{"MissingTable", [](EngramHashConfig& c) { c.table_rows.pop_back(); },
                  "engram_num_embeddings has 1 entries, engram_layer_ids has 2"},
        BadConfig{"NoNgrams", [](EngramHashConfig& c) { c.max_ngram_size = 1; },
                  "engram_max_ngram_size is 1"},
        BadConfig{"NoHeads", [](EngramHashConfig& c) { c.head_count = 0; }, "engram_n_heads is 0"},
        BadConfig{"HugeTable", [](EngramHashConfig& c) { c.vocabulary_size = 1LL << 62; },
                  "engram_vocab_size is 4611686018427387904"},
        BadConfig{"NoClasses", [](EngramHashConfig& c) { c.compressed_vocabulary_size = 0; },
                  "engram_compressed_vocab_size is 0"},
        BadConfig{"PadOutsideTheMap", [](EngramHashConfig& c) { c.pad_token_id = kReleaseClasses; },
                  "engram_pad_token_id is 99092, must be 0 to 99091"}),
    [](const auto& instance) { return std::string(instance.param.name); });

TEST(EngramHashTest, RefusesAMapThatIsNotNumberedInFirstSeenOrder) {
  Tokens map = identity_map(kReleaseClasses);
  std::swap(map[7], map[8]);
  const auto result = EngramHash::create(release_config(), map);
  ASSERT_FALSE(result.has_value());
  EXPECT_THAT(result.error().message, HasSubstr("token 7 the class 8, must be 0 to 7"));
}

TEST(EngramHashDeathTest, ChecksWhatItIsAsked) {
  const EngramHash hash = release_hash();
  Ids out(hash.columns());
  const Tokens outside = {static_cast<std::int32_t>(kReleaseClasses)};
  const Tokens five = {1, 1, 1, 1, 1};
  EXPECT_DEATH(hash.row_ids(0, outside, out), "token_count");
  EXPECT_DEATH(hash.row_ids(0, five, out), "recent");
  EXPECT_DEATH(hash.row_ids(2, {&outside[0], 1}, out), "engram_index");
}

}  // namespace
}  // namespace locket::model
