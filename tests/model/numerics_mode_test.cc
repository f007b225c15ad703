#include "model/numerics_mode.h"

#include <gtest/gtest.h>
#include <set>

namespace locket::model {
namespace {

TEST(NumericsModeTest, EveryModeIsFoundByItsName) {
  std::set<std::string_view> names;
  for (int i = 0; i < static_cast<int>(NumericsMode::kCount); ++i) {
    const auto mode = static_cast<NumericsMode>(i);
    EXPECT_TRUE(names.insert(numerics_mode_name(mode)).second);
    EXPECT_EQ(find_numerics_mode(numerics_mode_name(mode)), mode);
  }
  EXPECT_EQ(find_numerics_mode("fast and loose"), std::nullopt);
  EXPECT_EQ(find_numerics_mode(""), std::nullopt);
}

TEST(NumericsModeTest, SaysWhatAModeRoundsAndQuantizes) {
  const Numerics reference = {.mode = NumericsMode::kReference};
  EXPECT_EQ(reference.rounding(), kernels::Rounding::kBf16);
  EXPECT_EQ(reference.activation_values(), kernels::ActivationValues::kBf16);
  EXPECT_TRUE(reference.quantizes_activations());
  EXPECT_TRUE(reference.quantizes_memory());
  const Numerics wide = {.mode = NumericsMode::kWide};
  EXPECT_EQ(wide.rounding(), kernels::Rounding::kNone);
  EXPECT_EQ(wide.activation_values(), kernels::ActivationValues::kF32);
  EXPECT_FALSE(wide.quantizes_activations());
  EXPECT_TRUE(wide.quantizes_memory());
  const Numerics plain = {.mode = NumericsMode::kPlain};
  EXPECT_FALSE(plain.quantizes_activations());
  EXPECT_FALSE(plain.quantizes_memory());
  EXPECT_FALSE(reference.has_int8_experts());
  const Numerics fast = {.mode = NumericsMode::kFast};
  EXPECT_EQ(fast.rounding(), kernels::Rounding::kBf16);
  EXPECT_EQ(fast.activation_values(), kernels::ActivationValues::kBf16);
  EXPECT_TRUE(fast.quantizes_activations());
  EXPECT_TRUE(fast.quantizes_memory());
  EXPECT_TRUE(fast.has_int8_experts());
  EXPECT_NE(fast.memory_name(), reference.memory_name());
  EXPECT_EQ(Numerics{}.mode, NumericsMode::kReference);  // nothing else is ever chosen by itself
  EXPECT_EQ(Numerics{}.index_scores, kernels::IndexScoreRounding::kF32);
}

}  // namespace
}  // namespace locket::model
