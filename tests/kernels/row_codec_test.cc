#include "kernels/row_codec.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <vector>

#include "numerics/bf16.h"
#include "tests/model/mechanism_inputs.h"

namespace locket::kernels {
namespace {

constexpr RowFormat kFormats[] = {RowFormat::kFp4Main, RowFormat::kFp4Index, RowFormat::kFp8,
                                  RowFormat::kF32};
// Those of earlier generations take any width.
constexpr RowFormat kAnyWidth[] = {RowFormat::kF32,      RowFormat::kBf16,  RowFormat::kMlaFp8,
                                   RowFormat::kFp8Index, RowFormat::kV4Fp8, RowFormat::kV4Fp8F32};

std::vector<float> through_memory(RowFormat format, std::span<const float> values) {
  std::vector<std::byte> bytes(row_bytes(format, values.size()));
  encode_row(format, values, bytes);
  std::vector<float> decoded(values.size());
  decode_row(format, bytes, decoded);
  return decoded;
}

std::vector<int> encoded(RowFormat format, std::span<const float> values) {
  std::vector<std::byte> bytes(row_bytes(format, values.size()));
  encode_row(format, values, bytes);
  std::vector<int> numbers;
  for (const std::byte byte : bytes) numbers.push_back(std::to_integer<int>(byte));
  return numbers;
}

TEST(RowCodecTest, TakesTheReleasedBytes) {
  EXPECT_EQ(row_bytes(RowFormat::kFp4Main, 512), 288U);
  EXPECT_EQ(row_bytes(RowFormat::kFp4Index, 128), 68U);
  EXPECT_EQ(row_bytes(RowFormat::kFp8, 512), 528U);
  EXPECT_EQ(row_bytes(RowFormat::kF32, 512), 2'048U);
  EXPECT_EQ(row_bytes(RowFormat::kBf16, 576), 1'152U);
  EXPECT_EQ(row_bytes(RowFormat::kMlaFp8, 576), 656U);
  EXPECT_EQ(row_bytes(RowFormat::kFp8Index, 128), 132U);
  EXPECT_EQ(row_bytes(RowFormat::kV4Fp8, 512), 584U);
}

// 128 codes of two groups, two scales and zeros up to eight, and the rest in bfloat16.
TEST(RowCodecTest, V4RowsHoldCodesThenScalesThenTheLastGroup) {
  std::vector<float> row(128 + 32, 0.0f);
  row[0] = 448.0f;
  row[63] = -1.0f;
  row[64] = 768.0f;
  row[128] = 1.0078125f;  // three bits more than E4M3 has
  row[159] = -3.0f;
  const std::vector<int> bytes = encoded(RowFormat::kV4Fp8, row);
  ASSERT_EQ(bytes.size(), 128U + 8 + 2 * 32);
  EXPECT_EQ(bytes[0], 0x7E);
  EXPECT_EQ(bytes[63], 0xB8);
  EXPECT_EQ(bytes[64], 0x7C);  // 384 times 2
  EXPECT_EQ(bytes[128], 127);
  EXPECT_EQ(bytes[129], 128);
  for (std::size_t i = 130; i < 136; ++i) EXPECT_EQ(bytes[i], 0);
  EXPECT_EQ(bytes[136] | bytes[137] << 8, 0x3F81);
  EXPECT_EQ(bytes[198] | bytes[199] << 8, 0xC040);
  EXPECT_EQ(through_memory(RowFormat::kV4Fp8, row), row);
}

TEST(RowCodecTest, TheLastGroupOfAV4RowIsWholeOrShort) {
  for (const std::size_t width : {1, 63, 64, 65, 96, 128, 129, 512}) {
    std::vector<float> row = model::random_floats(7, width);
    const std::vector<float> stored = through_memory(RowFormat::kV4Fp8, row);
    const std::vector<float> exact = through_memory(RowFormat::kV4Fp8F32, row);
    const std::size_t coded = (width - 1) / 64 * 64;
    for (std::size_t i = 0; i < width; ++i) {
      EXPECT_EQ(stored[i], i < coded ? exact[i] : numerics::round_to_bf16(row[i])) << width;
      if (i >= coded) {
        EXPECT_EQ(exact[i], row[i]) << width;
      }
      EXPECT_NEAR(stored[i], row[i], 0x1p-4f) << width;
    }
    EXPECT_EQ(through_memory(RowFormat::kV4Fp8, stored), stored) << "what is stored stays";
  }
}

// 128 codes, their scale, 2 codes, theirs, and 64 values of bfloat16.
TEST(RowCodecTest, LatentRowsHoldCodesThenScalesThenTheTail) {
  std::vector<float> row(130 + kMlaFp8Tail, 0.0f);
  row[0] = 448.0f;
  row[127] = -1.0f;
  row[129] = 768.0f;
  row[130] = 1.0078125f;  // three bits more than E4M3 has
  row[193] = -3.0f;
  const std::vector<int> bytes = encoded(RowFormat::kMlaFp8, row);
  ASSERT_EQ(bytes.size(), 130U + 2 * 4 + 2 * 64);
  EXPECT_EQ(bytes[0], 0x7E);
  EXPECT_EQ(bytes[127], 0xB8);
  EXPECT_EQ(bytes[129], 0x7C);  // 384 times 2
  const auto word = [&](std::size_t at) {
    return bytes[at] | bytes[at + 1] << 8 | bytes[at + 2] << 16 | bytes[at + 3] << 24;
  };
  EXPECT_EQ(word(130), 0x3F800000);
  EXPECT_EQ(word(134), 0x40000000);
  EXPECT_EQ(bytes[138] | bytes[139] << 8, 0x3F81);
  EXPECT_EQ(bytes[264] | bytes[265] << 8, 0xC040);
  EXPECT_EQ(through_memory(RowFormat::kMlaFp8, row), row);
}

TEST(RowCodecTest, IndexKeysOfOneScaleRoundItUpToAPowerOfTwo) {
  std::vector<float> key(128, 0.0f);
  key[5] = 450.0f;
  const std::vector<int> bytes = encoded(RowFormat::kFp8Index, key);
  ASSERT_EQ(bytes.size(), 132U);
  EXPECT_EQ(bytes[131] << 24 | bytes[130] << 16, 0x40000000);
  EXPECT_EQ(through_memory(RowFormat::kFp8Index, key)[5], 448.0f);
}

TEST(RowCodecTest, FormatsOfEarlierGenerationsTakeAnyWidth) {
  for (const RowFormat format : kAnyWidth) {
    for (std::size_t width = 1; width <= 300; width += width < 8 ? 1 : 29) {
      const std::vector<float> values =
          model::random_floats(static_cast<std::uint32_t>(width), width);
      const std::vector<float> once = through_memory(format, values);
      EXPECT_EQ(through_memory(format, once), once) << width;
      for (std::size_t i = 0; i < width; ++i) EXPECT_NEAR(once[i], values[i], 1.0f / 16.0f);
    }
  }
}

TEST(RowCodecTest, CodesComeFirstThenScales) {
  std::vector<float> row(32, 0.0f);
  row[0] = 6.0f;
  row[1] = -3.0f;
  row[16] = 0.5f;
  row[17] = 1.5f;
  // Main rows: scale 6 / 6 = 1 (E4M3 0x38) and 1.5 / 6 = 0.25 (0x28); 0.5 / 0.25 = 2, 6.
  const std::vector<int> main = encoded(RowFormat::kFp4Main, row);
  ASSERT_EQ(main.size(), 18U);
  EXPECT_EQ(main[0], 0xD7);
  EXPECT_EQ(main[8], 0x74);
  EXPECT_EQ(main[16], 0x38);
  EXPECT_EQ(main[17], 0x28);
  // Index rows: one scale of 2^0 for all 32.
  const std::vector<int> index = encoded(RowFormat::kFp4Index, row);
  ASSERT_EQ(index.size(), 17U);
  EXPECT_EQ(index[0], 0xD7);
  EXPECT_EQ(index[8], 0x31);
  EXPECT_EQ(index[16], 127);
  // Window rows: 6 / 448 rounds up to 2^-6; 6 * 64 = 384 is 0x7C, -192 is 0xF4.
  const std::vector<int> window = encoded(RowFormat::kFp8, row);
  ASSERT_EQ(window.size(), 33U);
  EXPECT_EQ(window[0], 0x7C);
  EXPECT_EQ(window[1], 0xF4);
  EXPECT_EQ(window[32], 127 - 6);
}

TEST(RowCodecTest, WhatWasStoredIsStoredAgainUnchanged) {
  for (const RowFormat format : kFormats) {
    for (std::uint32_t seed = 0; seed < 50; ++seed) {
      std::vector<float> values = model::random_floats(seed, 96);
      for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] *= static_cast<float>(1U << (seed % 7 + i / 32));
      }
      const std::vector<float> once = through_memory(format, values);
      EXPECT_EQ(through_memory(format, once), once);
      if (format == RowFormat::kF32) {
        EXPECT_EQ(once, values);
      }
    }
  }
}

TEST(RowCodecTest, GroupsDoNotTouchEachOther) {
  for (const RowFormat format : kFormats) {
    const std::vector<float> values = model::random_floats(3, 64);
    std::vector<float> changed = values;
    for (std::size_t i = 0; i < 32; ++i) changed[i] *= 1'000.0f;
    const std::vector<float> first = through_memory(format, values);
    const std::vector<float> second = through_memory(format, changed);
    EXPECT_TRUE(std::equal(first.begin() + 32, first.end(), second.begin() + 32));
  }
}

TEST(RowCodecTest, ZerosStayZeros) {
  for (const RowFormat format : kFormats) {
    EXPECT_EQ(through_memory(format, std::vector<float>(64, 0.0f)), std::vector<float>(64, 0.0f));
  }
}

TEST(RowCodecTest, ErrorsStayBelowHalfAStepOfTheGroup) {
  const std::vector<float> values = model::random_floats(8, 512);
  const auto largest_error = [&](RowFormat format) {
    const std::vector<float> decoded = through_memory(format, values);
    float largest = 0.0f;
    for (std::size_t i = 0; i < values.size(); ++i) {
      largest = std::max(largest, std::fabs(decoded[i] - values[i]));
    }
    return largest;
  };
  // The widest gap of E2M1 is 2 of 6 scales, of E4M3 32 of 448; a scale is at most 1/6 (rounded to
  // E4M3), 2^-2 and 2^-8 here.
  EXPECT_LE(largest_error(RowFormat::kFp4Main), 1.0625f / 6.0f);
  EXPECT_GT(largest_error(RowFormat::kFp4Main), 0.1f);
  EXPECT_LE(largest_error(RowFormat::kFp4Index), 0.25f);
  EXPECT_LE(largest_error(RowFormat::kFp8), 16.0f / 256.0f);
  EXPECT_EQ(largest_error(RowFormat::kF32), 0.0f);
}

}  // namespace
}  // namespace locket::kernels
