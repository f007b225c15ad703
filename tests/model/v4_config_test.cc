// What config.json of a V4 model says, and the memory that follows from it.
#include "model/generations/v4_config.h"

#include <algorithm>
#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/file.h"
#include "model/generations/lineage_bytes.h"
#include "model/generations/v4_bytes.h"
#include "model/generations/v4_layout.h"

namespace locket::model {
namespace {

using nlohmann::ordered_json;
using ::testing::HasSubstr;

ordered_json json_of(const std::string& name) {
  const auto path = std::filesystem::path(LOCKET_TEST_DATA) / "configs" / (name + "_config.json");
  const auto text = read_whole_file(path);
  if (!text) throw std::runtime_error(text.error().message);
  return ordered_json::parse(*text);
}

Result<V4Config> read(const ordered_json& content) {
  const auto file = checkpoint::ConfigFile::parse(content.dump(), "config.json");
  if (!file) throw std::runtime_error(file.error().message);
  return read_v4_config(file->root());
}

V4Config config_of(const std::string& name) {
  Result<V4Config> config = read(json_of(name));
  if (!config) throw std::runtime_error(config.error().message);
  return std::move(*config);
}

std::int64_t count_of(const V4Config& config, V4LayerKind kind) {
  return std::ranges::count(config.layers, kind);
}

TEST(V4ConfigTest, ReadsTheReleasedSizes) {
  const V4Config flash = config_of("v4_flash");
  EXPECT_EQ(flash.layer_count, 43);
  EXPECT_EQ(count_of(flash, V4LayerKind::kWindow), 2);
  EXPECT_EQ(count_of(flash, V4LayerKind::kChosen), 21);
  EXPECT_EQ(count_of(flash, V4LayerKind::kAll), 20);
  EXPECT_EQ(flash.head_dim, 512);
  EXPECT_EQ(flash.rope_dim, 64);
  EXPECT_EQ(flash.index_topk, 512);
  EXPECT_EQ(flash.compressed_rope.base, 160'000.0);
  EXPECT_EQ(flash.compressed_rope.original_context, 65'536);
  EXPECT_EQ(flash.plain_rope.original_context, 0) << "window layers have no YaRN";
  EXPECT_EQ(flash.sinkhorn_iterations, 20);
  EXPECT_EQ(flash.hc_eps, 1e-6f);
  EXPECT_TRUE(flash.routes_by_token(2));
  EXPECT_FALSE(flash.routes_by_token(3));
  const V4Config pro = config_of("v4_pro");
  EXPECT_EQ(pro.layer_count, 61);
  EXPECT_EQ(count_of(pro, V4LayerKind::kWindow), 0);
  EXPECT_EQ(count_of(pro, V4LayerKind::kChosen), 30);
  EXPECT_EQ(count_of(pro, V4LayerKind::kAll), 31);
  EXPECT_EQ(pro.routed_scaling_factor, 2.5f);
  EXPECT_EQ(pro.index_topk, 1024);
}

TEST(V4ConfigTest, DraftLayersMayFollowTheLayersOfTheList) {
  for (const std::size_t drafts : {0, 1, 3}) {
    ordered_json content = json_of("v4_flash");
    std::vector<int> ratios = content["compress_ratios"];
    ratios.resize(43 + drafts, 0);
    content["compress_ratios"] = ratios;
    EXPECT_TRUE(read(content)) << drafts;
  }
  ordered_json content = json_of("v4_flash");
  content["compress_ratios"].back() = 4;
  EXPECT_FALSE(read(content));
}

struct Refused {
  std::string key;
  ordered_json value;
  std::string needed;
};

TEST(V4ConfigTest, RefusesWhatItDoesNotHaveWithKeyAndValue) {
  const std::vector<Refused> cases = {
      {"scoring_func", "sigmoid", "sqrtsoftplus"},
      {"topk_method", "greedy", "noaux_tc"},
      {"norm_topk_prob", false, "true"},
      {"tie_word_embeddings", true, "false"},
      {"num_key_value_heads", 8, "1"},
      {"n_shared_experts", 2, "1"},
      {"hidden_size", 4097, "multiple of 32"},
      {"head_dim", 500, "multiple of 64"},
      {"qk_rope_head_dim", 128, "at most 64"},
      {"index_head_dim", 96, "power of two"},
      {"o_groups", 7, "divisor"},
      {"num_experts_per_tok", 300, "n_routed_experts"},
      {"sliding_window", 4, "more than 4"},
      {"rope_theta", 1, "above 1"},
      {"compress_ratios", std::vector<int>{0, 4}, "one entry per layer, 43"},
      {"expert_dtype", "int4", "fp4"},
  };
  for (const Refused& refused : cases) {
    ordered_json content = json_of("v4_flash");
    content[refused.key] = refused.value;
    const Result<V4Config> config = read(content);
    ASSERT_FALSE(config) << refused.key;
    EXPECT_THAT(config.error().message, HasSubstr(refused.key));
    EXPECT_THAT(config.error().message, HasSubstr(refused.needed));
  }
  ordered_json odd_ratio = json_of("v4_flash");
  odd_ratio["compress_ratios"][5] = 64;
  const Result<V4Config> config = read(odd_ratio);
  ASSERT_FALSE(config);
  EXPECT_THAT(config.error().message, HasSubstr("0, 4 or 128 for layer 5"));
}

TEST(V4ConfigTest, EveryKeyThatIsNeededIsMissed) {
  const ordered_json whole = json_of("v4_flash");
  for (const std::string key :
       {"head_dim", "compress_ratios", "rope_scaling", "compress_rope_theta", "num_hash_layers",
        "swiglu_limit", "hc_eps", "hc_sinkhorn_iters", "index_topk", "model_type"}) {
    ordered_json content = whole;
    content.erase(key);
    const Result<V4Config> config = read(content);
    ASSERT_FALSE(config) << key;
    EXPECT_THAT(config.error().message, HasSubstr(key));
  }
  ordered_json scaled = whole;
  scaled["rope_scaling"]["mscale"] = 1.0;
  EXPECT_FALSE(read(scaled));
}

const LineageLayout& served_layout(const std::vector<LineageModel>& models, const std::string& id) {
  for (const LineageModel& model : models) {
    if (model.id != id) continue;
    for (const LineageLayout& layout : model.layouts) {
      if (layout.name == "vendor serving") return layout;
    }
  }
  throw std::runtime_error("no layout of " + id);
}

TEST(V4LayoutTest, TakesTheBytesThatTheReleaseIsServedWith) {
  const std::vector<LineageModel> models = lineage_models();
  const std::pair<std::string, double> releases[] = {{"flash", 3514.25}, {"pro", 5031.4375}};
  for (const auto& [name, bytes] : releases) {
    const V4Memory memory = make_v4_memory(config_of("v4_" + name), NumericsMode::kWide);
    const cache::KvLayout& layout = memory.outline.memory.layout;
    EXPECT_DOUBLE_EQ(layout.bytes_per_token(), bytes) << name;
    EXPECT_DOUBLE_EQ(layout.bytes_per_token(),
                     served_layout(models, "v4-" + name).bytes_per_token());
    EXPECT_EQ(layout.snapshot_bytes(), layout.ring_bytes()) << "every ring is kept";
    EXPECT_EQ(layout.largest_tokens_per_row(), 128);
    EXPECT_EQ(memory.outline.memory.stream_rows.size(), layout.streams.size());
    EXPECT_EQ(memory.outline.memory.ring_rows.size(), layout.rings.size());
    for (std::size_t i = 0; i < layout.streams.size(); ++i) {
      const RowEncoding& row = memory.outline.memory.stream_rows[i];
      EXPECT_EQ(row_bytes(row.format, row.width), layout.streams[i].row_bytes);
    }
    for (std::size_t i = 0; i < layout.rings.size(); ++i) {
      const RowEncoding& row = memory.outline.memory.ring_rows[i];
      EXPECT_EQ(row_bytes(row.format, row.width), layout.rings[i].row_bytes);
    }
  }
}

TEST(V4LayoutTest, HasWindowsOfEveryLayerAndHalvesOfOneBlock) {
  const V4Memory memory = make_v4_memory(config_of("v4_flash"), NumericsMode::kWide);
  const cache::KvLayout& layout = memory.outline.memory.layout;
  EXPECT_EQ(layout.ring_bytes(), 43U * 128 * 584 + 21U * 4 * (2 * 512 + 2 * 128) * 4);
  for (std::int64_t layer = 0; layer < 43; ++layer) {
    const auto at = static_cast<std::size_t>(layer);
    const LayerMemory& place = memory.layers[at];
    EXPECT_EQ(layout.rings[static_cast<std::size_t>(place.ring)].slots, 128);
    const bool is_chosen = layer >= 2 && layer % 2 == 0;
    EXPECT_EQ(place.rows >= 0, layer >= 2) << layer;
    EXPECT_EQ(place.index_keys >= 0, is_chosen) << layer;
    EXPECT_EQ(memory.block_rings[at] >= 0, is_chosen) << layer;
    if (!is_chosen) continue;
    EXPECT_EQ(layout.streams[static_cast<std::size_t>(place.index_keys)].part,
              cache::PagePart::kKeys);
    EXPECT_EQ(layout.rings[static_cast<std::size_t>(memory.block_rings[at])].slots, 4);
  }
}

TEST(V4LayoutTest, StartsWithoutRingsAreTakenFromTheShape) {
  const ModelShape shape = make_v4_memory(config_of("v4_flash"), NumericsMode::kWide).outline.shape;
  EXPECT_EQ(shape.boundary, shape.layer_count);
  EXPECT_EQ(shape.restart_tokens(), 43 * 127);
}

// The release's files hold 166.9 GB with the drafts.
TEST(V4BytesTest, EstimatesTheSizeOfTheRelease) {
  const WeightBytes bytes = estimate_v4_bytes(config_of("v4_flash"));
  EXPECT_EQ(bytes.experts, 43U * 256);
  EXPECT_EQ(bytes.token_experts, 43U * 6);
  EXPECT_TRUE(bytes.can_stream);
  const double total = static_cast<double>(bytes.dense) +
                       static_cast<double>(bytes.experts) * static_cast<double>(bytes.expert_read);
  EXPECT_NEAR(total, 155e9, 6e9);
}

}  // namespace
}  // namespace locket::model
