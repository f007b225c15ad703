#include "tokenizer/engram_token_map.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <span>
#include <string>
#include <vector>

#include "base/hash.h"
#include "tests/support/tokenizer_files.h"

namespace locket::tokenizer {
namespace {

using nlohmann::json;
using test_support::read_text_json;

// Of the map as int32, little endian: what this machine has in memory.
std::string sha256_of(const std::vector<std::int32_t>& map) {
  return to_hex(sha256(std::as_bytes(std::span(map))));
}

TEST(EngramTokenMapTest, EqualsTheMapOfTheSmallTokenizer) {
  const json expected = read_text_json("engram_token_map.json");
  const auto map = make_engram_token_map(test_support::small_tokenizer()).value();
  EXPECT_EQ(map, expected.at("map").get<std::vector<std::int32_t>>());
  EXPECT_EQ(*std::max_element(map.begin(), map.end()) + 1, expected.at("classes"));
  EXPECT_EQ(sha256_of(map), expected.at("map_sha256_int32_le"));
  EXPECT_EQ(map[expected.at("pad_token_id")], expected.at("pad_class"));
}

TEST(EngramTokenMapTest, EqualsTheReleasedMap) {
  const Tokenizer* tokenizer = test_support::released_tokenizer("v41");
  if (tokenizer == nullptr) {
    const std::string message = test_support::missing_tokenizer_message("v41");
    if (test_support::must_have_released_tokenizers()) FAIL() << message;
    GTEST_SKIP() << message;
  }
  const json expected = read_text_json("engram_v41_samples.json");
  const auto map = make_engram_token_map(*tokenizer).value();
  EXPECT_EQ(map.size(), expected.at("ids"));
  EXPECT_EQ(*std::max_element(map.begin(), map.end()) + 1, expected.at("classes"));
  EXPECT_EQ(sha256_of(map), expected.at("map_sha256_int32_le"));
  EXPECT_EQ(expected.at("samples").size(), 200U);
  for (const json& sample : expected.at("samples")) {
    EXPECT_EQ(map[sample.at("id")], sample.at("class")) << sample.dump();
    EXPECT_EQ(map[sample.at("first_id_of_class")], sample.at("class")) << sample.dump();
  }
  for (const json& entry : expected.at("largest_classes")) {
    EXPECT_EQ(std::count(map.begin(), map.end(), entry.at("class").get<std::int32_t>()),
              entry.at("size"))
        << entry.dump();
  }
}

}  // namespace
}  // namespace locket::tokenizer
