#include "model/generations/weight_reader.h"

#include <cmath>
#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>
#include <string>
#include <vector>

#include "numerics/fp8_e4m3.h"
#include "tests/support/checkpoint_files.h"

namespace locket::model {
namespace {

using test_support::FileTensor;
using test_support::TempFolder;
using ::testing::HasSubstr;

std::string random_bytes(std::uint32_t seed, std::size_t count) {
  std::mt19937 random(seed);
  std::string bytes(count, '\0');
  for (char& byte : bytes) {
    const auto value = static_cast<std::uint8_t>(random());
    byte = static_cast<char>((value & 0x7F) == 0x7F ? 0x40 : value);  // no NaN code in E4M3
  }
  return bytes;
}

std::string scale_bytes(std::size_t count) {
  std::string bytes(count, '\0');
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<char>(120 + i % 9);
  return bytes;
}

std::string float_bytes(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

class WeightReaderTest : public ::testing::Test {
 protected:
  WeightReader& open(const std::vector<FileTensor>& tensors) {
    test_support::write_checkpoint(folder_, {.files = {{"model.safetensors", tensors}}});
    auto opened = checkpoint::Checkpoint::open(folder_.path());
    if (!opened) throw std::runtime_error(opened.error().message);
    checkpoint_.clear();
    checkpoint_.push_back(std::move(*opened));
    reader_.clear();
    reader_.emplace_back(checkpoint_.front(), [this](std::uint64_t done, std::uint64_t total) {
      progress_.emplace_back(done, total);
    });
    return reader_.front();
  }

  template <class T>
  void expect_refused(const Result<T>& result, ErrorCode code,
                      std::initializer_list<std::string> words) {
    ASSERT_FALSE(result);
    EXPECT_EQ(error_code_name(result.error().code), error_code_name(code));
    for (const std::string& word : words) EXPECT_THAT(result.error().message, HasSubstr(word));
    EXPECT_THAT(result.error().message, HasSubstr("model.safetensors"));
  }

  TempFolder folder_;
  std::vector<checkpoint::Checkpoint> checkpoint_;
  std::vector<WeightReader> reader_;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> progress_;
};

TEST_F(WeightReaderTest, AWeightWithScalesIsFp8OrFp4) {
  WeightReader& reader = open({{"a.weight", "F8_E4M3", {40, 64}, random_bytes(1, 40 * 64)},
                               {"a.scale", "F8_E8M0", {2, 2}, scale_bytes(4)},
                               {"b.weight", "I8", {40, 32}, random_bytes(2, 40 * 32)},
                               {"b.scale", "F8_E8M0", {40, 2}, scale_bytes(80)}});
  const auto fp8 = reader.matrix("a", 40, 64);
  ASSERT_TRUE(fp8) << fp8.error().message;
  EXPECT_EQ(fp8->format, kernels::WeightFormat::kFp8);
  EXPECT_EQ(fp8->rows, 40U);
  EXPECT_EQ(fp8->columns, 64U);
  const auto fp4 = reader.matrix("b", 40, 64);
  ASSERT_TRUE(fp4) << fp4.error().message;
  EXPECT_EQ(fp4->format, kernels::WeightFormat::kFp4);
  EXPECT_TRUE(checkpoint_.front().check_all_claimed());
}

TEST_F(WeightReaderTest, AWeightWithoutScalesIsPlain) {
  const std::vector<float> values = {1.0f, -2.5f, 0.0f, 3.0f, 4.0f, 1e-3f};
  std::string halves;
  for (const float value : values) halves += float_bytes({value}).substr(2);
  WeightReader& reader = open(
      {{"f.weight", "F32", {2, 3}, float_bytes(values)}, {"h.weight", "BF16", {2, 3}, halves}});
  const auto floats = reader.matrix("f", 2, 3);
  ASSERT_TRUE(floats);
  EXPECT_EQ(floats->format, kernels::WeightFormat::kF32);
  EXPECT_EQ(kernels::weight_at(*floats, 1, 2), 1e-3f);
  const auto rounded = reader.matrix("h", 2, 3);
  ASSERT_TRUE(rounded);
  EXPECT_EQ(rounded->format, kernels::WeightFormat::kBf16);
  EXPECT_EQ(kernels::weight_at(*rounded, 0, 1), -2.5f);
  EXPECT_TRUE(reader.plain_matrix("f.weight", 2, 3));
}

TEST_F(WeightReaderTest, QuantizedBytesWithoutScalesAreRefused) {
  WeightReader& reader = open({{"a.weight", "F8_E4M3", {2, 32}, random_bytes(1, 64)}});
  expect_refused(reader.matrix("a", 2, 32), ErrorCode::kBadCheckpoint, {"a.weight", "F8_E4M3"});
}

TEST_F(WeightReaderTest, ScalesBesideAPlainWeightAreRefused) {
  WeightReader& reader = open({{"a.weight", "F32", {1, 32}, float_bytes(std::vector<float>(32))},
                               {"a.scale", "F8_E8M0", {1, 1}, scale_bytes(1)}});
  expect_refused(reader.matrix("a", 1, 32), ErrorCode::kBadCheckpoint, {"a.weight", "F32"});
}

TEST_F(WeightReaderTest, WrongShapesAreRefusedWithBoth) {
  WeightReader& reader = open({{"a.weight", "F8_E4M3", {32, 64}, random_bytes(1, 32 * 64)},
                               {"a.scale", "F8_E8M0", {2, 1}, scale_bytes(2)},
                               {"v", "F32", {3}, float_bytes({1, 2, 3})}});
  expect_refused(reader.matrix("a", 64, 32), ErrorCode::kBadCheckpoint,
                 {"a.weight", "[32, 64]", "[64, 32]"});
  expect_refused(reader.matrix("a", 32, 64), ErrorCode::kBadCheckpoint,
                 {"a.scale", "[2, 1]", "[1, 2]"});
  expect_refused(reader.values("v", {4}), ErrorCode::kBadCheckpoint, {"v", "[3]", "[4]"});
  expect_refused(reader.values("v", {1, 3}), ErrorCode::kBadCheckpoint, {"[1, 3]"});
}

TEST_F(WeightReaderTest, MissingTensorsAreNamed) {
  WeightReader& reader = open({{"v", "F32", {1}, float_bytes({1})}});
  const auto missing = reader.matrix("layers.3.attn.wq_a", 2, 32);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kBadCheckpoint);
  EXPECT_THAT(missing.error().message, HasSubstr("layers.3.attn.wq_a.weight"));
  EXPECT_FALSE(reader.values("w", {1}));
  EXPECT_FALSE(reader.bf16_bytes("v", {1})) << "F32 is not BF16";
}

TEST_F(WeightReaderTest, NanCodesAreRefused) {
  std::string codes = random_bytes(1, 32 * 32);
  std::string scales = scale_bytes(1);
  scales[0] = static_cast<char>(255);
  WeightReader& bad_scale =
      open({{"a.weight", "F8_E4M3", {32, 32}, codes}, {"a.scale", "F8_E8M0", {1, 1}, scales}});
  expect_refused(bad_scale.matrix("a", 32, 32), ErrorCode::kBadCheckpoint, {"a.weight", "NaN"});
  codes[100] = static_cast<char>(0xFF);
  WeightReader& bad_code = open(
      {{"a.weight", "F8_E4M3", {32, 32}, codes}, {"a.scale", "F8_E8M0", {1, 1}, scale_bytes(1)}});
  expect_refused(bad_code.matrix("a", 32, 32), ErrorCode::kBadCheckpoint, {"a.weight", "NaN"});
}

TEST_F(WeightReaderTest, GroupsAreConsecutiveRows) {
  WeightReader& reader = open({{"a.weight", "F8_E4M3", {96, 32}, random_bytes(1, 96 * 32)},
                               {"a.scale", "F8_E8M0", {3, 1}, scale_bytes(3)}});
  const auto whole = reader.matrix("a", 96, 32);
  const auto groups = reader.grouped_matrix("a", 96, 32, 3);
  ASSERT_TRUE(whole && groups);
  ASSERT_EQ(groups->size(), 3U);
  for (std::size_t group = 0; group < 3; ++group) {
    ASSERT_EQ((*groups)[group].rows, 32U);
    for (std::size_t row = 0; row < 32; ++row) {
      for (std::size_t column = 0; column < 32; ++column) {
        ASSERT_EQ(kernels::weight_at((*groups)[group], row, column),
                  kernels::weight_at(*whole, group * 32 + row, column));
      }
    }
  }
}

TEST_F(WeightReaderTest, GroupsThatCutScaleTilesAreRefused) {
  WeightReader& reader = open({{"a.weight", "F8_E4M3", {96, 32}, random_bytes(1, 96 * 32)},
                               {"a.scale", "F8_E8M0", {3, 1}, scale_bytes(3)},
                               {"f.weight", "F32", {4, 2}, float_bytes(std::vector<float>(8, 1))}});
  expect_refused(reader.grouped_matrix("a", 96, 32, 2), ErrorCode::kUnsupported,
                 {"a.weight", "2 groups of 48 rows", "multiple of 32"});
  EXPECT_TRUE(reader.grouped_matrix("f", 4, 2, 2)) << "plain weights have no tiles";
}

class WideTileReaderTest : public WeightReaderTest {
 protected:
  WeightReader& open_wide(const std::vector<FileTensor>& tensors) {
    open(tensors);
    reader_.clear();
    return reader_.emplace_back(checkpoint_.front(), LoadProgress{},
                                WeightReader::Reads::kEverything, Fp8Tile::k128);
  }
};

float stored_value(const FileTensor& weight, const FileTensor& scale, std::size_t row,
                   std::size_t column) {
  const auto columns = static_cast<std::size_t>(weight.shape[1]);
  const auto scale_columns = static_cast<std::size_t>(scale.shape[1]);
  const auto code = static_cast<std::uint8_t>(weight.bytes[row * columns + column]);
  const auto exponent =
      static_cast<std::uint8_t>(scale.bytes[row / 128 * scale_columns + column / 128]);
  return numerics::kFp8E4m3Values[code] * std::ldexp(1.0f, exponent - 127);
}

TEST_F(WideTileReaderTest, AScaleReachesOver128RowsAndColumns) {
  // The last tiles are partial.
  const FileTensor weight = {"a.weight", "F8_E4M3", {200, 160}, random_bytes(5, 200 * 160)};
  const FileTensor scale = {"a.scale", "F8_E8M0", {2, 2}, scale_bytes(4)};
  WeightReader& reader = open_wide({weight, scale});
  const auto matrix = reader.matrix("a", 200, 160);
  ASSERT_TRUE(matrix) << matrix.error().message;
  for (std::size_t row = 0; row < 200; ++row) {
    for (std::size_t column = 0; column < 160; ++column) {
      ASSERT_EQ(kernels::weight_at(*matrix, row, column), stored_value(weight, scale, row, column));
    }
  }
}

TEST_F(WideTileReaderTest, GroupsOfATileHaveItsScale) {
  const FileTensor weight = {"a.weight", "F8_E4M3", {192, 32}, random_bytes(6, 192 * 32)};
  const FileTensor scale = {"a.scale", "F8_E8M0", {2, 1}, scale_bytes(2)};
  WeightReader& reader = open_wide({weight,
                                    scale,
                                    {"d.weight", "F8_E4M3", {160, 32}, random_bytes(7, 160 * 32)},
                                    {"d.scale", "F8_E8M0", {2, 1}, scale_bytes(2)}});
  const auto groups = reader.grouped_matrix("a", 192, 32, 4);
  ASSERT_TRUE(groups) << groups.error().message;
  for (std::size_t row = 0; row < 192; ++row) {
    for (std::size_t column = 0; column < 32; ++column) {
      ASSERT_EQ(kernels::weight_at((*groups)[row / 48], row % 48, column),
                stored_value(weight, scale, row, column));
    }
  }
  // Rows 112 to 143 would have two scales.
  expect_refused(reader.grouped_matrix("d", 160, 32, 2), ErrorCode::kUnsupported,
                 {"d.weight", "2 groups of 80 rows", "128 x 128"});
}

TEST_F(WideTileReaderTest, Fp4HasAScalePerRowAnd32Columns) {
  WeightReader& reader = open_wide({{"b.weight", "I8", {40, 32}, random_bytes(2, 40 * 32)},
                                    {"b.scale", "F8_E8M0", {40, 2}, scale_bytes(80)},
                                    {"c.weight", "F8_E4M3", {40, 64}, random_bytes(1, 40 * 64)},
                                    {"c.scale", "F8_E8M0", {2, 2}, scale_bytes(4)}});
  const auto matrix = reader.matrix("b", 40, 64);
  ASSERT_TRUE(matrix) << matrix.error().message;
  EXPECT_EQ(matrix->format, kernels::WeightFormat::kFp4);
  expect_refused(reader.matrix("c", 40, 64), ErrorCode::kBadCheckpoint, {"c.scale", "[1, 1]"});
}

TEST_F(WeightReaderTest, NumbersAreCheckedAgainstTheirLimit) {
  const std::vector<std::int64_t> numbers = {0, 4, 2, -1, 3, 7};
  const std::string bytes(reinterpret_cast<const char*>(numbers.data()), numbers.size() * 8);
  WeightReader& reader =
      open({{"n", "I64", {3, 2}, bytes}, {"m", "I64", {2, 1}, bytes.substr(0, 16)}});
  const auto read = reader.numbers("m", {2, 1}, 5);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, (std::vector<std::int32_t>{0, 4}));
  expect_refused(reader.numbers("n", {3, 2}, 5), ErrorCode::kBadCheckpoint,
                 {"n", "entry 3 is -1", "0 to 4"});
  expect_refused(reader.numbers("m", {2, 1}, 4), ErrorCode::kBadCheckpoint, {"entry 1 is 4"});
}

TEST_F(WeightReaderTest, ValuesAreFloat32) {
  WeightReader& reader = open({{"f", "F32", {2, 2}, float_bytes({1.5f, -0.0f, 1e-40f, 3e38f})},
                               {"h", "BF16", {2}, float_bytes({1.0f}).substr(2) + "\xC0\x3F"}});
  EXPECT_EQ(*reader.values("f", {2, 2}), (std::vector<float>{1.5f, -0.0f, 1e-40f, 3e38f}));
  EXPECT_EQ(*reader.values("h", {2}), (std::vector<float>{1.0f, 1.5f}));
  EXPECT_EQ(reader.bf16_bytes("h", {2})->size(), 4U);
}

TEST_F(WeightReaderTest, ReadingNothingChecksAndClaimsAll) {
  open({{"a.weight", "F8_E4M3", {64, 64}, random_bytes(1, 64 * 64)},
        {"a.scale", "F8_E8M0", {2, 2}, std::string(4, '\xFF')},
        {"b", "F32", {3}, float_bytes({1, 2, 3})},
        {"c", "BF16", {2, 32}, random_bytes(3, 128)}});
  WeightReader reader(checkpoint_.front(), {}, WeightReader::Reads::kNothing);
  const auto groups = reader.grouped_matrix("a", 64, 64, 2);
  ASSERT_TRUE(groups) << groups.error().message;
  ASSERT_EQ(groups->size(), 2U);
  EXPECT_EQ(groups->back().rows, 32U);
  EXPECT_EQ(groups->back().columns, 64U);
  EXPECT_EQ(groups->back().byte_count(), 0U);
  EXPECT_EQ(reader.values("b", {3}).value(), std::vector<float>(3, 0.0f));
  expect_refused(reader.values("b", {4}), ErrorCode::kBadCheckpoint, {"[3]", "[4]"});
  EXPECT_EQ(reader.plain_matrix("c", 2, 32).value().byte_count(), 0U);
  expect_refused(reader.plain_matrix("d", 2, 32), ErrorCode::kBadCheckpoint, {"d"});
  EXPECT_EQ(reader.done_bytes(), 0U);
  EXPECT_TRUE(checkpoint_.front().check_all_claimed({}));
}

TEST_F(WeightReaderTest, ReportsTheBytesRead) {
  WeightReader& reader = open({{"a.weight", "F8_E4M3", {32, 32}, random_bytes(1, 1'024)},
                               {"a.scale", "F8_E8M0", {1, 1}, scale_bytes(1)},
                               {"unread", "F32", {3}, float_bytes({1, 2, 3})}});
  ASSERT_TRUE(reader.matrix("a", 32, 32));
  EXPECT_EQ(reader.done_bytes(), 1'025U);
  EXPECT_EQ(progress_,
            (std::vector<std::pair<std::uint64_t, std::uint64_t>>{{1, 1'037}, {1'025, 1'037}}));
}

}  // namespace
}  // namespace locket::model
