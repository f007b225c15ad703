// Configs of V2, V2-Lite, V3 and V3.2: the released sizes, what the memory costs with them, and
// what is refused.
#include "model/generations/mla_config.h"

#include <filesystem>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>

#include "base/file.h"
#include "model/generations/generation.h"

namespace locket::model {
namespace {

using nlohmann::ordered_json;
using ::testing::HasSubstr;

// The tiny checkpoint's config, whose keys and choices are those of the release.
ordered_json tiny_json(const std::string& generation) {
  const auto text = read_whole_file(std::filesystem::path(LOCKET_TEST_DATA) / "oracle" / "lineage" /
                                    generation / "checkpoint" / "config.json");
  if (!text) throw std::runtime_error(text.error().message);
  return ordered_json::parse(*text);
}

ordered_json released_json(const std::string& generation) {
  ordered_json json = tiny_json(generation);
  ordered_json sizes = {{"num_hidden_layers", 61},
                        {"hidden_size", 7168},
                        {"num_attention_heads", 128},
                        {"num_key_value_heads", 128},
                        {"q_lora_rank", 1536},
                        {"kv_lora_rank", 512},
                        {"qk_nope_head_dim", 128},
                        {"qk_rope_head_dim", 64},
                        {"v_head_dim", 128},
                        {"intermediate_size", 18432},
                        {"first_k_dense_replace", 3},
                        {"n_routed_experts", 256},
                        {"num_experts_per_tok", 8},
                        {"moe_intermediate_size", 2048},
                        {"n_group", 8},
                        {"topk_group", 4},
                        {"vocab_size", 129280}};
  if (generation == "v2") {
    sizes.update(ordered_json{{"num_hidden_layers", 60},
                              {"hidden_size", 5120},
                              {"intermediate_size", 12288},
                              {"first_k_dense_replace", 1},
                              {"n_routed_experts", 160},
                              {"num_experts_per_tok", 6},
                              {"moe_intermediate_size", 1536},
                              {"topk_group", 3}});
  } else if (generation == "v2lite") {
    sizes.update(ordered_json{{"num_hidden_layers", 27},
                              {"hidden_size", 2048},
                              {"num_attention_heads", 16},
                              {"num_key_value_heads", 16},
                              {"q_lora_rank", nullptr},
                              {"intermediate_size", 10944},
                              {"first_k_dense_replace", 1},
                              {"n_routed_experts", 64},
                              {"num_experts_per_tok", 6},
                              {"moe_intermediate_size", 1408},
                              {"n_group", 1},
                              {"topk_group", 1}});
  } else if (generation == "v32") {
    sizes.update(
        ordered_json{{"index_n_heads", 64}, {"index_head_dim", 128}, {"index_topk", 2048}});
  }
  json.update(sizes);
  return json;
}

Result<ModelOutline> outline(const ordered_json& json, NumericsMode mode = NumericsMode::kWide) {
  const auto file = checkpoint::ConfigFile::parse(json.dump(), "config.json");
  if (!file) throw std::runtime_error(file.error().message);
  LOCKET_TRY(const Generation* generation, find_generation(file->root()));
  return generation->outline(file->root(), mode);
}

Result<MlaModelConfig> shared_keys(const ordered_json& json) {
  const auto file = checkpoint::ConfigFile::parse(json.dump(), "config.json");
  if (!file) throw std::runtime_error(file.error().message);
  return read_mla_config(file->root());
}

struct Released {
  std::string json;
  std::string generation;
  double bytes_per_token;
};

TEST(MlaConfigTest, TheReleasedModelsKeepTheirBytesPerToken) {
  const Released all[] = {{"v2", "V2", 69'120},
                          {"v2lite", "V2", 31'104},
                          {"v3", "V3", 70'272},
                          {"v32", "V3.2", 48'068}};
  for (const Released& released : all) {
    const auto found = outline(released_json(released.json));
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_EQ(found->shape.generation, released.generation);
    EXPECT_DOUBLE_EQ(found->memory.layout.bytes_per_token(), released.bytes_per_token)
        << released.json;
    EXPECT_EQ(found->shape.boundary, found->shape.layer_count);
    EXPECT_EQ(found->shape.restart_tokens(), 0);
    EXPECT_TRUE(found->memory.layout.rings.empty());
    EXPECT_EQ(found->memory.stream_rows.size(), found->memory.layout.streams.size());
  }
}

TEST(MlaConfigTest, PlainModeKeepsFloat32) {
  const auto found = outline(released_json("v32"), NumericsMode::kPlain);
  ASSERT_TRUE(found);
  EXPECT_DOUBLE_EQ(found->memory.layout.bytes_per_token(), 61 * (576 + 128) * 4);
}

TEST(MlaConfigTest, TheSoftmaxIsSharpenedByTheScaleOfTheRotations) {
  EXPECT_NEAR(shared_keys(released_json("v2"))->softmax_scale, 0.114721f, 1e-6f);
  EXPECT_NEAR(shared_keys(released_json("v2lite"))->softmax_scale, 0.114721f, 1e-6f);
  EXPECT_NEAR(shared_keys(released_json("v3"))->softmax_scale, 0.135234f, 1e-6f);
  ordered_json plain = released_json("v3");
  plain["rope_scaling"] = nullptr;
  EXPECT_NEAR(shared_keys(plain)->softmax_scale, 1.0f / std::sqrt(192.0f), 1e-7f);
  EXPECT_EQ(shared_keys(plain)->rotary.original_context, 0);
}

TEST(MlaConfigTest, QueriesWithoutALatentComeStraightFromTheInput) {
  EXPECT_EQ(shared_keys(released_json("v2"))->query_rank, 1'536);
  EXPECT_EQ(shared_keys(released_json("v2lite"))->query_rank, 0);
}

struct Refusal {
  std::string generation;
  std::function<void(ordered_json&)> change;
  std::string key;
  ErrorCode code = ErrorCode::kBadCheckpoint;
};

TEST(MlaConfigTest, ValuesThatAreNotThereAreRefusedByName) {
  const auto set = [](std::string key, ordered_json value) {
    return [key, value](ordered_json& json) { json[key] = value; };
  };
  const auto scaling = [](std::string key, ordered_json value) {
    return [key, value](ordered_json& json) { json["rope_scaling"][key] = value; };
  };
  const Refusal all[] = {
      {"v2", set("hidden_act", "gelu"), "hidden_act", ErrorCode::kUnsupported},
      {"v2", set("attention_bias", true), "attention_bias", ErrorCode::kUnsupported},
      {"v2", set("tie_word_embeddings", true), "tie_word_embeddings", ErrorCode::kUnsupported},
      {"v2", set("moe_layer_freq", 2), "moe_layer_freq", ErrorCode::kUnsupported},
      {"v2", set("num_key_value_heads", 2), "num_key_value_heads", ErrorCode::kUnsupported},
      {"v2", set("scoring_func", "sigmoid"), "scoring_func", ErrorCode::kUnsupported},
      {"v2", set("topk_method", "noaux_tc"), "topk_method", ErrorCode::kUnsupported},
      {"v2", set("norm_topk_prob", true), "norm_topk_prob", ErrorCode::kUnsupported},
      {"v2", set("qk_rope_head_dim", 15), "qk_rope_head_dim"},
      {"v2", set("num_experts_per_tok", 17), "num_experts_per_tok"},
      {"v2", set("n_group", 3), "n_group"},
      {"v2", set("topk_group", 5), "topk_group"},
      {"v2", set("first_k_dense_replace", 4), "first_k_dense_replace", ErrorCode::kUnsupported},
      {"v2", set("rms_norm_eps", 0), "rms_norm_eps"},
      {"v2", set("rope_theta", 1), "rope_theta"},
      {"v2", scaling("type", "linear"), "rope_scaling.type", ErrorCode::kUnsupported},
      {"v2", scaling("mscale", 1.0), "rope_scaling.mscale", ErrorCode::kUnsupported},
      {"v2", scaling("factor", -1), "rope_scaling.factor"},
      {"v2", set("quantization_config", {{"quant_method", "fp8"}}), "quantization_config",
       ErrorCode::kUnsupported},
      {"v3", set("scoring_func", "softmax"), "scoring_func", ErrorCode::kUnsupported},
      {"v3", set("topk_method", "greedy"), "topk_method", ErrorCode::kUnsupported},
      {"v3", set("norm_topk_prob", false), "norm_topk_prob", ErrorCode::kUnsupported},
      {"v3", set("n_group", 16), "n_group"},
      {"v3",
       [](ordered_json& json) {
         json["quantization_config"]["weight_block_size"] = {64, 128};
       },
       "quantization_config.weight_block_size", ErrorCode::kUnsupported},
      {"v32", set("index_head_dim", 48), "index_head_dim"},
      {"v32", set("index_head_dim", 8), "index_head_dim"},
      {"v32", set("q_lora_rank", nullptr), "q_lora_rank", ErrorCode::kUnsupported}};
  for (const Refusal& refusal : all) {
    ordered_json json = tiny_json(refusal.generation);
    refusal.change(json);
    const auto found = outline(json);
    ASSERT_FALSE(found) << refusal.generation << " " << refusal.key;
    EXPECT_THAT(found.error().message, HasSubstr(refusal.key));
    EXPECT_EQ(found.error().code, refusal.code) << found.error().message;
  }
}

TEST(MlaConfigTest, MissingKeysAreNamed) {
  for (const std::string generation : {"v2", "v3", "v32"}) {
    const ordered_json whole = tiny_json(generation);
    for (const std::string key : {"hidden_size", "kv_lora_rank", "topk_method", "rope_theta",
                                  "n_shared_experts", "norm_topk_prob"}) {
      ordered_json json = whole;
      json.erase(key);
      const auto found = outline(json);
      ASSERT_FALSE(found) << generation << " without " << key;
      EXPECT_THAT(found.error().message, HasSubstr(key));
    }
  }
}

TEST(MlaConfigTest, BytesFromTheConfigComeNearThoseOfTheCheckpoint) {
  for (const std::string name : {"v2", "v2lite", "v3", "v32"}) {
    auto checkpoint = checkpoint::Checkpoint::open(std::filesystem::path(LOCKET_TEST_DATA) /
                                                   "oracle" / "lineage" / name / "checkpoint");
    ASSERT_TRUE(checkpoint) << checkpoint.error().message;
    const auto root = checkpoint->config().root();
    const auto generation = find_generation(root);
    ASSERT_TRUE(generation);
    const auto counted = (*generation)->count_bytes(root, &*checkpoint);
    const auto estimated = (*generation)->count_bytes(root, nullptr);
    ASSERT_TRUE(counted && estimated);
    EXPECT_TRUE(estimated->is_estimate && !counted->is_estimate);
    EXPECT_EQ(counted->experts, estimated->experts);
    EXPECT_EQ(counted->token_experts, estimated->token_experts);
    EXPECT_FALSE(counted->can_stream);
    const auto near = [&](std::uint64_t a, std::uint64_t b) {
      EXPECT_LT(a, b + b / 2) << name;
      EXPECT_LT(b, a + a / 2) << name;
    };
    near(counted->dense, estimated->dense);
    near(counted->token_dense, estimated->token_dense);
    near(counted->expert, estimated->expert);
    const auto checked = (*generation)->check(*checkpoint);
    ASSERT_TRUE(checked) << checked.error().message;
  }
}

TEST(MlaConfigTest, EstimatesOfTheReleasesHaveTheirSize) {
  const auto file = checkpoint::ConfigFile::parse(released_json("v3").dump(), "config.json");
  const auto generation = find_generation(file->root());
  const auto bytes = (*generation)->count_bytes(file->root(), nullptr);
  ASSERT_TRUE(bytes);
  EXPECT_EQ(bytes->experts, 58U * 256);
  EXPECT_EQ(bytes->token_experts, 58U * 8);
  // 671 billion weights, most of them one byte; matrices fill whole large pages.
  const double total = static_cast<double>(bytes->dense) +
                       static_cast<double>(bytes->experts) * static_cast<double>(bytes->expert);
  EXPECT_GT(total, 671e9);
  EXPECT_LT(total, 800e9);
}

}  // namespace
}  // namespace locket::model
