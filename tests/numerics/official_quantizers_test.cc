// The quantizers against the vectors of the vendor's own code: codes, scales and values, all bits.
#include <bit>
#include <cmath>
#include <cstdint>
#include <gtest/gtest.h>
#include <span>
#include <vector>

#include "numerics/e8m0.h"
#include "numerics/fp4_e2m1.h"
#include "numerics/fp8_e4m3.h"
#include "numerics/group_scaled.h"
#include "tests/support/oracle_data.h"

namespace locket::numerics {
namespace {

using test_support::OracleFile;
using test_support::OracleTensor;

const OracleFile& vectors() {
  static const OracleFile file(test_support::oracle_path("official/quantizers.safetensors"));
  return file;
}

std::size_t different_bits(std::span<const float> a, std::span<const float> b) {
  std::size_t count = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    count += std::bit_cast<std::uint32_t>(a[i]) != std::bit_cast<std::uint32_t>(b[i]) ? 1u : 0u;
  }
  return count;
}

using Quantize = void (*)(std::span<const float>, std::span<std::uint8_t>, std::span<std::uint8_t>);
using Dequantize = void (*)(std::span<const std::uint8_t>, std::span<const std::uint8_t>,
                            std::span<float>);

void expect_official(const std::string& name, Quantize quantize, Dequantize dequantize) {
  const std::vector<float>& x = vectors().at(name + ".x").floats;
  const OracleTensor& expected_codes = vectors().at(name + ".codes");
  const OracleTensor& expected_scales = vectors().at(name + ".scales");
  ASSERT_GE(x.size(), 9000u);
  std::vector<std::uint8_t> codes(expected_codes.bytes.size());
  std::vector<std::uint8_t> scales(expected_scales.bytes.size());
  quantize(x, codes, scales);
  EXPECT_EQ(codes, expected_codes.bytes);
  EXPECT_EQ(scales, expected_scales.bytes);
  std::vector<float> values(x.size());
  dequantize(codes, scales, values);
  EXPECT_EQ(different_bits(values, vectors().at(name + ".y").floats), 0u);
}

TEST(OfficialQuantizersTest, Fp8HasTheOfficialCodesScalesAndValues) {
  expect_official("fp8", quantize_fp8, dequantize_fp8);
}

TEST(OfficialQuantizersTest, Fp4OfTheIndexHasTheOfficialCodesScalesAndValues) {
  expect_official("fp4_index", quantize_fp4_index, dequantize_fp4_index);
}

TEST(OfficialQuantizersTest, Fp4OfTheMainRowsHasTheOfficialCodesScalesAndValues) {
  expect_official("fp4_main", quantize_fp4_main, dequantize_fp4_main);
}

TEST(OfficialQuantizersTest, FakeQuantizersHaveTheOfficialValues) {
  std::vector<float> fp8 = vectors().at("fp8.x").floats;
  fake_quantize_fp8(fp8);
  EXPECT_EQ(different_bits(fp8, vectors().at("fp8.y").floats), 0u);
  std::vector<float> fp4 = vectors().at("fp4_index.x").floats;
  fake_quantize_fp4_index(fp4);
  EXPECT_EQ(different_bits(fp4, vectors().at("fp4_index.y").floats), 0u);
}

TEST(OfficialQuantizersTest, EveryCodeHasTheOfficialValue) {
  std::vector<float> fp8;
  std::vector<float> scales;
  std::vector<float> fp4;
  for (std::uint32_t code = 0; code < 256; ++code) {
    fp8.push_back(to_float(Fp8E4m3{static_cast<std::uint8_t>(code)}));
    scales.push_back(to_float(E8m0{static_cast<std::uint8_t>(code)}));
    if (code < 16) fp4.push_back(to_float(Fp4E2m1{static_cast<std::uint8_t>(code)}));
  }
  EXPECT_EQ(different_bits(fp8, vectors().at("e4m3.values").floats), 0u);
  EXPECT_EQ(different_bits(scales, vectors().at("e8m0.values").floats), 0u);
  EXPECT_EQ(different_bits(fp4, vectors().at("e2m1.values").floats), 0u);
}

}  // namespace
}  // namespace locket::numerics
