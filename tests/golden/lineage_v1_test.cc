// DeepSeek LLM (V1) against recorded vectors of Hugging Face transformers: logits of prompts and of
// decode steps, greedy tokens, layer outputs and the memory, in mode `plain`.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "model/generations/v1.h"
#include "model/rotary_table.h"
#include "tests/support/lineage_oracle.h"
#include "tests/support/oracle_compare.h"

namespace locket::test_support {
namespace {

constexpr double kTolerance = 1e-5;

LineageModel& v1() { return LineageModel::get("v1"); }

const model::V1Config& config() {
  return dynamic_cast<const model::V1Model&>(v1().model()).config();
}

// Recorded keys or values [KV heads, T, head_dim] against the memory's rows [T, heads x (k | v)].
void expect_same_memory(const tensor::FloatMatrix& rows, const OracleTensor& recorded,
                        std::size_t first_column, const std::string& what) {
  const auto dim = static_cast<std::size_t>(config().head_dim);
  const auto heads = static_cast<std::size_t>(config().kv_head_count);
  const auto positions = static_cast<std::size_t>(recorded.shape[1]);
  ASSERT_EQ(rows.rows(), positions) << what;
  for (std::size_t head = 0; head < heads; ++head) {
    for (std::size_t position = 0; position < positions; ++position) {
      const auto ours = rows.row(position).subspan(head * 2 * dim + first_column, dim);
      const auto theirs =
          std::span(recorded.floats).subspan((head * positions + position) * dim, dim);
      EXPECT_LE(relative_l2(ours, theirs), kTolerance)
          << what << " head " << head << " position " << position;
    }
  }
}

void expect_same_caches(const LineageMemory& memory, const std::string& prefix) {
  const auto dim = static_cast<std::size_t>(config().head_dim);
  for (std::size_t layer = 0; layer < memory.streams.size(); ++layer) {
    const std::string name = fmt::format("{}.l{}.", prefix, layer);
    const OracleFile& vectors = v1().vectors();
    expect_same_memory(memory.streams[layer], vectors.at(name + "k"), 0, name + "k");
    expect_same_memory(memory.streams[layer], vectors.at(name + "v"), dim, name + "v");
  }
}

// The first rows of `ours`, as many as `theirs` has.
void expect_same_layer(const tensor::FloatMatrix& ours, const std::string& name) {
  const tensor::FloatMatrix theirs = v1().vectors().matrix(name);
  ASSERT_GE(ours.rows(), theirs.rows()) << name;
  for (std::size_t row = 0; row < theirs.rows(); ++row) {
    EXPECT_LE(relative_l2(ours.row(row), theirs.row(row)), kTolerance) << name << " row " << row;
  }
}

TEST(LineageV1Test, RotationFrequenciesAreTheRecordedOnes) {
  const std::vector<float> ours =
      model::rotary_frequencies({.dim = config().head_dim, .base = config().rope_theta});
  EXPECT_EQ(ours, v1().vectors().at("rope.inv_freq").floats);
}

TEST(LineageV1Test, LogitsAndGreedyTokensAreTheRecordedOnesForAnySlices) {
  const std::vector<LineagePrompt> prompts = lineage_prompts(v1().vectors());
  ASSERT_EQ(prompts.size(), 8U);
  for (const LineagePrompt& prompt : prompts) {
    const LineageRun run = run_lineage(v1(), prompt, 0);
    expect_same_logits("v1", prompt, run);
    for (const std::uint32_t seed : {1u, 2u}) {
      const LineageRun sliced = run_lineage(v1(), prompt, seed);
      EXPECT_TRUE(std::ranges::equal(run.logits.values(), sliced.logits.values()))
          << prompt.name << ": slices of seed " << seed << " change the logits";
    }
  }
}

TEST(LineageV1Test, LayersAndMemoryAreTheRecordedOnes) {
  std::size_t compared = 0;
  for (const LineagePrompt& prompt : lineage_prompts(v1().vectors())) {
    if (prompt.inside.empty()) continue;
    ++compared;
    const LineageRun run = run_lineage(v1(), prompt, 3);
    expect_same_caches(run.after_prompt, prompt.inside + ".cache");
    if (prompt.inside != "short") continue;
    expect_same_caches(run.after_decode, "short.cache_after");
    for (std::int64_t layer = 0; layer < config().layer_count; ++layer) {
      const std::string ours = fmt::format("l{}.", layer);
      const std::string theirs = fmt::format("short.l{}.", layer);
      expect_same_layer(run.floats.at(ours + "attention"), theirs + "attn_out");
      expect_same_layer(run.floats.at(ours + "ffn"), theirs + "mlp_out");
      expect_same_layer(run.floats.at(ours + "streams"), theirs + "out");
    }
  }
  EXPECT_EQ(compared, 2U);
}

TEST(LineageV1Test, WideModeStaysNearAndItsRowsHaveTheSizeOfTheRelease) {
  LineageModel& wide = LineageModel::get("v1", model::NumericsMode::kWide);
  const auto& layout = wide.model().layout();
  EXPECT_DOUBLE_EQ(layout.bytes_per_token(),
                   static_cast<double>(config().layer_count * 2 * config().kv_head_count *
                                       config().head_dim * 2));
  double largest = 0;
  for (const LineagePrompt& prompt : lineage_prompts(v1().vectors())) {
    const LineageRun run = run_lineage(wide, prompt, 4);
    for (std::size_t row = 0; row < prompt.positions.size(); ++row) {
      const auto position = static_cast<std::size_t>(prompt.positions[row]);
      largest = std::max(largest, relative_l2(run.logits.row(position), prompt.logits.row(row)));
    }
  }
  print_figures(fmt::format("v1 wide: largest distance from float32 {:.2e}", largest));
  EXPECT_GT(largest, 1e-5) << "keys and values seem not to be rounded";
  EXPECT_LT(largest, 4e-2);
}

}  // namespace
}  // namespace locket::test_support
