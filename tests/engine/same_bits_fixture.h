// The tiny checkpoints in two numerics modes, with a long run that others are compared with.
#pragma once

#include <cstddef>
#include <gtest/gtest.h>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "tests/support/tiny_models.h"

namespace locket::engine {

inline constexpr std::uint32_t kSameBitsSeed = 20260101;

using SameBitsCase = std::tuple<std::string, model::NumericsMode>;

class SameBitsTest : public ::testing::TestWithParam<SameBitsCase> {
 protected:
  static const std::string& name() { return std::get<0>(GetParam()); }
  static const model::V41Model& model() {
    return test_support::tiny_model(name(), std::get<1>(GetParam()));
  }
  static const model::V41Config& config() { return model().config(); }
  static std::size_t window() { return static_cast<std::size_t>(config().sliding_window); }
  // Positions that the last one can see through all decoder layers.
  static std::size_t decoder_reach() {
    return static_cast<std::size_t>(
        (config().layer_count - config().boundary) * (config().sliding_window - 1) + 1);
  }

  // The thin checkpoint has the release's window and top-k, and is slow for that.
  static bool is_thin() { return name() == "thin"; }
  static bool is_wide() { return std::get<1>(GetParam()) == model::NumericsMode::kWide; }
  // Lengths of a prompt that passes every edge that can be reached, and of a shorter one.
  static std::size_t long_count() {
    if (is_thin()) return is_wide() ? 600 : 1'100;
    return 2'048;
  }
  static std::size_t medium_count() { return is_thin() ? 262 : 300; }

  static std::vector<TokenId> ids(std::size_t count) {
    return test_support::random_ids(kSameBitsSeed, count, config().vocabulary_size);
  }
  static test_support::RunBits run(std::span<const TokenId> tokens,
                                   const test_support::RunPlan& plan = {}) {
    return test_support::run_sequence(model(), tokens, plan);
  }
  // The whole of ids(long_count()) at once in one thread. A run over fewer of the same ids must
  // give its beginning.
  static const test_support::RunBits& whole_run() {
    static std::map<SameBitsCase, test_support::RunBits> runs;
    test_support::RunBits& bits = runs[GetParam()];
    if (bits.logits.empty()) bits = run(ids(long_count()));
    return bits;
  }
};

inline void expect_same(const test_support::RunBits& actual,
                        const test_support::RunBits& expected) {
  EXPECT_EQ(actual.logits.size(), expected.logits.size());
  EXPECT_TRUE(test_support::same_logits(actual, expected));
  EXPECT_TRUE(test_support::same_rows(actual, expected));
  EXPECT_TRUE(test_support::same_rings(actual, expected));
}

inline std::string same_bits_case_name(const ::testing::TestParamInfo<SameBitsCase>& info) {
  return std::get<0>(info.param) + "_" +
         std::string(model::numerics_mode_name(std::get<1>(info.param)));
}

inline auto same_bits_cases() {
  return ::testing::Combine(
      ::testing::ValuesIn(test_support::tiny_names()),
      ::testing::Values(model::NumericsMode::kReference, model::NumericsMode::kWide));
}

}  // namespace locket::engine
