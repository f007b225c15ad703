#include "kernels/weight_matrix.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>

#include "kernels/sum_order.h"
#include "numerics/bf16.h"
#include "numerics/e8m0.h"
#include "numerics/fp4_e2m1.h"
#include "numerics/fp8_e4m3.h"
#include "tests/support/kernel_data.h"

namespace locket::kernels {
namespace {

// The value of an element as the checkpoint stores it, row-major.
float stored_value(const RandomMatrix& m, std::size_t row, std::size_t column) {
  const std::size_t at = row * m.columns + column;
  const std::size_t column_groups = (m.columns + 31) / 32;
  const auto byte = [](std::byte value) { return std::to_integer<std::uint8_t>(value); };
  switch (m.format) {
    case WeightFormat::kBf16: {
      numerics::Bf16 value;
      std::memcpy(&value.bits, m.values.data() + at * 2, 2);
      return numerics::to_float(value);
    }
    case WeightFormat::kF32: {
      float value = 0.0f;
      std::memcpy(&value, m.values.data() + at * 4, 4);
      return value;
    }
    case WeightFormat::kFp8: {
      const std::byte scale = m.scales[row / 32 * column_groups + column / 32];
      return numerics::to_float(numerics::Fp8E4m3{byte(m.values[at])}) *
             numerics::to_float(numerics::E8m0{byte(scale)});
    }
    case WeightFormat::kFp8F32: {
      const std::size_t block = row / 128 * ((m.columns + 127) / 128) + column / 128;
      float scale = 0.0f;
      std::memcpy(&scale, m.scales.data() + block * 4, 4);
      return numerics::to_float(numerics::Fp8E4m3{byte(m.values[at])}) * scale;
    }
    case WeightFormat::kFp4: {
      const std::uint8_t codes = byte(m.values[at / 2]);
      const auto code = at % 2 == 0 ? numerics::even_fp4(codes) : numerics::odd_fp4(codes);
      const std::byte scale = m.scales[row * column_groups + column / 32];
      return numerics::to_float(code) * numerics::to_float(numerics::E8m0{byte(scale)});
    }
    case WeightFormat::kAffine4:
    case WeightFormat::kAffine8: {
      const bool is_small = m.format == WeightFormat::kAffine4;
      const std::uint8_t codes = byte(m.values[is_small ? at / 2 : at]);
      const int code = is_small ? codes >> (at % 2 * 4) & 15 : codes;
      const std::size_t scale_at = (row * column_groups + column / 32) * 8;
      float scale = 0.0f;
      float offset = 0.0f;
      std::memcpy(&scale, m.scales.data() + scale_at, 4);
      std::memcpy(&offset, m.scales.data() + scale_at + 4, 4);
      scale = flush_denormal(scale);
      return flush_denormal(static_cast<float>(code) * scale + flush_denormal(offset));
    }
    case WeightFormat::kCount:
      break;
  }
  return -1.0f;
}

void expect_stored_values(WeightFormat format, std::size_t rows, std::size_t columns,
                          Spread spread) {
  RandomValues random(static_cast<std::uint32_t>(rows + columns));
  const RandomMatrix stored = random_matrix(format, rows, columns, spread, random);
  const WeightMatrix packed = stored.packed();
  ASSERT_EQ(packed.rows, rows);
  ASSERT_EQ(packed.columns, columns);
  for (std::size_t i = 0; i < rows * columns; ++i) {
    const std::size_t row = i / columns;
    const std::size_t column = i % columns;
    ASSERT_TRUE(is_same(weight_at(packed, row, column), stored_value(stored, row, column)))
        << format_name(format) << " (" << row << ", " << column << ")";
  }
}

void expect_stored_values_of_all_shapes(WeightFormat format, Spread spread) {
  for (const std::size_t rows : {1, 15, 16, 17, 32, 33, 70}) {
    for (const std::size_t columns : {1, 8, 31, 32, 64, 100}) {
      if (needs_whole_groups(format) && columns % 32 != 0) continue;
      expect_stored_values(format, rows, columns, spread);
    }
  }
}

TEST(WeightMatrixTest, KeepsEveryStoredValue) {
  for (const WeightFormat format : kWeightFormats) {
    for (const Spread spread : {Spread::kUsual, Spread::kTiny, Spread::kHuge}) {
      expect_stored_values_of_all_shapes(format, spread);
    }
  }
}

TEST(WeightMatrixTest, PadsWithZeros) {
  for (const WeightFormat format : kWeightFormats) {
    RandomValues random(1);
    const std::size_t columns = needs_whole_groups(format) ? 32 : 40;
    const WeightMatrix packed = random_matrix(format, 5, columns, Spread::kTiny, random).packed();
    for (std::size_t i = 0; i < 16 * packed.column_groups() * 32; ++i) {
      const std::size_t row = i % 16;
      const std::size_t column = i / 16;
      if (row < 5 && column < columns) continue;
      EXPECT_EQ(weight_at(packed, row, column), 0.0f);
      if (tile_scale_bytes(format) == 0) {
        EXPECT_FALSE(std::signbit(weight_at(packed, row, column)));
      }
    }
  }
}

TEST(WeightMatrixTest, CountsItsBytes) {
  RandomValues random(2);
  const auto bytes = [&](WeightFormat format) {
    return random_matrix(format, 64, 64, Spread::kUsual, random).packed().byte_count();
  };
  EXPECT_EQ(bytes(WeightFormat::kF32), 64u * 64 * 4);
  EXPECT_EQ(bytes(WeightFormat::kBf16), 64u * 64 * 2);
  EXPECT_EQ(bytes(WeightFormat::kFp8), 64u * 64 + 4 * 2);
  EXPECT_EQ(bytes(WeightFormat::kFp4), 64u * 64 / 2 + 64 * 2);
  EXPECT_EQ(bytes(WeightFormat::kFp8F32), 64u * 64 + 4 * 2 * sizeof(float));
  EXPECT_EQ(bytes(WeightFormat::kAffine4), 64u * 64 / 2 + 64 * 2 * 2 * sizeof(float));
  EXPECT_EQ(bytes(WeightFormat::kAffine8), 64u * 64 + 64 * 2 * 2 * sizeof(float));
}

TEST(WeightMatrixTest, RefusesNanScales) {
  for (const WeightFormat format : {WeightFormat::kFp8, WeightFormat::kFp4}) {
    RandomValues random(3);
    RandomMatrix stored = random_matrix(format, 64, 64, Spread::kUsual, random);
    stored.scales[3] = std::byte{255};
    const auto packed = pack_weights(stored.stored());
    ASSERT_FALSE(packed.has_value());
    EXPECT_EQ(packed.error().code, ErrorCode::kBadCheckpoint);
    EXPECT_NE(packed.error().message.find("scale 3"), std::string::npos) << packed.error().message;
  }
}

TEST(WeightMatrixTest, RefusesFloatScalesThatAreNotFinite) {
  for (const float bad : {std::nanf(""), HUGE_VALF, -HUGE_VALF}) {
    RandomValues random(3);
    RandomMatrix stored = random_matrix(WeightFormat::kFp8F32, 200, 300, Spread::kUsual, random);
    ASSERT_EQ(stored.scales.size(), 6 * sizeof(float));
    std::memcpy(stored.scales.data() + 4 * sizeof(float), &bad, sizeof bad);
    const auto packed = pack_weights(stored.stored());
    ASSERT_FALSE(packed.has_value());
    EXPECT_EQ(packed.error().code, ErrorCode::kBadCheckpoint);
    EXPECT_NE(packed.error().message.find("scale 4 is "), std::string::npos)
        << packed.error().message;
    RandomMatrix affine = random_matrix(WeightFormat::kAffine4, 20, 64, Spread::kUsual, random);
    std::memcpy(affine.scales.data() + 7 * sizeof(float), &bad, sizeof bad);
    const auto with_offset = pack_weights(affine.stored());
    ASSERT_FALSE(with_offset.has_value());
    EXPECT_NE(with_offset.error().message.find("scale 7 is "), std::string::npos);
  }
}

TEST(WeightMatrixTest, OneFloatScaleIsForABlockOf128RowsAndColumns) {
  RandomMatrix stored{
      .format = WeightFormat::kFp8F32, .rows = 150, .columns = 270, .values = {}, .scales = {}};
  stored.values.assign(150 * 270, std::byte{numerics::to_fp8_e4m3(1.0f).code});
  for (const float scale : {0.1f, 0.2f, 0.3f, 0.4f, 0.5f, 0.6f}) {
    const auto bytes = std::bit_cast<std::array<std::byte, 4>>(scale);
    stored.scales.insert(stored.scales.end(), bytes.begin(), bytes.end());
  }
  const WeightMatrix packed = stored.packed();
  EXPECT_EQ(weight_at(packed, 0, 0), 0.1f);
  EXPECT_EQ(weight_at(packed, 127, 127), 0.1f);
  EXPECT_EQ(weight_at(packed, 127, 128), 0.2f);
  EXPECT_EQ(weight_at(packed, 0, 269), 0.3f);
  EXPECT_EQ(weight_at(packed, 128, 127), 0.4f);
  EXPECT_EQ(weight_at(packed, 149, 255), 0.5f);
  EXPECT_EQ(weight_at(packed, 149, 256), 0.6f);
}

TEST(WeightMatrixTest, RefusesNanCodesOfEitherSign) {
  for (const auto& [code, format] : {std::pair{0x7Fu, WeightFormat::kFp8},
                                     {0xFFu, WeightFormat::kFp8},
                                     {0x7Fu, WeightFormat::kFp8F32},
                                     {0xFFu, WeightFormat::kFp8F32}}) {
    RandomValues random(4);
    RandomMatrix stored = random_matrix(format, 32, 32, Spread::kUsual, random);
    stored.values[77] = static_cast<std::byte>(code);
    const auto packed = pack_weights(stored.stored());
    ASSERT_FALSE(packed.has_value());
    EXPECT_EQ(packed.error().code, ErrorCode::kBadCheckpoint);
    EXPECT_NE(packed.error().message.find("value 77"), std::string::npos) << packed.error().message;
  }
}

TEST(WeightMatrixTest, TakesEveryOtherCode) {
  RandomMatrix stored{
      .format = WeightFormat::kFp8, .rows = 8, .columns = 32, .values = {}, .scales = {}};
  for (unsigned code = 0; code < 256; ++code) {
    stored.values.push_back(static_cast<std::byte>((code & 0x7Fu) == 0x7Fu ? 0u : code));
  }
  for (unsigned scale = 0; scale < 255; ++scale) {
    stored.scales.assign(1, static_cast<std::byte>(scale));
    EXPECT_TRUE(pack_weights(stored.stored()).has_value()) << scale;
  }
}

}  // namespace
}  // namespace locket::kernels
