#include "service/model_text.h"

#include <fstream>
#include <gtest/gtest.h>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "base/file.h"
#include "tests/support/checkpoint_files.h"

namespace locket::service {
namespace {

namespace fs = std::filesystem;
using chat::ChatFormat;
using nlohmann::json;

fs::path lineage_folder(const std::string& name) {
  return fs::path(LOCKET_TEST_DATA) / "oracle" / "lineage" / name / "checkpoint";
}

json read_json_file(const fs::path& path) {
  return json::parse(read_whole_file(path).value_or("null"));
}

void write_file(const fs::path& path, const std::string& text) { std::ofstream(path) << text; }

// The text files of a generation's checkpoint, to be changed.
class ModelTextTest : public testing::Test {
 protected:
  void copy(const std::string& generation) {
    for (const char* name : {"config.json", "tokenizer.json", "tokenizer_config.json"}) {
      fs::copy_file(lineage_folder(generation) / name, folder_ / name,
                    fs::copy_options::overwrite_existing);
    }
  }

  // Spells an added token in another way; a token that is not there takes an unused one's place.
  void rename(const std::string& from, const std::string& to) {
    json file = read_json_file(folder_ / "tokenizer.json");
    bool is_found = false;
    for (json& token : file["added_tokens"]) {
      if (is_found || token["content"] != from) continue;
      token["content"] = to;
      is_found = true;
    }
    ASSERT_TRUE(is_found) << from;
    file["model"]["vocab"].erase(from);
    write_file(folder_ / "tokenizer.json", file.dump());
  }

  void set_template(const std::string& text) {
    json file = read_json_file(folder_ / "tokenizer_config.json");
    file["chat_template"] = text;
    write_file(folder_ / "tokenizer_config.json", file.dump());
  }

  ChatFormat format() {
    const Result<ModelText> text = read_model_text(folder_.path());
    EXPECT_TRUE(text.has_value()) << (text ? "" : text.error().message);
    return text ? text->format : ChatFormat::kCount;
  }

  std::string refusal() {
    const Result<ModelText> text = read_model_text(folder_.path());
    if (text) return "";
    EXPECT_EQ(text.error().code, ErrorCode::kBadCheckpoint);
    EXPECT_NE(text.error().message.find(folder_.path().string()), std::string::npos);
    return text.error().message;
  }

  test_support::TempFolder folder_;
};

TEST_F(ModelTextTest, EveryGenerationHasItsFormat) {
  const std::map<std::string, std::pair<std::string, ChatFormat>> expected = {
      {"v1", {"V1", ChatFormat::kV1}},     {"v2", {"V2", ChatFormat::kV1}},
      {"v2lite", {"V2", ChatFormat::kV1}}, {"v3", {"V3", ChatFormat::kR1}},
      {"v32", {"V3.2", ChatFormat::kV32}}, {"v4flash", {"V4", ChatFormat::kV4}},
      {"v4pro", {"V4", ChatFormat::kV4}},
  };
  for (const auto& [name, text] : expected) {
    const Result<ModelText> read = read_model_text(lineage_folder(name));
    ASSERT_TRUE(read.has_value()) << read.error().message;
    EXPECT_EQ(read->generation, text.first) << name;
    EXPECT_EQ(read->format, text.second) << name;
    EXPECT_LT(read->tokenizer.vocabulary_size(), 320U) << "the vocabulary is padded";
  }
  const auto newest = read_model_text(fs::path(LOCKET_TEST_DATA) / "checkpoints" / "odd");
  ASSERT_TRUE(newest.has_value()) << newest.error().message;
  EXPECT_EQ(newest->generation, "V4.1");
  EXPECT_EQ(newest->format, ChatFormat::kV41);
}

TEST_F(ModelTextTest, TokensTellTheModelsOfAGenerationApart) {
  copy("v2");
  rename("<｜place▁holder▁no▁290｜>", "<｜User｜>");
  rename("<｜place▁holder▁no▁291｜>", "<｜Assistant｜>");
  EXPECT_EQ(format(), ChatFormat::kV3) << "V2.5";
  copy("v3");
  rename("<｜place▁holder▁no▁290｜>", "<｜search▁begin｜>");
  EXPECT_EQ(format(), ChatFormat::kV31);
  copy("v3");
  rename("<think>", "<｜place▁holder▁no▁314｜>");
  EXPECT_EQ(format(), ChatFormat::kV3);
  copy("v32");
  rename("｜DSML｜", "<｜place▁holder▁no▁316｜>");
  EXPECT_EQ(format(), ChatFormat::kV31) << "V3.2-Exp";
}

TEST_F(ModelTextTest, TheTemplateDecidesWhereTokensDoNot) {
  copy("v3");
  set_template("{{'<｜Assistant｜>'}}");
  EXPECT_EQ(format(), ChatFormat::kV3);
  set_template("{{'<｜Assistant｜><think>\\n'}}");
  EXPECT_EQ(format(), ChatFormat::kR1);
  copy("v1");
  rename("<｜place▁holder▁no▁290｜>", "<|im_start|>");
  rename("<｜place▁holder▁no▁291｜>", "<|im_end|>");
  EXPECT_EQ(format(), ChatFormat::kChatMl);
  set_template("{{ 'You are a helpful AI assistant named SmolLM, trained by Hugging Face' }}");
  EXPECT_EQ(format(), ChatFormat::kSmolLm2);
}

TEST_F(ModelTextTest, RefusesTheTokenizerOfAnotherModel) {
  copy("v4flash");
  fs::copy_file(lineage_folder("v1") / "tokenizer.json", folder_ / "tokenizer.json",
                fs::copy_options::overwrite_existing);
  EXPECT_NE(
      refusal().find("has no control token <｜User｜>, which prompts of a model of generation "
                     "V4 need"),
      std::string::npos)
      << refusal();
  copy("v32");
  rename("</think>", "<｜place▁holder▁no▁315｜>");
  EXPECT_NE(refusal().find("has no control token </think>"), std::string::npos) << refusal();
  copy("v1");
  rename("<｜begin▁of▁sentence｜>", "<s>");
  EXPECT_NE(refusal().find("has neither <｜begin▁of▁sentence｜> nor <|im_start|>"),
            std::string::npos)
      << refusal();
}

TEST_F(ModelTextTest, RefusesMoreIdsThanTheModelHas) {
  copy("v3");
  json config = read_json_file(folder_ / "config.json");
  config["vocab_size"] = 316;
  write_file(folder_ / "config.json", config.dump());
  EXPECT_NE(
      refusal().find("tokenizer.json has 317 ids, vocab_size of config.json is 316; there may "
                     "not be more ids than that"),
      std::string::npos)
      << refusal();
  config["vocab_size"] = 317;
  write_file(folder_ / "config.json", config.dump());
  EXPECT_EQ(format(), ChatFormat::kR1);
}

TEST_F(ModelTextTest, SaysWhichGenerationsThereAre) {
  copy("v1");
  json config = read_json_file(folder_ / "config.json");
  config["model_type"] = "gpt_neox";
  write_file(folder_ / "config.json", config.dump());
  const Result<ModelText> text = read_model_text(folder_.path());
  ASSERT_FALSE(text.has_value());
  EXPECT_NE(text.error().message.find("gpt_neox"), std::string::npos) << text.error().message;
}

}  // namespace
}  // namespace locket::service
