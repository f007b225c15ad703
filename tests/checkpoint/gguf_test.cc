// GGUF files: every number format against the values that the package gguf (PyPI) decodes, the
// order of rows, the config, and files that are broken in every way.
#include "checkpoint/gguf.h"

#include <algorithm>
#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "base/file.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/gguf_blocks.h"
#include "checkpoint/model_config.h"
#include "tests/support/checkpoint_files.h"
#include "tests/support/gguf_text.h"
#include "tokenizer/tokenizer.h"

namespace locket::checkpoint {
namespace {

namespace fs = std::filesystem;
using test_support::gguf_bytes;
using test_support::gguf_string;
using test_support::GgufText;
using test_support::TempFolder;
using ::testing::HasSubstr;

constexpr std::uint32_t kF32 = 0;

fs::path data(const std::string& name) { return fs::path(LOCKET_TEST_DATA) / "gguf" / name; }

std::vector<float> floats_of(const GgufFile& file, const TensorEntry& entry) {
  const auto bytes = file.read(entry);
  EXPECT_TRUE(bytes) << bytes.error().message;
  std::vector<float> values(bytes->size() / (entry.dtype == numerics::Dtype::kBf16 ? 2 : 4));
  if (entry.dtype == numerics::Dtype::kBf16) {
    decode_gguf(GgufType::kBf16, bytes->bytes(), values);
  } else {
    std::memcpy(values.data(), bytes->data(), bytes->size());
  }
  return values;
}

// As the converter of llama.cpp stores query and key rows: per head [2, half] becomes [half, 2].
std::vector<float> paired(const std::vector<float>& values, std::size_t columns, std::size_t dim) {
  std::vector<float> result;
  const std::size_t rows = values.size() / columns;
  for (std::size_t row = 0; row < rows; ++row) {
    const std::size_t in_head = row % dim;
    const std::size_t source = row - in_head + in_head % 2 * (dim / 2) + in_head / 2;
    const auto* const begin = values.data() + source * columns;
    result.insert(result.end(), begin, begin + columns);
  }
  return result;
}

// A file with one layer of zeros.
GgufText small_model(const GgufText::Sizes& sizes = {}) {
  GgufText text;
  text.add_llama(sizes);
  const auto add = [&](const std::string& name, const std::vector<std::uint64_t>& extents) {
    std::uint64_t values = 1;
    for (const std::uint64_t extent : extents) values *= extent;
    text.add_tensor(name, extents, kF32, std::string(values * 4, '\0'));
  };
  add("token_embd.weight", {8, 16});
  add("output_norm.weight", {8});
  add("blk.0.attn_q.weight", {8, 8});
  add("blk.0.attn_k.weight", {8, 4});
  return text;
}

// Some file systems wait for the disk when an old file is overwritten.
fs::path write_anew(const TempFolder& folder, const std::string& content) {
  fs::remove(folder / "x.gguf");
  return folder.write("x.gguf", content);
}

std::string error_of(const TempFolder& folder, const std::string& content,
                     ErrorCode code = ErrorCode::kBadCheckpoint) {
  const auto file = GgufFile::open(write_anew(folder, content));
  if (file) return "opened";
  EXPECT_EQ(file.error().code, code) << file.error().message;
  EXPECT_THAT(file.error().message, HasSubstr("x.gguf"));
  return file.error().message;
}

TEST(GgufTest, EveryNumberFormatDecodesToThePublishedValues) {
  const auto file = GgufFile::open(data("tiny.gguf"));
  ASSERT_TRUE(file) << file.error().message;
  const auto text = read_whole_file(data("tiny.json"));
  ASSERT_TRUE(text);
  const nlohmann::json digests = nlohmann::json::parse(*text);
  const std::map<std::string, std::string> names = {
      {"token_embd", "model.embed_tokens"}, {"output_norm", "model.norm"},
      {"attn_norm", "input_layernorm"},     {"ffn_norm", "post_attention_layernorm"},
      {"attn_q", "self_attn.q_proj"},       {"attn_k", "self_attn.k_proj"},
      {"attn_v", "self_attn.v_proj"},       {"attn_output", "self_attn.o_proj"},
      {"ffn_gate", "mlp.gate_proj"},        {"ffn_up", "mlp.up_proj"},
      {"ffn_down", "mlp.down_proj"}};
  std::set<std::string> formats;
  for (const auto& [name, expected] : digests.items()) {
    const bool in_layer = name.starts_with("blk.");
    const std::string layer = in_layer ? "model.layers." + name.substr(4, 2) : "";
    std::string rest = in_layer ? name.substr(6) : name;
    rest.resize(rest.size() - std::string_view(".weight").size());
    const std::string released = layer + names.at(rest) + ".weight";
    const auto entry = std::ranges::find(file->tensors(), released, &TensorEntry::name);
    ASSERT_NE(entry, file->tensors().end()) << released;
    std::vector<float> values = floats_of(*file, *entry);
    const auto columns = expected["columns"].get<std::size_t>();
    ASSERT_EQ(values.size(), columns * expected["rows"].get<std::size_t>());
    if (rest == "attn_q" || rest == "attn_k") values = paired(values, columns, 32);
    EXPECT_EQ(to_hex(sha256(std::as_bytes(std::span(values)))),
              expected["sha256"].get<std::string>())
        << name << " " << expected["type"];
    formats.insert(expected["type"].get<std::string>());
  }
  EXPECT_EQ(formats.size(), static_cast<std::size_t>(GgufType::kCount));
}

TEST(GgufTest, CodesAndScalesAreTheSameValues) {
  const auto file = GgufFile::open(data("tiny.gguf"));
  ASSERT_TRUE(file);
  std::set<unsigned> seen;
  for (const TensorEntry& entry : file->tensors()) {
    const unsigned bits = file->code_bits(entry);
    seen.insert(bits);
    if (bits == 0) continue;
    const std::vector<float> values = floats_of(*file, entry);
    std::vector<std::byte> codes(values.size() * bits / 8);
    std::vector<float> scales(values.size() / 16);
    ASSERT_TRUE(file->read_codes(entry, codes, scales));
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto byte = std::to_integer<unsigned>(codes[i * bits / 8]);
      const unsigned code = bits == 8 ? byte : byte >> (i % 2 * 4) & 15;
      ASSERT_EQ(static_cast<float>(code) * scales[i / 32 * 2] + scales[i / 32 * 2 + 1], values[i])
          << entry.name << " value " << i;
    }
  }
  EXPECT_EQ(seen, (std::set<unsigned>{0, 4, 8}));
}

TEST(GgufTest, APartOfATensorIsThatPartOfTheWhole) {
  const auto file = GgufFile::open(data("tiny.gguf"));
  ASSERT_TRUE(file);
  std::mt19937 random(3);
  for (const TensorEntry& entry : file->tensors()) {
    const auto whole = file->read(entry);
    ASSERT_TRUE(whole);
    for (int i = 0; i < 20; ++i) {
      const std::size_t first = random() % whole->size();
      std::vector<std::byte> part(1 + random() % (whole->size() - first));
      ASSERT_TRUE(file->read_range(entry, first, part));
      EXPECT_TRUE(std::ranges::equal(part, whole->bytes().subspan(first, part.size())))
          << entry.name << " from byte " << first;
    }
  }
}

TEST(GgufTest, KeysBecomeTheConfigOfARelease) {
  const auto config = open_model_config(data("tiny.gguf"));
  ASSERT_TRUE(config) << config.error().message;
  const ConfigObject root = config->root();
  EXPECT_EQ(root.string("model_type"), "llama");
  EXPECT_EQ(root.integer("hidden_size"), 256);
  EXPECT_EQ(root.integer("num_hidden_layers"), 2);
  EXPECT_EQ(root.integer("num_attention_heads"), 4);
  EXPECT_EQ(root.integer("num_key_value_heads"), 2);
  EXPECT_EQ(root.integer("head_dim"), 32);
  EXPECT_EQ(root.integer("intermediate_size"), 32);
  EXPECT_EQ(root.integer("max_position_embeddings"), 512);
  EXPECT_EQ(root.integer("vocab_size"), 264);
  EXPECT_EQ(root.integer("bos_token_id"), 261);
  EXPECT_EQ(root.integer("eos_token_id"), 262);
  EXPECT_EQ(root.boolean("tie_word_embeddings"), true);
  EXPECT_EQ(root.number("rope_theta"), 100000.0);
  EXPECT_EQ(static_cast<float>(root.number("rms_norm_eps").value()), 1e-5f);
}

TEST(GgufTest, OpensAsACheckpointWithReleasedNames) {
  auto checkpoint = Checkpoint::open(data("tiny.gguf"));
  ASSERT_TRUE(checkpoint) << checkpoint.error().message;
  ASSERT_NE(checkpoint->gguf(), nullptr);
  EXPECT_TRUE(checkpoint->files().empty());
  EXPECT_EQ(checkpoint->folder(), data("tiny.gguf"));
  const auto tensor =
      checkpoint->require("model.layers.0.self_attn.q_proj.weight",
                          {numerics::Dtype::kBf16, numerics::Dtype::kF32}, {128, 256});
  ASSERT_TRUE(tensor) << tensor.error().message;
  EXPECT_EQ(tensor->byte_count(), 128U * 256 * 4);
  const auto missing = checkpoint->require("lm_head.weight", numerics::Dtype::kF32, {264, 256});
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message, HasSubstr("tiny.gguf"));
}

TEST(GgufTest, AFileIsOneByItsName) {
  const TempFolder folder;
  EXPECT_TRUE(is_gguf_file(folder.write("a.gguf", "")));
  EXPECT_FALSE(is_gguf_file(folder.write("a.bin", "GGUF")));
  EXPECT_FALSE(is_gguf_file(folder.path()));
  EXPECT_FALSE(is_gguf_file(folder / "absent.gguf"));
}

TEST(GgufTest, TheSmallestModelOpens) {
  const TempFolder folder;
  const auto file = GgufFile::open(folder.write("x.gguf", small_model().text()));
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->tensors().size(), 4U);
  const auto second = GgufFile::open(folder.write("y.gguf", small_model().text(2)));
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_NE(file->header_digest(), second->header_digest());
}

TEST(GgufTest, OtherFilesAndVersionsAreRefused) {
  const TempFolder folder;
  EXPECT_THAT(error_of(folder, ""), HasSubstr("ends after 0 bytes"));
  EXPECT_THAT(error_of(folder, "GGML0123456789012345678901234567"), HasSubstr("no GGUF file"));
  EXPECT_THAT(error_of(folder, small_model().text(1), ErrorCode::kUnsupported),
              HasSubstr("GGUF version 1"));
  EXPECT_THAT(error_of(folder, small_model().text(0x03000000), ErrorCode::kUnsupported),
              HasSubstr("little-endian"));
}

TEST(GgufTest, EveryTruncationIsAnError) {
  const TempFolder folder;
  const std::string whole = small_model().text();
  // The last tensor is padded by nothing, so every byte counts.
  for (std::size_t size = 0; size < whole.size(); size += size < 700 ? 1 : 13) {
    const auto file = GgufFile::open(write_anew(folder, whole.substr(0, size)));
    ASSERT_FALSE(file) << size << " of " << whole.size() << " bytes";
  }
}

TEST(GgufTest, CountsBeyondTheFileAreRefused) {
  const TempFolder folder;
  const std::string start = "GGUF" + gguf_bytes<std::uint32_t>(3);
  const auto huge = gguf_bytes<std::uint64_t>(std::uint64_t{1} << 62);
  const auto one = gguf_bytes<std::uint64_t>(1);
  const auto none = gguf_bytes<std::uint64_t>(0);
  EXPECT_THAT(error_of(folder, start + huge + one), HasSubstr("tensors are announced"));
  EXPECT_THAT(error_of(folder, start + none + huge), HasSubstr("keys are announced"));
  EXPECT_THAT(error_of(folder, start + none + one + huge + "key with a length of 2^62"),
              HasSubstr("bytes of a string are announced"));
  GgufText list;
  list.add_raw("a.list", 9, gguf_bytes<std::uint32_t>(8) + huge);
  EXPECT_THAT(error_of(folder, list.text()), HasSubstr("key a.list"));
}

TEST(GgufTest, ValuesThatTheFormatDoesNotHaveAreRefused) {
  const TempFolder folder;
  GgufText unknown;
  unknown.add_raw("a.value", 13, gguf_bytes<std::uint64_t>(1));
  EXPECT_THAT(error_of(folder, unknown.text()), HasSubstr("a value of type 13"));
  GgufText nested;
  nested.add_raw("a.value", 9, gguf_bytes<std::uint32_t>(9) + gguf_bytes<std::uint64_t>(1));
  EXPECT_THAT(error_of(folder, nested.text(), ErrorCode::kUnsupported),
              HasSubstr("a list of lists"));
  GgufText truth;
  truth.add_raw("a.value", 7, gguf_bytes<std::uint8_t>(2));
  EXPECT_THAT(error_of(folder, truth.text()), HasSubstr("a truth value of 2"));
  GgufText twice;
  twice.add_u32("a.value", 1);
  twice.add_u32("a.value", 1);
  EXPECT_THAT(error_of(folder, twice.text()), HasSubstr("a.value occurs twice"));
}

TEST(GgufTest, TensorsThatCannotBeAreRefused) {
  const TempFolder folder;
  const auto with = [&](const std::string& name, const std::vector<std::uint64_t>& extents,
                        std::uint32_t type, const std::string& bytes,
                        ErrorCode code = ErrorCode::kBadCheckpoint) {
    GgufText text = small_model();
    text.add_tensor(name, extents, type, bytes);
    return error_of(folder, text.text(), code);
  };
  EXPECT_THAT(with("a", {}, kF32, ""), HasSubstr("tensor a has 0 dimensions"));
  EXPECT_THAT(with("a", {1, 1, 1, 1, 1}, kF32, "1234"), HasSubstr("has 5 dimensions"));
  EXPECT_THAT(with("a", {8, 0}, kF32, ""), HasSubstr("an extent of 0"));
  EXPECT_THAT(with("a", {std::uint64_t{1} << 62, 8}, kF32, ""), HasSubstr("8 rows of"));
  EXPECT_THAT(with("a", {8, std::uint64_t{1} << 62}, kF32, ""), HasSubstr("an extent of"));
  EXPECT_THAT(with("a", {33}, 2, std::string(36, 'x')), HasSubstr("a multiple of 32"));
  EXPECT_THAT(with("a", {256}, 10, std::string(84, 'x'), ErrorCode::kUnsupported),
              HasSubstr("tensor a is Q2_K (type 10)"));
  EXPECT_THAT(with("a", {256}, 999, "x", ErrorCode::kUnsupported), HasSubstr("unknown"));
  EXPECT_THAT(with("blk.0.attn_q.weight", {8, 8}, kF32, std::string(256, 'x')),
              HasSubstr("occurs twice"));
  EXPECT_THAT(with("blk.1.attn_q.weight", {8, 6}, kF32, std::string(192, 'x')),
              HasSubstr("a multiple of 4"));
}

TEST(GgufTest, WhatWouldChangeTheComputationIsRefused) {
  const TempFolder folder;
  GgufText other;
  other.add_string("general.architecture", "qwen2");
  EXPECT_THAT(error_of(folder, other.text(), ErrorCode::kUnsupported),
              HasSubstr("general.architecture is qwen2 (llama is needed)"));
  GgufText scaled = small_model();
  scaled.add_string("llama.rope.scaling.type", "linear");
  EXPECT_THAT(error_of(folder, scaled.text(), ErrorCode::kUnsupported),
              HasSubstr("llama.rope.scaling.type is linear"));
  GgufText factor = small_model();
  factor.add_f32("llama.rope.scaling.factor", 4);
  EXPECT_THAT(error_of(folder, factor.text(), ErrorCode::kUnsupported), HasSubstr("factor is 4"));
  GgufText partial = small_model();
  partial.add_u32("llama.rope.dimension_count", 2);
  EXPECT_THAT(error_of(folder, partial.text(), ErrorCode::kUnsupported),
              HasSubstr("dimension_count is 2"));
  GgufText experts = small_model();
  experts.add_u32("llama.expert_count", 8);
  EXPECT_THAT(error_of(folder, experts.text(), ErrorCode::kUnsupported),
              HasSubstr("llama.expert_count is 8"));
  EXPECT_THAT(error_of(folder, small_model({.heads = 0}).text()),
              HasSubstr("llama.attention.head_count is 0"));
}

TEST(GgufTest, NoFlippedBitCrashesAndNoErrorIsUnreadable) {
  const TempFolder folder;
  const std::string whole = small_model().text();
  std::mt19937 random(7);
  int opened = 0;
  int refused = 0;
  for (int round = 0; round < 4000; ++round) {
    std::string broken = whole;
    const int flips = 1 + round % 3;
    for (int i = 0; i < flips; ++i) {
      broken[random() % broken.size()] ^= static_cast<char>(1 << random() % 8);
    }
    auto checkpoint = Checkpoint::open(write_anew(folder, broken));
    if (!checkpoint) {
      ++refused;
      ASSERT_LT(checkpoint.error().message.size(), 2000U);
      const std::string& message = checkpoint.error().message;
      ASSERT_EQ(tokenizer::repair_utf8(message), message);
      continue;
    }
    ++opened;
    for (const StoredTensor& tensor : checkpoint->tensors()) ASSERT_TRUE(tensor.read());
  }
  EXPECT_GT(opened, 100);
  EXPECT_GT(refused, 100);
}

}  // namespace
}  // namespace locket::checkpoint
