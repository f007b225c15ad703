#include "checkpoint/config_json.h"

#include <cstdint>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>
#include <string>
#include <vector>

#include "tests/checkpoint/expect_failure.h"
#include "tests/support/checkpoint_files.h"

namespace locket::checkpoint {
namespace {

using test_support::TempFolder;
using ::testing::ElementsAre;

ConfigFile parse(std::string text) {
  Result<ConfigFile> file = ConfigFile::parse(std::move(text), "config.json");
  EXPECT_TRUE(file) << file.error().message;
  return std::move(*file);
}

constexpr const char* kConfig = R"({
  "model_type": "deepseek_v41",
  "architectures": ["First", "Second"],
  "tie": false,
  "nothing": null,
  "text_config": {
    "hidden_size": 5120,
    "rms_norm_eps": 1e-20,
    "rope_theta": 10000,
    "scoring_func": "sqrtsoftplus",
    "compress_ratios": [0, 2, 1],
    "empty": [],
    "rope_scaling": {"factor": 16, "type": "yarn"}
  },
  "vision_config": {"patch_size": 14, "deep": {"a": 1}}
})";

TEST(ConfigJsonTest, GettersReturnWhatTheFileSays) {
  const ConfigFile file = parse(kConfig);
  const ConfigObject root = file.root();
  EXPECT_EQ(root.string("model_type").value(), "deepseek_v41");
  EXPECT_THAT(root.string_list("architectures").value(), ElementsAre("First", "Second"));
  EXPECT_FALSE(root.boolean("tie").value());
  const ConfigObject text = root.object("text_config").value();
  EXPECT_EQ(text.integer("hidden_size").value(), 5120);
  EXPECT_EQ(text.integer_in("hidden_size", {5120, 5120}).value(), 5120);
  EXPECT_EQ(text.number("rms_norm_eps").value(), 1e-20);
  EXPECT_EQ(text.number("rope_theta").value(), 10000.0);
  EXPECT_EQ(text.string_of("scoring_func", {"sigmoid", "sqrtsoftplus"}).value(), "sqrtsoftplus");
  EXPECT_THAT(text.integer_list("compress_ratios").value(), ElementsAre(0, 2, 1));
  EXPECT_TRUE(text.integer_list("empty")->empty());
  EXPECT_EQ(text.object("rope_scaling")->integer("factor").value(), 16);
  EXPECT_EQ(file.text(), kConfig);
}

TEST(ConfigJsonTest, AMissingKeyIsNamedWithItsPath) {
  const ConfigFile file = parse(kConfig);
  const ConfigObject text = file.root().object("text_config").value();
  expect_failure(text.integer("head_dim"), ErrorCode::kBadCheckpoint,
                 {"config.json: text_config.head_dim is missing (an integer is needed)"});
  expect_failure(
      text.object("rope_scaling")->number("beta_fast"), ErrorCode::kBadCheckpoint,
      {"config.json: text_config.rope_scaling.beta_fast is missing (a number is needed)"});
  expect_failure(file.root().object("audio_config"), ErrorCode::kBadCheckpoint,
                 {"config.json: audio_config is missing (an object is needed)"});
  expect_failure(text.string_of("kind", {"a", "b"}), ErrorCode::kBadCheckpoint,
                 {"text_config.kind is missing (a string is needed)"});
}

TEST(ConfigJsonTest, AWrongKindSaysWhatWasFoundAndWhatIsNeeded) {
  const ConfigFile file = parse(
      R"({"s": "5120", "f": 1.5, "whole": 2.0, "i": 7, "b": true, "n": null, "l": [1, "x"],
          "o": {}, "big": 18446744073709551615})");
  const ConfigObject root = file.root();
  const auto bad = ErrorCode::kBadCheckpoint;
  expect_failure(root.integer("s"), bad, {"s is the string \"5120\" (an integer is needed)"});
  expect_failure(root.integer("f"), bad, {"f is the number 1.5 (an integer is needed)"});
  expect_failure(root.integer("whole"), bad, {"whole is the number 2"});
  expect_failure(root.integer("n"), bad, {"n is null (an integer is needed)"});
  expect_failure(root.integer("big"), bad, {"big is 18446744073709551615 (an integer is needed)"});
  expect_failure(root.number("b"), bad, {"b is true (a number is needed)"});
  expect_failure(root.boolean("i"), bad, {"i is 7 (true or false is needed)"});
  expect_failure(root.string("o"), bad, {"o is an object (a string is needed)"});
  expect_failure(root.integer_list("i"), bad, {"i is 7 (a list of integers is needed)"});
  expect_failure(root.integer_list("l"), bad, {"l holds the string \"x\" at place 1"});
  expect_failure(root.string_list("l"), bad, {"l holds 1 at place 0 (a list of strings"});
  expect_failure(root.object("l"), bad, {"l is a list of 2 (an object is needed)"});
}

TEST(ConfigJsonTest, ValuesOutsideTheKnownAreRefusedWithTheKnown) {
  const ConfigFile file = parse(R"({"scoring_func": "softmax", "heads": 7})");
  expect_failure(
      file.root().string_of("scoring_func", {"sigmoid", "sqrtsoftplus"}), ErrorCode::kUnsupported,
      {"scoring_func is the string \"softmax\" (one of sigmoid, sqrtsoftplus is needed)"});
  expect_failure(file.root().integer_in("heads", {8, 64}), ErrorCode::kBadCheckpoint,
                 {"heads is 7 (an integer from 8 to 64 is needed)"});
  expect_failure(file.root().integer_in("heads", {1, 6}), ErrorCode::kBadCheckpoint,
                 {"heads is 7 (an integer from 1 to 6 is needed)"});
  EXPECT_EQ(file.root().refuse("heads", "an even number").value().message,
            "config.json: heads is 7 (an even number is needed)");
}

TEST(ConfigJsonTest, IntegersKeepAll64Bits) {
  const ConfigFile file = parse(
      R"({"most": 9223372036854775807, "least": -9223372036854775808, "odd": 9007199254740993})");
  EXPECT_EQ(file.root().integer("most").value(), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(file.root().integer("least").value(), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(file.root().integer("odd").value(), 9007199254740993);
}

TEST(ConfigJsonTest, KeysThatNobodyReadAreListed) {
  const ConfigFile file = parse(kConfig);
  const ConfigObject root = file.root();
  EXPECT_THAT(root.unread_keys(), ElementsAre("model_type", "architectures", "tie", "nothing",
                                              "text_config", "vision_config"));
  ASSERT_TRUE(root.string("model_type"));
  ASSERT_TRUE(root.string_list("architectures"));
  EXPECT_FALSE(root.has("nothing"));
  const ConfigObject text = root.object("text_config").value();
  for (const char* key : {"hidden_size", "rms_norm_eps", "rope_theta"}) {
    ASSERT_TRUE(text.number(key));
  }
  ASSERT_TRUE(text.object("rope_scaling")->integer("factor"));
  EXPECT_THAT(root.unread_keys(),
              ElementsAre("tie", "text_config.scoring_func", "text_config.compress_ratios",
                          "text_config.empty", "text_config.rope_scaling.type", "vision_config"));
  EXPECT_THAT(text.unread_keys(),
              ElementsAre("text_config.scoring_func", "text_config.compress_ratios",
                          "text_config.empty", "text_config.rope_scaling.type"));
}

TEST(ConfigJsonTest, HasMeansThereAndNotNull) {
  const ConfigFile file = parse(R"({"there": 0, "null": null})");
  EXPECT_TRUE(file.root().has("there"));
  EXPECT_FALSE(file.root().has("null"));
  EXPECT_FALSE(file.root().has("absent"));
  EXPECT_THAT(file.root().unread_keys(), ElementsAre("there"));
}

TEST(ConfigJsonTest, ObjectsStayValidWhenTheFileIsMoved) {
  ConfigFile file = parse(kConfig);
  const ConfigObject text = file.root().object("text_config").value();
  const ConfigFile moved = std::move(file);
  EXPECT_EQ(text.integer("hidden_size").value(), 5120);
  expect_failure(text.integer("head_dim"), ErrorCode::kBadCheckpoint, {"config.json: text_config"});
}

TEST(ConfigJsonTest, WrongFilesAreRefused) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "not valid JSON"},
      {"[1]", "config.json holds a list of 1 (an object is needed)"},
      {"{\"a\": 1,}", "not valid JSON at byte"},
      {std::string("{}\0{", 4), "not valid JSON at byte 3"},
      {"{\"a\": NaN}", "not valid JSON at byte"},
      {"{\"a\": 1e999}", "not valid JSON at byte"},
      {"{\"a\": \"\xc0\x80\"}", "not valid JSON at byte"},
      {R"({"o": {"a": 1, "b": 2, "a": 3}})", "key \"a\" occurs twice"},
      {"{\"a\":" + std::string(3'000'000, '['), "nested more than 64 levels deep"},
      {"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n", "Git LFS pointer"},
  };
  for (const auto& [content, reason] : cases) {
    SCOPED_TRACE(content.substr(0, 100));
    expect_failure(ConfigFile::parse(content, "config.json"), ErrorCode::kBadCheckpoint,
                   {"config.json", reason});
  }
}

TEST(ConfigJsonTest, OpensAFileAndNamesItInErrors) {
  const TempFolder folder;
  const auto path = folder.write("config.json", R"({"a": 1})");
  const auto file = ConfigFile::open(path);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->root().integer("a").value(), 1);
  expect_failure(file->root().integer("b"), ErrorCode::kBadCheckpoint, {path.string() + ": b is"});
  expect_failure(ConfigFile::open(folder / "missing"), ErrorCode::kNotFound, {"missing"});
}

}  // namespace
}  // namespace locket::checkpoint
