// Files that are not what they should be: every one is refused with a message that names the place.
#include "tokenizer/tokenizer_json.h"

#include <filesystem>
#include <functional>
#include <gtest/gtest.h>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "tests/support/tokenizer_files.h"
#include "tokenizer/pretokenizer.h"

namespace locket::tokenizer {
namespace {

using nlohmann::json;

// A small file of the real shape; the tests spoil one part each.
json good_file() {
  static const json file = test_support::read_text_json("small_tokenizer.json");
  return file;
}

std::string message_of(const std::string& text) {
  const Result<Tokenizer> parsed = Tokenizer::parse(text, "x/tokenizer.json");
  if (parsed) return "accepted";
  EXPECT_EQ(parsed.error().code, ErrorCode::kBadCheckpoint);
  EXPECT_TRUE(parsed.error().message.starts_with("x/tokenizer.json: ")) << parsed.error().message;
  EXPECT_EQ(repair_utf8(parsed.error().message), parsed.error().message);
  return parsed.error().message;
}

struct Spoiled {
  const char* expected;  // part of the message
  std::function<void(json&)> spoil;
};

void expect_refused(const std::vector<Spoiled>& cases) {
  for (const Spoiled& spoiled : cases) {
    json file = good_file();
    spoiled.spoil(file);
    const std::string message = message_of(file.dump());
    EXPECT_NE(message.find(spoiled.expected), std::string::npos)
        << message << "\nexpected: " << spoiled.expected;
  }
}

TEST(TokenizerJsonTest, AcceptsTheUnspoiledFileAndMergesWrittenAsPairs) {
  EXPECT_EQ(message_of(good_file().dump()), "accepted");
  json file = good_file();
  for (json& merge : file["model"]["merges"]) {
    const auto text = merge.get<std::string>();
    const std::size_t space = text.find(' ');
    merge = json::array({text.substr(0, space), text.substr(space + 1)});
  }
  const Tokenizer pairs = Tokenizer::parse(file.dump(), "pairs").value();
  const std::string text = "The ferry left at nine and nobody waved.";
  EXPECT_EQ(pairs.encode_text(text), test_support::small_tokenizer().encode_text(text));
}

TEST(TokenizerJsonTest, NamesAGitLfsPointer) {
  const std::string pointer =
      "version https://git-lfs.github.com/spec/v1\n"
      "oid sha256:c90dfa01249db1be4245780a052ede752e1361c612ac6d08e2bdada7d599476b\nsize 6367257\n";
  EXPECT_NE(message_of(pointer).find("Git LFS pointer"), std::string::npos);
}

TEST(TokenizerJsonTest, NamesAPointerAndAMissingFileByPath) {
  const auto folder = std::filesystem::temp_directory_path() / "locket_tokenizer_json_test";
  std::filesystem::create_directories(folder);
  const auto path = folder / "tokenizer.json";
  const std::string pointer = "version https://git-lfs.github.com/spec/v1\n";
  ASSERT_TRUE(write_whole_file(path, std::as_bytes(std::span(pointer))));
  const Result<Tokenizer> loaded = Tokenizer::load(path);
  std::filesystem::remove_all(folder);
  ASSERT_FALSE(loaded);
  EXPECT_NE(loaded.error().message.find(path.string()), std::string::npos);
  const Result<Tokenizer> missing = Tokenizer::load(path);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
  EXPECT_NE(missing.error().message.find(path.string()), std::string::npos);
}

TEST(TokenizerJsonTest, RefusesWhatIsNotJson) {
  EXPECT_NE(message_of("").find("not JSON"), std::string::npos);
  EXPECT_NE(message_of("{\"a\": ").find("byte 7 of 6"), std::string::npos);
  EXPECT_NE(message_of("[1, 2]").find("is array"), std::string::npos);
  EXPECT_NE(message_of("{\"a\": \"\xC3(\"}").find("not JSON"), std::string::npos);
  EXPECT_NE(message_of("{\"a\": \"\\ud83d\"}").find("not JSON"), std::string::npos);
  EXPECT_NE(message_of("{\"a\": 1e999}").find("not JSON"), std::string::npos);
}

TEST(TokenizerJsonTest, RefusesDeepNestingWithoutFollowingIt) {
  EXPECT_NE(message_of(std::string(5'000'000, '[')).find("deeper than 64"), std::string::npos);
  EXPECT_NE(message_of("{\"a\":" + std::string(100, '{')).find("deeper than 64"),
            std::string::npos);
  // Brackets inside strings do not nest.
  json file = good_file();
  file["note"] = std::string(100, '[') + "\"\\" + std::string(100, '{');
  EXPECT_EQ(message_of(file.dump()), "accepted");
}

TEST(TokenizerJsonTest, RefusesEveryCutOfTheFile) {
  const std::string text = good_file().dump();
  for (std::size_t length = 0; length < text.size(); length += 911) {
    EXPECT_NE(message_of(text.substr(0, length)), "accepted") << length;
  }
}

TEST(TokenizerJsonTest, SurvivesDamagedBytes) {
  const std::string text = good_file().dump();
  std::mt19937 random(1);
  std::size_t refused = 0;
  for (int round = 0; round < 200; ++round) {
    std::string damaged = text;
    for (int byte = 0; byte < 3; ++byte) {
      damaged[random() % damaged.size()] = static_cast<char>(random() % 256);
    }
    const Result<Tokenizer> parsed = Tokenizer::parse(damaged, "damaged");
    if (!parsed) ++refused;
    if (parsed) parsed->encode_with_added_tokens("<｜User｜>The ferry, 1984: 渡轮 😀");
  }
  EXPECT_GT(refused, 100U);
}

TEST(TokenizerJsonTest, NamesMissingParts) {
  std::vector<Spoiled> cases;
  for (const char* key : {"model", "added_tokens", "pre_tokenizer", "decoder"}) {
    cases.push_back({key, [key](json& file) { file.erase(key); }});
  }
  for (const char* key : {"type", "vocab", "merges"}) {
    cases.push_back({key, [key](json& file) { file["model"].erase(key); }});
  }
  for (const char* key : {"id", "content", "special", "normalized"}) {
    cases.push_back({"added_tokens[5]", [key](json& file) { file["added_tokens"][5].erase(key); }});
  }
  for (const char* key : {"type", "add_prefix_space", "use_regex"}) {
    cases.push_back({"pre_tokenizer step 3",
                     [key](json& file) { file["pre_tokenizer"]["pretokenizers"][3].erase(key); }});
  }
  for (const char* key : {"type", "pattern", "behavior"}) {
    cases.push_back({"pre_tokenizer step 1",
                     [key](json& file) { file["pre_tokenizer"]["pretokenizers"][1].erase(key); }});
  }
  expect_refused(cases);
}

// Every member of every part, replaced by values of all types.
TEST(TokenizerJsonTest, SurvivesWrongTypesEverywhere) {
  const json wrong = {nullptr, true, -1, 1.5, "text", json::array({json::array()}), {{"a", 1}}};
  const std::vector<std::string> places = {"/added_tokens",
                                           "/added_tokens/3",
                                           "/added_tokens/3/id",
                                           "/added_tokens/3/content",
                                           "/added_tokens/3/special",
                                           "/added_tokens/3/lstrip",
                                           "/normalizer",
                                           "/normalizer/type",
                                           "/normalizer/normalizers",
                                           "/pre_tokenizer",
                                           "/pre_tokenizer/type",
                                           "/pre_tokenizer/pretokenizers",
                                           "/pre_tokenizer/pretokenizers/0",
                                           "/pre_tokenizer/pretokenizers/0/type",
                                           "/pre_tokenizer/pretokenizers/0/pattern",
                                           "/pre_tokenizer/pretokenizers/0/pattern/Regex",
                                           "/pre_tokenizer/pretokenizers/0/behavior",
                                           "/pre_tokenizer/pretokenizers/0/invert",
                                           "/pre_tokenizer/pretokenizers/3/use_regex",
                                           "/decoder",
                                           "/decoder/type",
                                           "/post_processor",
                                           "/post_processor/type",
                                           "/model",
                                           "/model/type",
                                           "/model/vocab",
                                           "/model/vocab/a",
                                           "/model/merges",
                                           "/model/merges/0",
                                           "/model/dropout",
                                           "/model/unk_token",
                                           "/model/byte_fallback"};
  std::vector<std::string> accepted;
  for (const std::string& place : places) {
    for (const json& value : wrong) {
      json file = good_file();
      file.at(json::json_pointer(place)) = value;
      if (message_of(file.dump()) == "accepted") accepted.push_back(place + " = " + value.dump());
    }
  }
  // Another text, another flag, and null where it says "none".
  EXPECT_EQ(accepted, (std::vector<std::string>{
                          "/added_tokens/3/content = \"text\"", "/added_tokens/3/special = true",
                          "/added_tokens/3/lstrip = null", "/normalizer = null",
                          "/pre_tokenizer/pretokenizers/0/pattern/Regex = \"text\"",
                          "/pre_tokenizer/pretokenizers/0/invert = null", "/post_processor = null",
                          "/model/dropout = null", "/model/unk_token = null",
                          "/model/byte_fallback = null"}));
}

TEST(TokenizerJsonTest, RefusesIdsThatDoNotFit) {
  expect_refused({
      {"vocab[\"a\"]", [](json& file) { file["model"]["vocab"]["a"] = -1; }},
      {"vocab[\"a\"]", [](json& file) { file["model"]["vocab"]["a"] = 2.0; }},
      {"vocab[\"a\"]", [](json& file) { file["model"]["vocab"]["a"] = 2147483648U; }},
      {"\"a\" has the id 2147483647", [](json& file) { file["model"]["vocab"]["a"] = 2147483647; }},
      {"id 10 is given to both", [](json& file) { file["model"]["vocab"]["a"] = 10; }},
      {"id 70 is given to both", [](json& file) { file["added_tokens"][5]["id"] = 70; }},
      {"no entry has the id 965", [](json& file) { file["added_tokens"].erase(8); }},
      {"already", [](json& file) { file["added_tokens"].push_back(file["added_tokens"][6]); }},
      {"in the vocabulary it has 0", [](json& file) { file["added_tokens"][0]["id"] = 1; }},
      {"\"content\" is empty", [](json& file) { file["added_tokens"][5]["content"] = ""; }},
  });
}

TEST(TokenizerJsonTest, RefusesMergesThatDoNotFit) {
  expect_refused({
      {"merges[700]", [](json& file) { file["model"]["merges"][700] = "nosuch piece"; }},
      {"needs the piece \"zq\"", [](json& file) { file["model"]["merges"][3] = "z q"; }},
      {"merges[9] repeats model.merges[2]",
       [](json& file) { file["model"]["merges"][9] = file["model"]["merges"][2]; }},
      {"merges[4] is \"abc\"", [](json& file) { file["model"]["merges"][4] = "abc"; }},
      {"merges[4] is \"a b c\"", [](json& file) { file["model"]["merges"][4] = "a b c"; }},
      {"merges[4] is array", [](json& file) { file["model"]["merges"][4] = json::array({"a"}); }},
      {"no entry \"b\" for the byte 0x62",
       [](json& file) {
         const json id = file["model"]["vocab"]["b"];
         file["model"]["vocab"].erase("b");
         file["model"]["vocab"]["bbbbbb"] = id;
       }},
  });
}

TEST(TokenizerJsonTest, RefusesWhatWouldChangeIdsAndIsNotBuilt) {
  const auto step = [](std::size_t index) {
    return json::json_pointer("/pre_tokenizer/pretokenizers/" + std::to_string(index));
  };
  expect_refused({
      {"expected \"BPE\"", [](json& file) { file["model"]["type"] = "WordPiece"; }},
      {"\"dropout\" is 0.1", [](json& file) { file["model"]["dropout"] = 0.1; }},
      {"unk_token", [](json& file) { file["model"]["unk_token"] = "<unk>"; }},
      {"byte_fallback", [](json& file) { file["model"]["byte_fallback"] = true; }},
      {"ignore_merges", [](json& file) { file["model"]["ignore_merges"] = true; }},
      {"end_of_word_suffix", [](json& file) { file["model"]["end_of_word_suffix"] = "</w>"; }},
      {"lstrip", [](json& file) { file["added_tokens"][5]["lstrip"] = true; }},
      {"single_word", [](json& file) { file["added_tokens"][5]["single_word"] = true; }},
      {"\"NFC\"",
       [](json& file) {
         file["normalizer"] = {{"type", "NFC"}};
       }},
      {"the list is not empty",
       [](json& file) {
         file["normalizer"]["normalizers"].push_back({{"type", "NFC"}});
       }},
      {"\"Metaspace\"", [](json& file) { file["decoder"]["type"] = "Metaspace"; }},
      {"post_processor", [](json& file) { file["post_processor"]["type"] = "TemplateProcessing"; }},
      {"\"Whitespace\"", [step](json& file) { file[step(0)]["type"] = "Whitespace"; }},
      {"\"Removed\"", [step](json& file) { file[step(0)]["behavior"] = "Removed"; }},
      {"invert", [step](json& file) { file[step(0)]["invert"] = true; }},
      {"add_prefix_space", [step](json& file) { file[step(3)]["add_prefix_space"] = true; }},
      {"use_regex", [step](json& file) { file[step(3)]["use_regex"] = true; }},
      {"must be the last", [step](json& file) { std::swap(file[step(0)], file[step(3)]); }},
      {"must be the last", [](json& file) { file["pre_tokenizer"]["pretokenizers"].erase(3); }},
      {"no steps", [](json& file) { file["pre_tokenizer"]["pretokenizers"].clear(); }},
      {"not syntax that is known",
       [step](json& file) { file[step(0)]["pattern"]["Regex"] = "\\w"; }},
  });
}

TEST(TokenizerJsonTest, ReadsThePreTokenizersOfTheEarlierGenerations) {
  json file = good_file();
  file["pre_tokenizer"]["pretokenizers"] = json::parse(R"([
      {"type": "Split", "pattern": {"Regex": "[\r\n]"}, "behavior": "Isolated", "invert": false},
      {"type": "Split", "pattern": {"String": "--"}, "behavior": "Isolated", "invert": false},
      {"type": "Digits", "individual_digits": true},
      {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false}])");
  const TokenizerFile parsed = parse_tokenizer_file(file.dump()).value();
  ASSERT_EQ(parsed.splits.size(), 3U);
  EXPECT_EQ(parsed.splits[0].pattern, "[\r\n]");
  EXPECT_EQ(parsed.splits[1].kind, PatternKind::kLiteral);
  const Pretokenizer pretokenizer = Pretokenizer::build(parsed.splits).value();
  const std::vector<std::string_view> expected = {"a",          "1", "2",  "²", "\U00011DE9",
                                                  "\U00011DE9", "b", "\n", "c", "--"};
  EXPECT_EQ(pretokenizer.split("a12²\U00011DE9\U00011DE9b\nc--"), expected);
  file["pre_tokenizer"]["pretokenizers"][2]["individual_digits"] = false;
  const TokenizerFile runs = parse_tokenizer_file(file.dump()).value();
  const std::vector<std::string_view> with_runs = {"a", "12²", "b"};
  EXPECT_EQ(Pretokenizer::build(runs.splits).value().split("a12²b"), with_runs);
  file["pre_tokenizer"] = file["pre_tokenizer"]["pretokenizers"][3];
  EXPECT_TRUE(parse_tokenizer_file(file.dump()).value().splits.empty());
}

}  // namespace
}  // namespace locket::tokenizer
