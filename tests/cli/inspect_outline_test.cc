// What `locket inspect` says of models of any generation, from their released configs alone.
#include "cli/inspect_outline.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/commands.h"
#include "cli/measured_memory.h"
#include "cli/released_configs.h"
#include "model/generations/lineage_bytes.h"
#include "tests/support/checkpoint_files.h"

namespace locket::cli {
namespace {

InspectOptions options_for(const std::filesystem::path& path) {
  InspectOptions options;
  options.model.model = path;
  return options;
}

TEST(InspectOutlineTest, EveryReleasedConfigHasASummary) {
  const test_support::TempFolder folder;
  const auto models = model::lineage_models();
  std::size_t count = 0;
  for (std::size_t i = 0; i < models.size(); ++i) {
    const ReleasedConfig& config = released_configs()[i];
    if (!released_outline(config.text)) continue;
    const auto path = folder.write("config.json", config.text);
    const auto summary = summarize_model(options_for(path));
    ASSERT_TRUE(summary) << config.id << ": " << summary.error().message;
    EXPECT_TRUE(summary->weights.is_estimate) << config.id;
    EXPECT_GT(summary->weights.dense, 0U) << config.id;
    EXPECT_EQ(summary->outline.shape.layer_count > 0, true) << config.id;
    std::istringstream lines(summary_text(*summary));
    std::string line;
    std::getline(lines, line);  // the path, which may be long
    for (; std::getline(lines, line);) EXPECT_LE(line.size(), 100U) << line;
    const auto json = nlohmann::json::parse(summary_json(*summary));
    EXPECT_EQ(json["memory"]["bytes_per_token"], summary->outline.memory.layout.bytes_per_token());
    count += 1;
  }
  EXPECT_GE(count, 1U);
}

TEST(InspectOutlineTest, TheCommandShowsThemWithoutWeights) {
  const test_support::TempFolder folder;
  for (const ReleasedConfig& config : released_configs()) {
    if (config.id == "v4.1-flash" || !released_outline(config.text)) continue;
    testing::internal::CaptureStdout();
    EXPECT_EQ(run_inspect(options_for(folder.write("config.json", config.text))), 0) << config.id;
    const std::string text = testing::internal::GetCapturedStdout();
    EXPECT_NE(text.find("bytes per token"), std::string::npos) << text;
    EXPECT_NE(text.find("estimated from the config"), std::string::npos) << text;
  }
}

TEST(InspectOutlineTest, AnUnknownModelTypeListsTheKnownOnes) {
  const test_support::TempFolder folder;
  const auto path = folder.write("config.json", R"({"model_type": "parrot"})");
  const auto generation = inspected_generation(options_for(path));
  ASSERT_FALSE(generation);
  EXPECT_EQ(generation.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(generation.error().message.find("deepseek_v41"), std::string::npos);
}

}  // namespace
}  // namespace locket::cli
