// Random stored matrices and activations for kernel tests, and the comparison of bits.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <gtest/gtest.h>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "kernels/kernel_table.h"
#include "kernels/weight_matrix.h"

namespace locket::kernels {

// How the exponents of a test are spread.
enum class Spread {
  kUsual,     // like a trained model
  kTiny,      // products on both sides of 2^-126; scale codes from 0
  kHuge,      // products on both sides of infinity; scale codes up to 254
  kDenormal,  // denormals, zeros, -0 and their neighbours, some of usual size
  kCount
};

class RandomValues {
 public:
  explicit RandomValues(std::uint32_t seed) : engine_(seed) {}

  // In [0, count).
  std::uint32_t below(std::uint32_t count);
  // A finite float32 of either sign.
  float value(Spread spread);
  float bf16_value(Spread spread);
  std::vector<float> values(std::size_t count, Spread spread);
  std::vector<float> bf16_values(std::size_t count, Spread spread);
  std::uint8_t scale_code(Spread spread);
  // Of either sign, from denormal to large, no power of two.
  float f32_scale(Spread spread);

 private:
  std::mt19937 engine_;
};

// The bytes behind a StoredMatrix.
struct RandomMatrix {
  WeightFormat format;
  std::size_t rows;
  std::size_t columns;
  std::vector<std::byte> values;
  std::vector<std::byte> scales;

  StoredMatrix stored() const;
  WeightMatrix packed() const;
};

RandomMatrix random_matrix(WeightFormat format, std::size_t rows, std::size_t columns,
                           Spread spread, RandomValues& random);

// Whether this thread computes with denormals, as every kernel must leave it.
bool computes_denormals();

// Equal bits, or both NaN.
bool is_same(float a, float b);
::testing::AssertionResult same_bits(std::span<const float> actual,
                                     std::span<const float> expected);

// Every table but the reference.
std::vector<const KernelTable*> fast_tables();
// For INSTANTIATE_TEST_SUITE_P.
std::string table_name(const ::testing::TestParamInfo<const KernelTable*>& info);

const char* format_name(WeightFormat format);

constexpr auto kWeightFormats = [] {
  std::array<WeightFormat, static_cast<std::size_t>(WeightFormat::kCount)> formats = {};
  for (std::size_t i = 0; i < formats.size(); ++i) formats[i] = static_cast<WeightFormat>(i);
  return formats;
}();

}  // namespace locket::kernels
