// What `locket memory` prints and writes. The numbers of the layouts are tested in
// tests/model/lineage_bytes_test.cc, how the bytes are counted in tests/engine/live_cache_test.cc
// and stored_cache_test.cc.
#include <algorithm>
#include <filesystem>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "base/file.h"
#include "cli/commands.h"
#include "cli/measured_memory.h"
#include "cli/memory_plot.h"
#include "cli/memory_ratios.h"
#include "cli/memory_text.h"
#include "cli/released_configs.h"
#include "model/generations/generation.h"
#include "model/generations/lineage_bytes.h"
#include "tests/support/checkpoint_files.h"

namespace locket::cli {
namespace {

using nlohmann::json;

// Two pages of every released model: about 300 MB in all.
const std::vector<MeasuredMemory>& measured() {
  static const test_support::TempFolder scratch;
  static const auto all = measure_released_memory({.tokens = 256, .scratch = scratch.path()});
  return all;
}

// Whether this program has the generation of a released config.
bool is_there(std::string_view config) { return released_outline(config).has_value(); }

std::string printed(const MemoryOptions& options) {
  testing::internal::CaptureStdout();
  EXPECT_EQ(run_memory(options), 0);
  return testing::internal::GetCapturedStdout();
}

TEST(MemoryCommandTest, ShowsBytesRatioAndFormulaOfEachGeneration) {
  const std::string table = printed({.is_computed_only = true});
  for (const char* text :
       {"V1 67B\n", "389,120   437.21    380.000          -\n      = 95 x 2048 / 1 + 95 x 2048 / 1",
        "5,031.4375     5.65      4.914      22.19\n", "V4.1-Flash\n",
        "   890     1.00      0.869       2.58\n",
        "= 3 x 288 / 2 + 3 x 68 / 2 + 1 x 288 / 1 + 1 x 68 / 1\n",
        "    584 B  448 e4m3 + 64 bf16 + 7 UE8M0 + 1 pad\n", "437 x     437.2 x         -\n"}) {
    EXPECT_NE(table.find(text), std::string::npos) << text << table;
  }
}

TEST(MemoryCommandTest, FitsAHundredColumns) {
  for (const std::string& text :
       {printed({.is_computed_only = true}), measured_table(measured()), ratio_table(measured())}) {
    std::istringstream lines(text);
    std::size_t count = 0;
    for (std::string line; std::getline(lines, line); ++count) {
      EXPECT_LE(line.size(), 100U) << line;
      EXPECT_FALSE(line.ends_with(' ')) << line;
    }
    EXPECT_GT(count, 10U);
  }
}

TEST(MemoryCommandTest, ReleasedConfigsStandInTheOrderOfTheLineage) {
  const auto models = model::lineage_models();
  ASSERT_EQ(released_configs().size(), models.size());
  for (std::size_t i = 0; i < models.size(); ++i) {
    EXPECT_EQ(released_configs()[i].id, models[i].id);
  }
  EXPECT_TRUE(is_there(released_configs().back().text));
}

// One of the published layouts of every generation is the one that this program serves with.
TEST(MemoryCommandTest, EveryGenerationServesWithOneOfItsLayouts) {
  const auto models = model::lineage_models();
  for (std::size_t i = 0; i < models.size(); ++i) {
    const MeasuredMemory& one = measured()[i];
    if (!is_there(released_configs()[i].text)) {
      EXPECT_NE(one.fault, "") << models[i].id;
      continue;
    }
    ASSERT_EQ(one.fault, "") << models[i].id;
    const double bytes = one.memory.layout.bytes_per_token();
    EXPECT_TRUE(std::ranges::any_of(
        models[i].layouts, [&](const auto& layout) { return layout.bytes_per_token() == bytes; }))
        << models[i].id << " serves with " << bytes;
    EXPECT_EQ(one.live.page_bytes_per_token(), bytes) << models[i].id;
    EXPECT_GE(one.stored.row_bytes_per_token(), bytes) << models[i].id;
    double sum = 0;
    for (const StreamGroup& group : stream_groups(one.memory.layout))
      sum += group.bytes_per_token();
    EXPECT_DOUBLE_EQ(sum, bytes) << models[i].id;
  }
}

TEST(MemoryCommandTest, RatiosStandBesideWhatWasPublished) {
  for (const MemoryRatio& ratio : memory_ratios({})) {
    EXPECT_FALSE(ratio.measured) << ratio.claim;
    if (!ratio.computed) continue;
    EXPECT_NEAR(*ratio.computed / ratio.published, 1, 0.05) << ratio.claim;
  }
  const auto ratios = memory_ratios(measured());
  const auto found = std::ranges::find_if(ratios, [](const MemoryRatio& ratio) {
    return ratio.claim == "V4.1-Flash keeps 890 bytes a token";
  });
  ASSERT_NE(found, ratios.end());
  EXPECT_EQ(found->measured, 890.0);
}

TEST(MemoryCommandTest, JsonHoldsEverything) {
  const json all = json::parse(memory_json(measured()));
  EXPECT_EQ(all.at("computed").size(), 9U);
  EXPECT_EQ(all.at("measured").size(), 9U);
  EXPECT_EQ(all.at("measured").back().at("page_bytes_per_token"), 890);
  EXPECT_EQ(all.at("measured").back().at("tokens"), 256);
  EXPECT_EQ(all.at("published").size(), memory_ratios({}).size());
  EXPECT_TRUE(
      json::parse(printed({.is_computed_only = true, .json = true})).at("measured").empty());
}

TEST(MemoryCommandTest, WritesPlotsThatNeedNothingElse) {
  const test_support::TempFolder folder;
  printed({.is_computed_only = true, .svg_folder = folder.path() / "plots"});
  for (const MemoryPlot& plot : memory_plots(measured())) {
    EXPECT_TRUE(std::filesystem::exists(folder.path() / "plots" / plot.file_name));
    EXPECT_TRUE(plot.svg.starts_with("<svg xmlns=") && plot.svg.ends_with("</svg>\n"));
    for (const char* part : {"nan", "inf", "href", "<script"}) {
      EXPECT_EQ(plot.svg.find(part), std::string::npos) << part;
    }
    EXPECT_NE(plot.svg.find("V4.1-Flash"), std::string::npos);
  }
}

TEST(MemoryCommandTest, SaysWhatCannotBeMeasured) {
  const auto all = measure_released_memory({.tokens = 128, .scratch = "/proc/nothing"});
  EXPECT_NE(all.back().fault.find("/proc/nothing"), std::string::npos) << all.back().fault;
  EXPECT_EQ(find_measured(all, "v4.1-flash"), nullptr);
  EXPECT_NE(measured_table(all).find("V4.1-Flash is not measured: "), std::string::npos);
}

}  // namespace
}  // namespace locket::cli
