// A GGUF file gives the same model as the released files that it was made from: the checkpoint of
// V1 as GGUF, its query and key rows in the order of llama.cpp, gives the same bits.
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/worker_pool.h"
#include "cache/page_pool.h"
#include "checkpoint/checkpoint.h"
#include "engine/session.h"
#include "model/generations/generation.h"
#include "model/generations/v1_config.h"
#include "tests/support/checkpoint_files.h"
#include "tests/support/gguf_text.h"
#include "tests/support/lineage_oracle.h"

namespace locket::test_support {
namespace {

constexpr std::uint32_t kF32 = 0;
constexpr std::uint32_t kBf16 = 30;

template <class T>
T value_of(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  return std::move(*result);
}

class GgufWriter {
 public:
  explicit GgufWriter(const checkpoint::Checkpoint& checkpoint) : checkpoint_(checkpoint) {}

  std::string text(const model::V1Config& config) {
    text_.add_llama({.layers = static_cast<std::uint32_t>(config.layer_count),
                     .hidden = static_cast<std::uint32_t>(config.hidden_size),
                     .heads = static_cast<std::uint32_t>(config.head_count),
                     .kv_heads = static_cast<std::uint32_t>(config.kv_head_count),
                     .ffn = static_cast<std::uint32_t>(config.ffn_size),
                     .theta = static_cast<float>(config.rope_theta),
                     .eps = config.rms_norm_eps});
    head_dim_ = static_cast<std::size_t>(config.head_dim);
    add("token_embd", "model.embed_tokens");
    add("output_norm", "model.norm");
    add("output", "lm_head");
    for (std::int64_t layer = 0; layer < config.layer_count; ++layer) {
      const std::string ours = fmt::format("blk.{}.", layer);
      const std::string theirs = fmt::format("model.layers.{}.", layer);
      add(ours + "attn_norm", theirs + "input_layernorm");
      add(ours + "ffn_norm", theirs + "post_attention_layernorm");
      add(ours + "attn_q", theirs + "self_attn.q_proj");
      add(ours + "attn_k", theirs + "self_attn.k_proj");
      add(ours + "attn_v", theirs + "self_attn.v_proj");
      add(ours + "attn_output", theirs + "self_attn.o_proj");
      add(ours + "ffn_gate", theirs + "mlp.gate_proj");
      add(ours + "ffn_up", theirs + "mlp.up_proj");
      add(ours + "ffn_down", theirs + "mlp.down_proj");
    }
    return text_.text();
  }

 private:
  void add(const std::string& name, const std::string& released) {
    const auto tensor = checkpoint_.find(released + ".weight").value();
    const tensor::AlignedBuffer buffer = value_of(tensor.read());
    std::string bytes(reinterpret_cast<const char*>(buffer.data()), buffer.size());
    const std::size_t row_bytes = bytes.size() / static_cast<std::size_t>(tensor.shape.front());
    if (name.ends_with("attn_q") || name.ends_with("attn_k")) bytes = paired(bytes, row_bytes);
    std::vector<std::uint64_t> extents(tensor.shape.rbegin(), tensor.shape.rend());
    const bool is_bf16 = tensor.dtype == numerics::Dtype::kBf16;
    text_.add_tensor(name + ".weight", extents, is_bf16 ? kBf16 : kF32, bytes);
  }

  // [heads, 2, half] rows as [heads, half, 2].
  std::string paired(const std::string& bytes, std::size_t row_bytes) const {
    std::string result;
    for (std::size_t head = 0; head < bytes.size() / row_bytes; head += head_dim_) {
      for (std::size_t i = 0; i < head_dim_ / 2; ++i) {
        result += bytes.substr((head + i) * row_bytes, row_bytes);
        result += bytes.substr((head + head_dim_ / 2 + i) * row_bytes, row_bytes);
      }
    }
    return result;
  }

  const checkpoint::Checkpoint& checkpoint_;
  std::size_t head_dim_ = 0;
  GgufText text_;
};

std::unique_ptr<model::LanguageModel> load(checkpoint::Checkpoint& checkpoint) {
  const model::Generation* const generation =
      value_of(model::find_generation(checkpoint.config().root()));
  return value_of(generation->load(checkpoint, {.numerics = {.mode = model::NumericsMode::kWide}}));
}

std::vector<float> logits_of(const model::LanguageModel& model,
                             const std::vector<std::int32_t>& tokens) {
  WorkerPool workers(2);
  cache::PagePool pool(model.layout().page_bytes(), std::uint64_t{64} << 20);
  engine::Session session(model, pool, workers, {});
  const Status status = session.prefill(tokens);
  if (!status) throw std::runtime_error(status.error().message);
  return {session.logits().begin(), session.logits().end()};
}

TEST(LineageGgufTest, AReleaseAsGgufGivesTheSameBits) {
  checkpoint::Checkpoint released =
      value_of(checkpoint::Checkpoint::open(lineage_checkpoint("v1")));
  const model::V1Config config = value_of(model::read_v1_config(released.config().root()));
  const TempFolder folder;
  checkpoint::Checkpoint gguf = value_of(
      checkpoint::Checkpoint::open(folder.write("v1.gguf", GgufWriter(released).text(config))));
  const auto ours = load(gguf);
  const auto theirs = load(released);
  EXPECT_EQ(ours->layout().page_bytes(), theirs->layout().page_bytes());
  for (const LineagePrompt& prompt : lineage_prompts(LineageModel::get("v1").vectors())) {
    EXPECT_EQ(logits_of(*ours, prompt.tokens), logits_of(*theirs, prompt.tokens)) << prompt.name;
  }
}

TEST(LineageGgufTest, QuantizedTensorsRunAndTheHeadMayBeTheEmbedding) {
  checkpoint::Checkpoint tiny =
      value_of(checkpoint::Checkpoint::open(std::string(LOCKET_TEST_DATA) + "/gguf/tiny.gguf"));
  const auto model = load(tiny);
  const std::vector<float> logits = logits_of(*model, {261, 1, 2, 3, 262});
  EXPECT_EQ(logits.size(), 264U);
  EXPECT_TRUE(std::ranges::all_of(logits, [](float value) { return std::isfinite(value); }));
  EXPECT_NE(std::ranges::max(logits), std::ranges::min(logits));
}

}  // namespace
}  // namespace locket::test_support
