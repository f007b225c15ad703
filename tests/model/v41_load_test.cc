// Loading a whole model: small changes to the files of a tiny checkpoint.
#include <algorithm>
#include <cstring>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/file.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/safetensors.h"
#include "model/generations/v41.h"
#include "numerics/bf16.h"
#include "numerics/e8m0.h"
#include "numerics/fp4_e2m1.h"
#include "numerics/fp8_e4m3.h"
#include "tests/support/checkpoint_files.h"
#include "tests/support/tiny_models.h"
#include "tokenizer/engram_token_map.h"
#include "tokenizer/tokenizer.h"

namespace locket::model {
namespace {

using test_support::CheckpointText;
using test_support::FileTensor;
using test_support::TempFolder;
using ::testing::HasSubstr;

using Tensors = std::map<std::string, FileTensor>;

Tensors read_tensors(const std::string& name) {
  Tensors tensors;
  const auto checkpoint = checkpoint::Checkpoint::open(test_support::tiny_checkpoint(name));
  if (!checkpoint) throw std::runtime_error(checkpoint.error().message);
  for (const checkpoint::StoredTensor& stored : checkpoint->tensors()) {
    const auto bytes = stored.read();
    if (!bytes) throw std::runtime_error(bytes.error().message);
    tensors[stored.name()] = {stored.name(),
                              std::string(numerics::dtype_name(stored.entry->dtype)),
                              stored.entry->shape,
                              {reinterpret_cast<const char*>(bytes->data()), bytes->size()}};
  }
  return tensors;
}

const Tensors& odd_tensors() {
  static const Tensors tensors = read_tensors("odd");
  return tensors;
}

std::vector<std::int32_t> token_map_of(const std::string& name) {
  const auto words =
      tokenizer::Tokenizer::load(test_support::tiny_checkpoint(name) / "tokenizer.json");
  if (!words) throw std::runtime_error(words.error().message);
  return *tokenizer::make_engram_token_map(*words);
}

// The checkpoint must outlive its model.
struct Loaded {
  TempFolder folder;
  std::vector<checkpoint::Checkpoint> checkpoint;
  Result<V41Model> model = fail(ErrorCode::kInternal, "not loaded");
};

std::unique_ptr<Loaded> load(const std::string& name, const Tensors& tensors,
                             NumericsMode mode = NumericsMode::kWide,
                             const LoadProgress& progress = {}) {
  auto loaded = std::make_unique<Loaded>();
  CheckpointText content;
  content.config = *read_whole_file(test_support::tiny_checkpoint(name) / "config.json");
  for (const auto& [tensor_name, tensor] : tensors) {
    content.files["model.safetensors"].push_back(tensor);
  }
  test_support::write_checkpoint(loaded->folder, content);
  auto checkpoint = checkpoint::Checkpoint::open(loaded->folder.path());
  if (!checkpoint) throw std::runtime_error(checkpoint.error().message);
  loaded->checkpoint.push_back(std::move(*checkpoint));
  loaded->model =
      V41Model::load(loaded->checkpoint.front(), token_map_of(name), {.mode = mode}, progress);
  return loaded;
}

void expect_refused(const Tensors& tensors, std::initializer_list<std::string> words) {
  const auto loaded = load("odd", tensors);
  ASSERT_FALSE(loaded->model);
  EXPECT_EQ(error_code_name(loaded->model.error().code),
            error_code_name(ErrorCode::kBadCheckpoint));
  for (const std::string& word : words) {
    EXPECT_THAT(loaded->model.error().message, HasSubstr(word));
  }
}

// One name for every kind of tensor: numbers of layers and experts do not count.
std::vector<std::string> one_of_each_kind(const Tensors& tensors) {
  std::set<std::string> kinds;
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors) {
    std::string kind;
    for (const char c : name) {
      const bool is_number = c >= '0' && c <= '9' && (kind.empty() || kind.back() == '.');
      if (!is_number) kind += c;
    }
    if (kinds.insert(kind).second) names.push_back(name);
  }
  return names;
}

TEST(V41LoadTest, LoadsTheTinyCheckpoints) {
  for (const std::string& name : test_support::tiny_names()) {
    const V41Model& model = test_support::tiny_model(name, NumericsMode::kReference);
    EXPECT_EQ(model.config().vocabulary_size, name == "micro" ? 480 : name == "odd" ? 437 : 448);
    EXPECT_EQ(model.numerics().mode, NumericsMode::kReference);
  }
}

TEST(V41LoadTest, DraftsAreSkippedInOneLine) {
  EXPECT_EQ(test_support::tiny_model("odd", NumericsMode::kReference).skipped_tensors(), "");
  const std::string& line =
      test_support::tiny_model("micro", NumericsMode::kReference).skipped_tensors();
  std::size_t count = 0;
  std::size_t bytes = 0;
  for (const auto& [name, tensor] : read_tensors("micro")) {
    if (!name.starts_with("mtp.")) continue;
    count += 1;
    bytes += tensor.bytes.size();
  }
  EXPECT_GT(count, 0U);
  EXPECT_EQ(line, "skipped: mtp.* " + std::to_string(count) + " tensors, " + std::to_string(bytes) +
                      " bytes");
}

TEST(V41LoadTest, VisionTensorsAreSkipped) {
  Tensors tensors = odd_tensors();
  for (const char* name : {"vision.norm.weight", "aligner.w1.bias", "image_start", "mtp.0.x"}) {
    tensors[name] = {name, "BF16", {2}, "abcd"};
  }
  const auto loaded = load("odd", tensors);
  ASSERT_TRUE(loaded->model) << loaded->model.error().message;
  for (const char* part : {"mtp.* 1", "vision.* 1", "aligner.* 1", "image_* 1"}) {
    EXPECT_THAT(loaded->model->skipped_tensors(), HasSubstr(part));
  }
  EXPECT_EQ(loaded->model->skipped_tensors().find('\n'), std::string::npos);
}

TEST(V41LoadTest, EveryKindOfMissingTensorIsNamed) {
  std::size_t refused = 0;
  for (const std::string& name : one_of_each_kind(odd_tensors())) {
    SCOPED_TRACE(name);
    Tensors tensors = odd_tensors();
    tensors.erase(name);
    if (name.ends_with("gate.bias_vl")) {
      EXPECT_TRUE(load("odd", tensors)->model) << "no text needs it";
      continue;
    }
    // Without its scale a weight would have to be plain.
    const std::string blamed =
        name.ends_with(".scale") ? name.substr(0, name.size() - 6) + ".weight" : name;
    expect_refused(tensors, {blamed});
    ++refused;
  }
  EXPECT_GT(refused, 40U);
}

TEST(V41LoadTest, EveryKindOfWrongShapeIsNamed) {
  for (const std::string& name : one_of_each_kind(odd_tensors())) {
    SCOPED_TRACE(name);
    Tensors tensors = odd_tensors();
    FileTensor& tensor = tensors[name];
    const std::size_t row = tensor.bytes.size() / static_cast<std::size_t>(tensor.shape[0]);
    tensor.shape[0] += 1;
    tensor.bytes.append(row, '\x01');
    expect_refused(tensors, {name});
  }
}

TEST(V41LoadTest, TensorsThatNobodyKnowsAreRefused) {
  for (const char* name : {"layers.7.attn_norm.weight", "layers.0.attn.compressor.wkv.weight",
                           "layers.0.ffn.experts.5.w1.weight", "embedding.weight", "lm_head"}) {
    Tensors tensors = odd_tensors();
    tensors[name] = {name, "BF16", {2}, "abcd"};
    expect_refused(tensors, {name});
  }
}

// Layer 3 selects rows but owns none: it has a query side only.
TEST(V41LoadTest, ASelectingLayerWithoutRowsHasNoKeyWeights) {
  EXPECT_TRUE(odd_tensors().contains("layers.3.attn.indexer.wq_b.weight"));
  EXPECT_FALSE(odd_tensors().contains("layers.3.attn.indexer.wk.weight"));
  Tensors tensors = odd_tensors();
  tensors["layers.3.attn.indexer.wk.weight"] = tensors["layers.1.attn.indexer.wk.weight"];
  tensors["layers.3.attn.indexer.wk.weight"].name = "layers.3.attn.indexer.wk.weight";
  expect_refused(tensors, {"layers.3.attn.indexer.wk.weight"});
}

TEST(V41LoadTest, TheTokenMapMustFitTheConfig) {
  auto checkpoint = checkpoint::Checkpoint::open(test_support::tiny_checkpoint("odd"));
  ASSERT_TRUE(checkpoint);
  const auto model = V41Model::load(*checkpoint, {0, 1, 2}, {}, {});
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().code, ErrorCode::kBadCheckpoint);
  EXPECT_THAT(model.error().message, HasSubstr("engram_compressed_vocab_size is 365"));
}

TEST(V41LoadTest, ReportsProgressUpToTheWholeCheckpoint) {
  std::uint64_t last = 0;
  std::uint64_t whole = 0;
  const auto loaded =
      load("odd", odd_tensors(), NumericsMode::kWide, [&](std::uint64_t done, std::uint64_t total) {
        EXPECT_GE(done, last);
        EXPECT_LE(done, total);
        last = done;
        whole = total;
      });
  ASSERT_TRUE(loaded->model);
  std::uint64_t bytes = 0;
  for (const auto& [name, tensor] : odd_tensors()) bytes += tensor.bytes.size();
  EXPECT_EQ(whole, bytes);
  EXPECT_EQ(last, bytes) << "what is left unread counts at the end";
}

// Every quantized weight as the float32 values that it stands for, Engram tables as BF16.
Tensors dequantized(const Tensors& tensors) {
  Tensors plain;
  for (const auto& [name, tensor] : tensors) {
    if (name.ends_with(".scale")) continue;
    const std::string scale_name = name.substr(0, name.rfind('.')) + ".scale";
    const auto found = tensors.find(scale_name);
    if (!name.ends_with(".weight") || found == tensors.end()) {
      plain[name] = tensor;
      continue;
    }
    const bool is_fp4 = tensor.dtype != "F8_E4M3";
    const bool is_table = name.ends_with("engram.embed.weight");
    const auto rows = static_cast<std::size_t>(tensor.shape[0]);
    const std::size_t columns = static_cast<std::size_t>(tensor.shape[1]) * (is_fp4 ? 2 : 1);
    const std::size_t tile_rows = is_fp4 || is_table ? 1 : 32;
    FileTensor& target = plain[name];
    target = {name,
              is_table ? "BF16" : "F32",
              {static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns)},
              ""};
    for (std::size_t i = 0; i < rows * columns; ++i) {
      const std::size_t tile = i / columns / tile_rows * (columns / 32) + i % columns / 32;
      const auto code = static_cast<std::uint8_t>(tensor.bytes[is_fp4 ? i / 2 : i]);
      const float unscaled = !is_fp4 ? numerics::to_float(numerics::Fp8E4m3{code})
                                     : numerics::to_float(i % 2 == 0 ? numerics::even_fp4(code)
                                                                     : numerics::odd_fp4(code));
      const float value =
          unscaled *
          numerics::to_float(numerics::E8m0{static_cast<std::uint8_t>(found->second.bytes[tile])});
      const std::uint16_t half = numerics::to_bf16(value).bits;
      if (is_table) target.bytes.append(reinterpret_cast<const char*>(&half), 2);
      if (!is_table) target.bytes.append(reinterpret_cast<const char*>(&value), 4);
    }
  }
  return plain;
}

// In mode wide the activations are not quantized, so the stored form of a weight cannot show.
TEST(V41LoadTest, DequantizedWeightsGiveTheSameBits) {
  const Tensors plain = dequantized(odd_tensors());
  EXPECT_LT(plain.size(), odd_tensors().size());
  const auto loaded = load("odd", plain);
  ASSERT_TRUE(loaded->model) << loaded->model.error().message;
  const std::vector<engine::TokenId> ids = test_support::random_ids(8, 60, 437);
  const test_support::RunBits actual = test_support::run_sequence(*loaded->model, ids, {});
  const test_support::RunBits expected =
      test_support::run_sequence(test_support::tiny_model("odd", NumericsMode::kWide), ids, {});
  EXPECT_TRUE(test_support::same_logits(actual, expected));
  EXPECT_TRUE(test_support::same_rows(actual, expected));
  EXPECT_TRUE(test_support::same_rings(actual, expected));
}

}  // namespace
}  // namespace locket::model
