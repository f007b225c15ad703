// The config of V1: what is read, what has a published default, and what is refused.
#include "model/generations/v1_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>

#include "model/generations/generation.h"
#include "model/generations/v1.h"

namespace locket::model {
namespace {

using ::testing::HasSubstr;

const std::string k67b =
    R"("architectures": ["LlamaForCausalLM"], "bos_token_id": 100000, "eos_token_id": 100001,
       "hidden_act": "silu", "hidden_size": 8192, "intermediate_size": 22016,
       "max_position_embeddings": 4096, "model_type": "llama", "num_attention_heads": 64,
       "num_hidden_layers": 95, "num_key_value_heads": 8, "rms_norm_eps": 1e-06,
       "rope_scaling": null, "torch_dtype": "bfloat16", "vocab_size": 102400)";

Result<V1Config> read(const std::string& members) {
  const auto file = checkpoint::ConfigFile::parse("{" + members + "}", "config.json");
  EXPECT_TRUE(file) << file.error().message;
  return read_v1_config(file->root());
}

Error refused(const std::string& members) {
  const auto config = read(members);
  EXPECT_FALSE(config) << members;
  return config ? Error{} : config.error();
}

// `k67b` with another value of a key.
std::string with(const std::string& key, const std::string& value) {
  std::string text = k67b;
  const std::size_t at = text.find("\"" + key + "\"");
  if (at == text.npos) return text + ", \"" + key + "\": " + value;
  const std::size_t begin = text.find(':', at) + 1;
  const std::size_t end = std::min(text.find(',', begin), text.size());
  return text.replace(begin, end - begin, value);
}

TEST(V1ConfigTest, TheReleaseIsRead) {
  const auto config = read(k67b);
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->layer_count, 95);
  EXPECT_EQ(config->head_dim, 128);
  EXPECT_EQ(config->kv_head_count, 8);
  EXPECT_EQ(config->rope_theta, 10000);
  EXPECT_FALSE(config->ties_embeddings);
  EXPECT_EQ(config->eos_token_id, 100001);
}

TEST(V1ConfigTest, TheMemoryOfTheReleasesIsThePublishedOne) {
  EXPECT_EQ(outline_v1(*read(k67b), NumericsMode::kWide).memory.layout.bytes_per_token(), 389120);
  auto small = *read(k67b);
  small.layer_count = 30;
  small.kv_head_count = small.head_count = 32;
  const ModelOutline outline = outline_v1(small, NumericsMode::kWide);
  EXPECT_EQ(outline.memory.layout.bytes_per_token(), 491520);
  EXPECT_EQ(outline.shape.restart_tokens(), 0);
}

TEST(V1ConfigTest, NewerKeysAreRead) {
  EXPECT_EQ(read(with("rope_theta", "100000.0"))->rope_theta, 100000);
  EXPECT_EQ(
      read(with("rope_parameters", R"({"rope_type": "default", "rope_theta": 5e5})"))->rope_theta,
      500000);
  EXPECT_TRUE(read(with("tie_word_embeddings", "true"))->ties_embeddings);
  EXPECT_EQ(read(with("head_dim", "64"))->head_dim, 64);
  EXPECT_EQ(read(with("bos_token_id", "null"))->bos_token_id, -1);
}

TEST(V1ConfigTest, WhatWouldChangeTheComputationIsRefused) {
  const std::pair<std::string, std::string> unsupported[] = {
      {"hidden_act", "\"gelu\""},
      {"attention_bias", "true"},
      {"mlp_bias", "true"},
      {"rope_scaling", R"({"type": "linear"})"},
      {"rope_parameters", R"({"rope_type": "llama3"})"},
      {"quantization_config", "{}"},
      {"model_type", "\"mistral\""}};
  for (const auto& [key, value] : unsupported) {
    const Error error = refused(with(key, value));
    EXPECT_EQ(error.code, ErrorCode::kUnsupported) << error.message;
    EXPECT_THAT(error.message, HasSubstr(key == "rope_parameters" ? "rope_type" : key));
  }
}

TEST(V1ConfigTest, SizesThatDoNotFitAreRefused) {
  const std::pair<std::string, std::string> bad[] = {
      {"num_key_value_heads", "7"},  {"num_attention_heads", "0"}, {"vocab_size", "-1"},
      {"hidden_size", "\"wide\""},   {"rms_norm_eps", "0"},        {"rope_theta", "1"},
      {"intermediate_size", "null"}, {"num_attention_heads", "24"}};
  for (const auto& [key, value] : bad) {
    const Error error = refused(with(key, value));
    EXPECT_EQ(error.code, ErrorCode::kBadCheckpoint) << error.message;
    EXPECT_THAT(error.message, HasSubstr("config.json: ")) << key;
  }
}

TEST(V1ConfigTest, OnlyTheModesWithVectorsAreThere) {
  const auto file = checkpoint::ConfigFile::parse("{" + k67b + "}", "config.json");
  const auto generation = find_generation(file->root());
  ASSERT_TRUE(generation) << generation.error().message;
  EXPECT_EQ((*generation)->name, "V1");
  EXPECT_EQ(choose_mode(**generation, std::nullopt), NumericsMode::kWide);
  EXPECT_FALSE(choose_mode(**generation, NumericsMode::kReference));
  const auto bytes = (*generation)->count_bytes(file->root(), nullptr);
  ASSERT_TRUE(bytes);
  // 67 billion weights in BF16.
  EXPECT_NEAR(static_cast<double>(bytes->dense), 2 * 67.4e9, 0.2e9);
}

}  // namespace
}  // namespace locket::model
