// DeepSeek-V2 and V2-Lite against recorded vectors of Hugging Face transformers, in mode `plain`.
#include "tests/golden/lineage_mla.h"

namespace locket::test_support {
namespace {

class LineageV2Test : public ::testing::TestWithParam<std::string> {};

TEST_P(LineageV2Test, RotationFrequenciesAreTheRecordedOnes) {
  expect_recorded_frequencies(GetParam());
}

TEST_P(LineageV2Test, LogitsAndGreedyTokensAreTheRecordedOnesForAnySlices) {
  expect_recorded_logits(GetParam(), 8);
}

TEST_P(LineageV2Test, LayersMemoryAndChoicesAreTheRecordedOnes) {
  expect_recorded_insides(GetParam(), {.expert_layers = GetParam() == "v2" ? 3U : 2U});
}

TEST_P(LineageV2Test, ServedRowsAreBf16AndMoveLittle) {
  const auto& model = LineageModel::get(GetParam(), model::NumericsMode::kWide).model();
  EXPECT_DOUBLE_EQ(model.layout().bytes_per_token(),
                   static_cast<double>(model.shape().layer_count * (64 + 16) * 2));
  const double distance = served_distance(GetParam()).median;
  EXPECT_GT(distance, 1e-5) << "rows seem not to be rounded";
  EXPECT_LT(distance, 0.02);
}

INSTANTIATE_TEST_SUITE_P(Generations, LineageV2Test, ::testing::Values("v2", "v2lite"),
                         [](const auto& test_case) { return test_case.param; });

}  // namespace
}  // namespace locket::test_support
