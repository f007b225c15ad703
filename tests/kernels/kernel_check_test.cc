// The check of kernels finds nothing in sound tables, and finds every kind of fault.
#include "kernels/kernel_check.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <string>

#include "kernels/kernel_choice.h"
#include "tests/support/kernel_data.h"

namespace locket::kernels {
namespace {

constexpr std::size_t kCases = 40;

// The names of the kernels that differ.
std::vector<std::string> faults_of(const KernelTable& table) {
  std::vector<std::string> names;
  for (const KernelCheck& check : check_kernels(table, kCases)) {
    EXPECT_EQ(check.cases, kCases);
    EXPECT_EQ(check.different == 0, check.first.empty());
    if (check.different > 0) names.emplace_back(check.kernel);
  }
  return names;
}

TEST(KernelCheckTest, FindsNothingInTheTablesOfThisMachine) {
  for (const KernelTable* table : available_kernels()) {
    EXPECT_EQ(faults_of(*table), std::vector<std::string>()) << table->name;
  }
}

TEST(KernelCheckTest, FindsAProductInAnotherOrder) {
  KernelTable table = reference_kernels();
  table.matmul_groups = [](const WeightMatrix& w, const ActivationRows& x, float* out,
                           std::size_t out_stride, std::size_t first, std::size_t last) {
    for (std::size_t row = first * 16; row < std::min(last * 16, w.rows); ++row) {
      for (std::size_t token = 0; token < x.tokens; ++token) {
        float sum = 0.0f;
        for (std::size_t k = 0; k < w.columns; ++k) {
          sum += x.data[token * x.stride + k] * weight_at(w, row, k);
        }
        out[token * out_stride + row] = sum;
      }
    }
  };
  const std::vector<std::string> faults = faults_of(table);
  for (const char* name : {"matmul bf16", "matmul fp8", "matmul fp4", "matmul f32"}) {
    EXPECT_NE(std::ranges::find(faults, name), faults.end()) << name;
  }
}

TEST(KernelCheckTest, FindsASingleBit) {
  KernelTable table = reference_kernels();
  table.elementwise.rms_norm = [](std::span<const float> x, std::span<const float> weight,
                                  float eps, Rounding rounding, std::span<float> out) {
    reference_kernels().elementwise.rms_norm(x, weight, eps, rounding, out);
    out.back() = std::nextafter(out.back(), 1e30f);
  };
  EXPECT_EQ(faults_of(table), std::vector<std::string>{"norm"});
}

TEST(KernelCheckTest, FindsAKernelThatDoesNothing) {
  KernelTable table = reference_kernels();
  table.streams.round_to_bf16 = [](std::span<float>) {};
  table.elementwise.fake_quantize_fp8 = [](std::span<float>) {};
  table.streams.dots_in_double = [](std::span<const float>, std::span<const float>,
                                    std::span<double>) {};
  EXPECT_EQ(faults_of(table),
            (std::vector<std::string>{"fp8 quantizer", "double dots", "streams"}));
}

TEST(KernelChoiceTest, FindsTheTablesOfThisMachine) {
  for (const KernelTable* table : available_kernels()) {
    EXPECT_EQ(find_kernels(table->name).value(), table);
    EXPECT_NE(available_kernel_names().find(table->name), std::string::npos);
  }
}

TEST(KernelChoiceTest, SaysWhatCanBeHadInstead) {
  const auto unknown = find_kernels("sse9");
  ASSERT_FALSE(unknown.has_value());
  EXPECT_EQ(unknown.error().code, ErrorCode::kBadRequest);
  EXPECT_NE(unknown.error().message.find("\"sse9\""), std::string::npos);
  EXPECT_NE(unknown.error().message.find(available_kernel_names()), std::string::npos);
}

}  // namespace
}  // namespace locket::kernels
