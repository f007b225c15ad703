// Compares the computed bytes per token of V1 to V4.1 with a table that was made independently, and
// for V1 to V4 with the growth of another program's cache at the same geometry.
#include "model/generations/lineage_bytes.h"

#include <filesystem>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "base/file.h"

namespace locket::model {
namespace {

using Json = nlohmann::json;

const Json& expected_table() {
  static const Json table = [] {
    const auto path = std::filesystem::path(LOCKET_TEST_DATA) / "lineage/bytes_per_token.json";
    const auto text = read_whole_file(path);
    if (!text.has_value()) throw std::runtime_error(text.error().message);
    return Json::parse(*text);
  }();
  return table;
}

void expect_equal_streams(const LineageLayout& layout, const Json& expected) {
  ASSERT_EQ(layout.streams.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const LineageStream& stream = layout.streams[i];
    SCOPED_TRACE(stream.name);
    EXPECT_EQ(stream.name, expected[i]["stream"].get<std::string>());
    EXPECT_EQ(stream.layers, expected[i]["layers"].get<std::int64_t>());
    EXPECT_EQ(stream.row_bytes, expected[i]["row_bytes"].get<std::int64_t>());
    EXPECT_EQ(stream.tokens_per_row, expected[i]["tokens_per_row"].get<std::int64_t>());
    EXPECT_EQ(stream.row, expected[i]["row"].get<std::string>());
    EXPECT_EQ(stream.formula(), expected[i]["formula"].get<std::string>());
    EXPECT_EQ(stream.bytes_per_token(), expected[i]["bytes_per_token"].get<double>());
  }
}

void expect_equal_fixed_parts(const LineageLayout& layout, const Json& expected) {
  ASSERT_EQ(layout.fixed_parts.size(), expected.size());
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const LineageFixedPart& part = layout.fixed_parts[i];
    SCOPED_TRACE(part.name);
    EXPECT_EQ(part.name, expected[i]["part"].get<std::string>());
    EXPECT_EQ(part.formula, expected[i]["formula"].get<std::string>());
    EXPECT_EQ(part.bytes, expected[i]["bytes"].get<std::int64_t>());
    sum += expected[i]["bytes"].get<std::int64_t>();
  }
  EXPECT_EQ(layout.fixed_bytes(), sum);
}

TEST(LineageBytesTest, NamesExactlyTheGenerationsOfTheTable) {
  std::set<std::string> computed;
  for (const LineageModel& model : lineage_models()) computed.insert(model.id);
  std::set<std::string> expected;
  for (const auto& entry : expected_table().items()) expected.insert(entry.key());
  EXPECT_EQ(computed, expected);
  EXPECT_EQ(lineage_models().size(), expected.size());
}

TEST(LineageBytesTest, EveryLayoutStreamAndFixedPartEqualsTheTable) {
  std::size_t layouts = 0;
  for (const LineageModel& model : lineage_models()) {
    SCOPED_TRACE(model.id);
    const Json& expected = expected_table().at(model.id);
    EXPECT_EQ(model.generation, expected["generation"].get<std::string>());
    ASSERT_EQ(model.layouts.size(), expected["layouts"].size());
    for (std::size_t i = 0; i < model.layouts.size(); ++i, ++layouts) {
      const LineageLayout& layout = model.layouts[i];
      const Json& expected_layout = expected["layouts"][i];
      SCOPED_TRACE(layout.name);
      EXPECT_EQ(layout.name, expected_layout["layout"].get<std::string>());
      EXPECT_EQ(layout.bytes_per_token(), expected_layout["bytes_per_token"].get<double>());
      expect_equal_streams(layout, expected_layout["streams"]);
      expect_equal_fixed_parts(layout, expected_layout["fixed_bytes_per_sequence"]);
    }
  }
  EXPECT_EQ(layouts, 19U);
}

TEST(LineageBytesTest, GeometryEqualsTheTable) {
  for (const LineageModel& model : lineage_models()) {
    SCOPED_TRACE(model.id);
    const Json& expected = expected_table().at(model.id)["geometry"];
    EXPECT_EQ(model.geometry.size(), expected.size());
    for (const LineageDimension& dimension : model.geometry) {
      ASSERT_TRUE(expected.contains(dimension.name)) << dimension.name;
      EXPECT_EQ(dimension.value, expected[dimension.name].get<std::int64_t>()) << dimension.name;
    }
  }
}

TEST(LineageBytesTest, Bf16LayoutsEqualTheGrowthOfAMeasuredCache) {
  std::size_t measured = 0;
  for (const LineageModel& model : lineage_models()) {
    const Json& expected = expected_table().at(model.id);
    if (!expected.contains("transformers_cache")) continue;
    ++measured;
    EXPECT_EQ(model.layouts.front().name, "bf16");
    EXPECT_EQ(model.layouts.front().bytes_per_token(),
              expected["transformers_cache"]["bf16_bytes_per_token"].get<double>())
        << model.id;
  }
  EXPECT_EQ(measured, 8U);
}

TEST(LineageBytesTest, EndsAtThePublishedFigures) {
  const auto models = lineage_models();
  EXPECT_EQ(models.front().layouts.front().bytes_per_token(), 389120.0);
  EXPECT_EQ(models.back().layouts.front().bytes_per_token(), 890.0);
  EXPECT_EQ(models.back().layouts.front().fixed_bytes(), 2703360);
}

}  // namespace
}  // namespace locket::model
