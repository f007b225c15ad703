// What `locket inspect` computes and prints; the counts behind it are tested in
// tests/model/v41_work_test.cc.
#include <filesystem>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "cli/commands.h"
#include "cli/inspect_text.h"
#include "tests/support/tiny_models.h"

namespace locket::cli {
namespace {

namespace fs = std::filesystem;

fs::path released_config() { return fs::path(LOCKET_TEST_DATA) / "configs/v41_flash_config.json"; }

InspectOptions options_for(const fs::path& model) {
  InspectOptions options;
  options.model.model = model;
  return options;
}

ModelFacts facts_of(const InspectOptions& options) {
  auto facts = read_model_facts(options);
  EXPECT_TRUE(facts) << facts.error().message;
  return *facts;
}

TEST(InspectTest, TellsTheReleasedModelFromItsConfigAlone) {
  const std::string text = inspect_text(facts_of(options_for(released_config())));
  for (const char* part :
       {"40: encoder 0-19, decoder 20-39", "sees only the last 128 of",
        "  0       encoder           -  -              -\n",
        "  14      encoder           2  layer 14       layer 14   Engram, writes rows, chooses\n",
        "  15-19   encoder           2  layer 14       layer 14\n",
        "  20      decoder           1  layer 20       layer 20   writes rows, chooses, builds the "
        "pool\n",
        "  24      decoder           1  layer 20       layer 24   chooses from the pool\n",
        "  layer 8     layers 8-13   288 / 2 = 144  68 / 2 = 34              178\n",
        "  layer 20    layers 20-39  288 / 1 = 288  68 / 1 = 68              356\n",
        "  sum                                 720          170              890\n",
        "113,920  rows and keys of 128 tokens\n", "2,703,360  40 layers x 128 positions x 528\n",
        "1,351,680  20 layers x 128 positions x 528", "196,613,849,600", "748,494,684,784",
        "  7,895,577,912  16,130,590,832  "}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

TEST(InspectTest, FitsAHundredColumns) {
  for (const fs::path& model :
       {released_config(), test_support::tiny_checkpoint("micro"),
        test_support::tiny_checkpoint("odd"), test_support::tiny_checkpoint("thin")}) {
    std::istringstream lines(inspect_text(facts_of(options_for(model))));
    std::string line;
    std::getline(lines, line);  // the path, which may be long
    for (; std::getline(lines, line);) {
      EXPECT_LE(line.size(), 100U) << line;
      EXPECT_FALSE(line.ends_with(' ')) << line;
    }
  }
}

TEST(InspectTest, JsonHoldsTheSameNumbers) {
  const ModelFacts facts = facts_of(options_for(released_config()));
  const auto json = nlohmann::json::parse(inspect_json(facts));
  EXPECT_EQ(json["layers"].size(), 40U);
  EXPECT_TRUE(json["layers"][0]["reads_rows_of"].is_null());
  EXPECT_EQ(json["layers"][33]["chosen_by"], 32);
  EXPECT_EQ(json["memory"]["streams"].size(), 8U);
  EXPECT_EQ(json["memory"]["bytes_per_token"], 890);
  EXPECT_EQ(json["memory"]["ring_bytes"], 2'703'360);
  EXPECT_EQ(json["memory"]["snapshot_bytes"], 1'351'680);
  EXPECT_EQ(json["sum"]["parameters"], 748'494'684'784);
  EXPECT_EQ(json["sum"]["generated_token_multiply_adds"], json["generated_token_work"]["total"]);
  EXPECT_EQ(json["sum"]["prompt_token_multiply_adds"], json["prompt_token_work"]["total"]);
  EXPECT_LE(json["prompt_token_ratio"], 0.52);
  EXPECT_LE(json["prompt_average_ratio"], 0.52);
}

TEST(InspectTest, CountsAtTheContextThatIsAskedFor) {
  InspectOptions options = options_for(released_config());
  options.context = 1;
  const ModelFacts one = facts_of(options);
  EXPECT_EQ(one.generated_token_work.index_scores, 0U);
  EXPECT_EQ(one.replayed, 1);
  options.context = 1 << 20;
  const ModelFacts million = facts_of(options);
  EXPECT_GT(million.generated_token_work.index_scores, million.prompt_token_work.index_scores);
  options.context = std::int64_t{1} << 40;
  EXPECT_EQ(facts_of(options).context, 1 << 20);
}

TEST(InspectTest, ReplayOfTheWholePromptCostsTheWholeDecoder) {
  InspectOptions options = options_for(released_config());
  options.model.replay = "full";
  const ModelFacts facts = facts_of(options);
  EXPECT_EQ(facts.replayed, 32768);
  EXPECT_GT(facts.prompt_average_work(), 0.9 * static_cast<double>(facts.sum.generated_work));
}

TEST(InspectTest, PlainModeStoresFloats) {
  InspectOptions options = options_for(released_config());
  options.model.mode = "plain";
  const ModelFacts facts = facts_of(options);
  EXPECT_EQ(facts.memory.layout.bytes_per_token(), 2.5 * (512 + 128) * 4);
  EXPECT_NE(inspect_text(facts).find("512 values in float32"), std::string::npos);
}

TEST(InspectTest, FolderAndItsConfigAreTheSame) {
  const fs::path folder = test_support::tiny_checkpoint("micro");
  EXPECT_EQ(inspect_text(facts_of(options_for(folder))),
            inspect_text(facts_of(options_for(folder / "config.json"))));
}

TEST(InspectTest, LeavesOutWhatTheModelLacks) {
  const std::string text =
      inspect_text(facts_of(options_for(test_support::tiny_checkpoint("thin"))));
  EXPECT_EQ(text.find("Engram"), std::string::npos);
}

TEST(InspectCommandTest, PrintsAndReportsErrors) {
  InspectOptions options = options_for(released_config());
  testing::internal::CaptureStdout();
  EXPECT_EQ(run_inspect(options), 0);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), inspect_text(facts_of(options)));

  testing::internal::CaptureStderr();
  EXPECT_EQ(run_inspect(options_for(fs::path(LOCKET_TEST_DATA) / "nothing")), 1);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("nothing"), std::string::npos);
}

}  // namespace
}  // namespace locket::cli
