// DeepSeek-V3 and V3.2 against recorded vectors of Hugging Face transformers, in mode `plain`.
#include "tests/golden/lineage_mla.h"

namespace locket::test_support {
namespace {

TEST(LineageV3Test, RotationFrequenciesAreTheRecordedOnes) { expect_recorded_frequencies("v3"); }

TEST(LineageV3Test, LogitsAndGreedyTokensAreTheRecordedOnesForAnySlices) {
  expect_recorded_logits("v3", 8);
}

TEST(LineageV3Test, LayersMemoryAndChoicesAreTheRecordedOnes) {
  expect_recorded_insides("v3", {.expert_layers = 3});
}

TEST(LineageV3Test, DraftLayersAreLeftUnread) {
  const std::string& skipped = LineageModel::get("v3").model().skipped_tensors();
  EXPECT_NE(skipped.find("model.layers.5."), std::string::npos) << skipped;
}

TEST(LineageV3Test, ServedRowsAreBf16AndMoveLittle) {
  const auto& model = LineageModel::get("v3", model::NumericsMode::kWide).model();
  EXPECT_DOUBLE_EQ(model.layout().bytes_per_token(), 5.0 * (128 + 16) * 2);
  const double distance = served_distance("v3").median;
  EXPECT_GT(distance, 1e-5) << "rows seem not to be rounded";
  EXPECT_LT(distance, 0.02);
}

TEST(LineageV32Test, RotationFrequenciesAreTheRecordedOnes) { expect_recorded_frequencies("v32"); }

TEST(LineageV32Test, LogitsAndGreedyTokensAreTheRecordedOnesForAnySlices) {
  expect_recorded_logits("v32", 10);
}

TEST(LineageV32Test, LayersMemoryAndChoicesAreTheRecordedOnes) {
  expect_recorded_insides("v32", {.expert_layers = 2, .indexed_layers = 4});
}

TEST(LineageV32Test, DraftLayersAreLeftUnread) {
  const std::string& skipped = LineageModel::get("v32").model().skipped_tensors();
  EXPECT_NE(skipped.find("model.layers.4."), std::string::npos) << skipped;
}

// 80 codes, one scale and 64 bfloat16 of a row; 32 codes and a scale of a key.
TEST(LineageV32Test, ServedRowsAreFp8AndMoveLittle) {
  const auto& model = LineageModel::get("v32", model::NumericsMode::kWide).model();
  EXPECT_DOUBLE_EQ(model.layout().bytes_per_token(), 4.0 * (80 + 4 + 128 + 32 + 4));
  const double distance = served_distance("v32").median;
  EXPECT_GT(distance, 1e-3) << "rows seem not to be quantized";
  EXPECT_LT(distance, 0.1);
}

using Choices = std::vector<std::vector<std::int32_t>>;

// Tokens that both chose.
std::size_t count_same(const Choices& one, const Choices& other, std::size_t first_position) {
  std::size_t same = 0;
  for (std::size_t position = first_position; position < one.size(); ++position) {
    same += static_cast<std::size_t>(std::ranges::count_if(one[position], [&](std::int32_t token) {
      return std::ranges::find(other[position], token) != other[position].end();
    }));
  }
  return same;
}

Choices first_layer_choices(const LineagePrompt& prompt, model::NumericsMode mode) {
  return run_lineage(LineageModel::get("v32", mode), prompt, 0).integers.at("l0.index");
}

// The transform and FP8 of keys and queries leave most of the choice as it was. In the first layer
// nothing else differs.
TEST(LineageV32Test, QuantizedKeysChooseNearlyTheSameTokens) {
  constexpr std::size_t kFirst = 48;  // there is a choice from 24 tokens on
  std::size_t same = 0;
  std::size_t all = 0;
  for (const LineagePrompt& prompt : lineage_prompts(LineageModel::get("v32").vectors())) {
    if (prompt.tokens.size() < 90) continue;
    const Choices plain = first_layer_choices(prompt, model::NumericsMode::kPlain);
    const Choices wide = first_layer_choices(prompt, model::NumericsMode::kWide);
    all += count_same(plain, plain, kFirst);
    same += count_same(plain, wide, kFirst);
  }
  const double share = static_cast<double>(same) / static_cast<double>(all);
  print_figures(
      fmt::format("v32 wide: {:.1f} % of the first layer's tokens are the same", 100 * share));
  EXPECT_GT(share, 0.9);
  EXPECT_LT(share, 1.0) << "keys seem not to be quantized";
}

}  // namespace
}  // namespace locket::test_support
