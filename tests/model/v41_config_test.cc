#include "model/generations/v41_config.h"

#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/file.h"
#include "tests/support/tiny_models.h"

namespace locket::model {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

ordered_json read_json(const std::filesystem::path& path) {
  const auto text = read_whole_file(path);
  if (!text) throw std::runtime_error(text.error().message);
  return ordered_json::parse(*text);
}

ordered_json released_json() {
  return read_json(std::filesystem::path(LOCKET_TEST_DATA) / "configs" / "v41_flash_config.json");
}

ordered_json tiny_json(const std::string& name) {
  return read_json(test_support::tiny_checkpoint(name) / "config.json");
}

Result<V41Config> read(const ordered_json& content) {
  const auto file = checkpoint::ConfigFile::parse(content.dump(), "config.json");
  if (!file) throw std::runtime_error(file.error().message);
  return read_v41_config(file->root());
}

V41Config config_of(const ordered_json& content) {
  Result<V41Config> config = read(content);
  if (!config) throw std::runtime_error(config.error().message);
  return std::move(*config);
}

// The released configuration's values that the program computes with.
TEST(V41ConfigTest, ReadsTheReleasedSizes) {
  const V41Config config = config_of(released_json());
  EXPECT_EQ(config.vocabulary_size, 129'280);
  EXPECT_EQ(config.hidden_size, 5'120);
  EXPECT_EQ(config.layer_count, 40);
  EXPECT_EQ(config.head_count, 64);
  EXPECT_EQ(config.head_dim, 512);
  EXPECT_EQ(config.rope_dim, 64);
  EXPECT_EQ(config.q_lora_rank, 1'280);
  EXPECT_EQ(config.o_lora_rank, 1'024);
  EXPECT_EQ(config.o_groups, 8);
  EXPECT_EQ(config.sliding_window, 128);
  EXPECT_EQ(config.max_positions, 1'048'576);
  EXPECT_EQ(config.rope_theta, 10'000.0);
  EXPECT_EQ(config.compress_rope_theta, 160'000.0);
  EXPECT_EQ(config.yarn.factor, 16.0);
  EXPECT_EQ(config.yarn.beta_fast, 32.0);
  EXPECT_EQ(config.yarn.beta_slow, 1.0);
  EXPECT_EQ(config.yarn.original_context, 65'536);
  EXPECT_EQ(config.rms_norm_eps, 1e-20f);
  EXPECT_EQ(config.swiglu_limit, 10.0f);
  EXPECT_EQ(config.expert_count, 384);
  EXPECT_EQ(config.experts_per_token, 6);
  EXPECT_EQ(config.expert_size, 2'304);
  EXPECT_EQ(config.routed_scaling_factor, 1.5f);
  EXPECT_EQ(config.index_head_count, 32);
  EXPECT_EQ(config.index_head_dim, 128);
  EXPECT_EQ(config.index_topk, 512);
  EXPECT_EQ(config.pool_blocks, 2'048);
  EXPECT_EQ(config.pool_block_size, 8);
  EXPECT_EQ(config.stream_count, 4);
  EXPECT_EQ(config.sinkhorn_iterations, 20);
  EXPECT_EQ(config.hc_eps, 1e-6f);
  EXPECT_EQ(config.engram_head_dim, 256);
  EXPECT_THAT(config.engram.layer_ids, ElementsAre(1, 14));
  EXPECT_THAT(config.engram.table_rows, ElementsAre(384'006'168, 384'016'682));
  EXPECT_EQ(config.engram.compressed_vocabulary_size, 99'092);
  EXPECT_EQ(config.draft_layer_count, 3);
  EXPECT_EQ(config.bos_token_id, 0);
  EXPECT_EQ(config.eos_token_id, 1);
}

TEST(V41ConfigTest, GivesTheReleasedLayersTheirRoles) {
  const V41Config config = config_of(released_json());
  EXPECT_EQ(config.boundary, 20);
  EXPECT_THAT(config.row_writers(), ElementsAre(2, 8, 14, 20));
  ASSERT_EQ(config.layers.size(), 40U);
  for (std::int64_t layer = 0; layer < 40; ++layer) {
    SCOPED_TRACE(layer);
    const LayerRole& role = config.layers[static_cast<std::size_t>(layer)];
    EXPECT_EQ(role.ratio, layer < 2 ? 0 : layer < 20 ? 2 : 1);
    const std::int64_t source = layer < 2 ? -1 : layer < 20 ? (layer - 2) / 6 * 6 + 2 : 20;
    EXPECT_EQ(role.kv_source, source);
    EXPECT_EQ(role.index_source, layer < 20 ? source : layer / 4 * 4);
    EXPECT_EQ(role.writes_rows, layer == source);
    EXPECT_EQ(role.selects_rows,
              layer >= 2 && (layer == source || (layer >= 20 && layer % 4 == 0)));
    EXPECT_EQ(role.builds_pool, layer == 20);
    EXPECT_EQ(role.uses_pool, layer > 20 && layer % 4 == 0);
    EXPECT_EQ(role.engram_index, layer == 1 ? 0 : layer == 14 ? 1 : -1);
  }
}

// Layer 3 chooses rows of its own from the memory that layer 1 writes.
TEST(V41ConfigTest, ALayerMaySelectRowsThatItDoesNotOwn) {
  const V41Config config = config_of(tiny_json("odd"));
  EXPECT_EQ(config.boundary, 4);
  EXPECT_THAT(config.row_writers(), ElementsAre(1, 4));
  const LayerRole& role = config.layers[3];
  EXPECT_FALSE(role.writes_rows);
  EXPECT_TRUE(role.selects_rows);
  EXPECT_FALSE(role.uses_pool);
  EXPECT_EQ(role.kv_source, 1);
  EXPECT_EQ(role.index_source, 3);
  EXPECT_EQ(config.layers[2].index_source, 1);
  EXPECT_EQ(config.layers[6].index_source, 5);
  EXPECT_TRUE(config.layers[5].uses_pool);
}

TEST(V41ConfigTest, KnownFilesHaveNoUnknownKeys) {
  for (const std::string name : {"micro", "odd", "thin", "released"}) {
    const ordered_json content = name == "released" ? released_json() : tiny_json(name);
    const auto file = checkpoint::ConfigFile::parse(content.dump(), "config.json");
    ASSERT_TRUE(read_v41_config(file->root())) << name;
    EXPECT_THAT(file->root().unread_keys(), ElementsAre()) << name;
  }
}

TEST(V41ConfigTest, UnknownKeysAreListedAndIgnored) {
  ordered_json content = tiny_json("micro");
  content["transformers_version"] = "5.0";
  content["text_config"]["gate_temperature"] = 2;
  content["text_config"]["rope_scaling"]["attention_factor"] = 1;
  const auto file = checkpoint::ConfigFile::parse(content.dump(), "config.json");
  EXPECT_TRUE(read_v41_config(file->root()));
  EXPECT_THAT(file->root().unread_keys(),
              ElementsAre("text_config.rope_scaling.attention_factor",
                          "text_config.gate_temperature", "transformers_version"));
}

TEST(V41ConfigTest, TokenIdsMayStandInTheTextConfig) {
  ordered_json content = tiny_json("micro");
  for (const char* key : {"bos_token_id", "eos_token_id", "pad_token_id"}) {
    content["text_config"][key] = content[key].get<int>() + 7;
    content.erase(key);
  }
  const V41Config config = config_of(content);
  EXPECT_EQ(config.bos_token_id, 7);
  EXPECT_EQ(config.eos_token_id, 8);
}

TEST(V41ConfigTest, AModelWithoutQuantizationConfigIsTaken) {
  ordered_json content = tiny_json("micro");
  content.erase("quantization_config");
  EXPECT_TRUE(read(content));
}

TEST(V41ConfigTest, YarnMayBeOff) {
  ordered_json content = tiny_json("micro");
  content["text_config"]["rope_scaling"]["original_max_position_embeddings"] = 0;
  EXPECT_EQ(config_of(content).yarn.original_context, 0);
}

TEST(V41ConfigTest, EveryMissingKeyIsNamed) {
  const ordered_json whole = tiny_json("micro");
  std::size_t refused = 0;
  for (const auto& [key, value] : whole["text_config"].items()) {
    ordered_json content = whole;
    content["text_config"].erase(key);
    const Result<V41Config> config = read(content);
    if (key.starts_with("dspark_")) {
      EXPECT_TRUE(config) << key << " belongs to the drafts";
      continue;
    }
    ASSERT_FALSE(config) << key;
    EXPECT_EQ(config.error().code, ErrorCode::kBadCheckpoint);
    EXPECT_THAT(config.error().message, HasSubstr("text_config." + key + " is missing"));
    ++refused;
  }
  EXPECT_EQ(refused, 49U);
  for (const auto& [key, value] : whole["text_config"]["rope_scaling"].items()) {
    ordered_json content = whole;
    content["text_config"]["rope_scaling"].erase(key);
    const Result<V41Config> config = read(content);
    ASSERT_FALSE(config) << key;
    EXPECT_THAT(config.error().message, HasSubstr("rope_scaling." + key + " is missing"));
  }
}

struct Refusal {
  const char* path;  // JSON pointer
  json value;
  ErrorCode code;
  std::string words;  // of the message
};

void expect_refusals(const std::vector<Refusal>& refusals) {
  for (const Refusal& refusal : refusals) {
    SCOPED_TRACE(std::string(refusal.path) + " = " + refusal.value.dump());
    ordered_json content = tiny_json("micro");
    const ordered_json::json_pointer place(refusal.path);
    ASSERT_TRUE(content.contains(place));
    content[place] = refusal.value;
    const Result<V41Config> config = read(content);
    ASSERT_FALSE(config);
    EXPECT_EQ(error_code_name(config.error().code), error_code_name(refusal.code));
    EXPECT_THAT(config.error().message, HasSubstr("config.json: "));
    EXPECT_THAT(config.error().message, HasSubstr(refusal.words));
  }
}

TEST(V41ConfigTest, RefusesValuesThatItDoesNotKnow) {
  constexpr ErrorCode kUnknown = ErrorCode::kUnsupported;
  constexpr ErrorCode kBad = ErrorCode::kBadCheckpoint;
  expect_refusals({
      {"/model_type", "deepseek_v4", kUnknown, "(one of deepseek_v41 is needed)"},
      {"/text_config/model_type", "llama", kUnknown, "text_config.model_type"},
      {"/text_config/hidden_act", "gelu", kUnknown, "text_config.hidden_act"},
      {"/text_config/scoring_func", "sigmoid", kUnknown, "text_config.scoring_func"},
      {"/text_config/topk_method", "greedy", kUnknown, "text_config.topk_method"},
      {"/text_config/norm_topk_prob", false, kBad, "text_config.norm_topk_prob is false (true is"},
      {"/text_config/tie_word_embeddings", true, kBad, "text_config.tie_word_embeddings is true"},
      {"/text_config/num_key_value_heads", 2, kBad, "text_config.num_key_value_heads is 2 (1 is"},
      {"/text_config/n_shared_experts", 0, kBad, "text_config.n_shared_experts is 0"},
      {"/text_config/rope_scaling/rope_type", "linear", kUnknown, "rope_scaling.rope_type"},
      {"/quantization_config/quant_method", "gptq", kUnknown, "quantization_config.quant_method"},
      {"/quantization_config/activation_scheme", "static", kUnknown, "activation_scheme"},
      {"/quantization_config/scale_fmt", "float", kUnknown, "scale_fmt"},
      {"/quantization_config/expert_dtype", "fp8", kUnknown, "expert_dtype"},
      {"/quantization_config/weight_block_size", json{128, 128}, kBad,
       "quantization_config.weight_block_size"},
  });
}

TEST(V41ConfigTest, RefusesSizesThatDoNotFit) {
  constexpr ErrorCode kBad = ErrorCode::kBadCheckpoint;
  expect_refusals({
      {"/text_config/vocab_size", 0, kBad, "text_config.vocab_size is 0"},
      {"/text_config/vocab_size", std::int64_t{1} << 31, kBad, "text_config.vocab_size"},
      {"/text_config/hidden_size", 100, kBad, "hidden_size is 100 (a multiple of 32 is needed)"},
      {"/text_config/hidden_size", std::int64_t{1} << 40, kBad, "text_config.hidden_size"},
      {"/text_config/hidden_size", "128", kBad, "text_config.hidden_size"},
      {"/text_config/num_hidden_layers", -1, kBad, "text_config.num_hidden_layers"},
      {"/text_config/q_lora_rank", 48, kBad, "text_config.q_lora_rank"},
      {"/text_config/head_dim", 72, kBad, "text_config.head_dim"},
      {"/text_config/index_head_dim", 40, kBad, "text_config.index_head_dim"},
      {"/text_config/moe_intermediate_size", 80, kBad, "text_config.moe_intermediate_size"},
      {"/text_config/o_lora_rank", 16, kBad, "text_config.o_lora_rank"},
      {"/text_config/qk_rope_head_dim", 15, kBad, "text_config.qk_rope_head_dim is 15"},
      {"/text_config/qk_rope_head_dim", 34, kBad, "at most head_dim and index_head_dim"},
      {"/text_config/o_groups", 3, kBad, "a divisor of num_attention_heads"},
      {"/text_config/num_experts_per_tok", 9, kBad, "at most n_routed_experts"},
      {"/text_config/index_topk", 14, kBad, "text_config.index_topk is 14 (at most 13"},
      {"/text_config/sliding_window", 0, kBad, "text_config.sliding_window"},
      {"/text_config/rms_norm_eps", 0, kBad, "rms_norm_eps is 0 (a number above 0 is needed)"},
      {"/text_config/hc_eps", -1e-6, kBad, "text_config.hc_eps"},
      {"/text_config/swiglu_limit", 0, kBad, "text_config.swiglu_limit"},
      {"/text_config/routed_scaling_factor", 0, kBad, "text_config.routed_scaling_factor"},
      {"/text_config/rope_theta", 1, kBad, "text_config.rope_theta"},
      {"/text_config/compress_rope_theta", 0.5, kBad, "text_config.compress_rope_theta"},
      {"/text_config/rope_scaling/factor", 0, kBad, "rope_scaling.factor"},
      {"/text_config/rope_scaling/beta_fast", 0, kBad, "rope_scaling.beta_fast"},
      {"/text_config/rope_scaling/beta_slow", -1, kBad, "rope_scaling.beta_slow"},
      {"/text_config/rope_scaling/original_max_position_embeddings", -1, kBad,
       "original_max_position_embeddings"},
      {"/text_config/engram_head_dim", 16, kBad, "text_config.engram_head_dim"},
      {"/text_config/engram_head_dim", 0, kBad, "text_config.engram_head_dim"},
      {"/bos_token_id", -1, kBad, "bos_token_id"},
  });
}

// Layers: ratios 0 0 2 2 2 2 1 1 1 1 (0 0 of drafts), KV sources 2 4 6, index sources 2 4 6 8.
TEST(V41ConfigTest, RefusesLayersWithoutASource) {
  constexpr ErrorCode kBad = ErrorCode::kBadCheckpoint;
  expect_refusals({
      {"/text_config/compress_ratios", json{0, 0, 2}, kBad, "one entry per layer, 10, or 12"},
      {"/text_config/compress_ratios/3", 3, kBad, "a divisor of 128"},
      {"/text_config/compress_ratios/3", -2, kBad, "for layer 3"},
      {"/text_config/compress_ratios/3", 4, kBad, "for layer 3 with ratio 4"},
      {"/text_config/compress_ratios/1", 2, kBad, "for layer 1 with ratio 2"},
      {"/text_config/compress_ratios/4", 0, kBad, "layer 4, which is a source"},
      {"/text_config/kv_source_layer_ids", json::array(), kBad, "at least one layer"},
      {"/text_config/kv_source_layer_ids", json{2, 4, 4}, kBad, "ascending layer numbers below 10"},
      {"/text_config/kv_source_layer_ids", json{2, 4, 10}, kBad, "kv_source_layer_ids"},
      {"/text_config/kv_source_layer_ids", json{-1, 4, 6}, kBad, "kv_source_layer_ids"},
      {"/text_config/kv_source_layer_ids", json{2, 4}, kBad, "candidate_source_layer_id is 6"},
      {"/text_config/index_source_layer_ids", json{2, 6, 8}, kBad, "layer 4, which writes rows"},
      {"/text_config/index_source_layer_ids", json{2, 4, 8}, kBad, "candidate_source_layer_id"},
      {"/text_config/index_source_layer_ids", json{8, 6, 4, 2}, kBad, "index_source_layer_ids"},
      {"/text_config/index_source_layer_ids", json{1, 2, 4, 6, 8}, kBad,
       "layer 1, which is a source"},
      {"/text_config/candidate_source_layer_id", 4, kBad, "layer 6, the last KV source"},
      {"/text_config/candidate_source_layer_id", 8, kBad, "candidate_source_layer_id is 8"},
      {"/text_config/engram_layer_ids", json{1, 12}, kBad, "engram_layer_ids"},
  });
}

TEST(V41ConfigTest, RatiosMayLeaveTheDraftLayersOut) {
  ordered_json content = tiny_json("micro");
  content["text_config"]["compress_ratios"] = {0, 0, 2, 2, 2, 2, 1, 1, 1, 1};
  EXPECT_TRUE(read(content));
}

}  // namespace
}  // namespace locket::model
