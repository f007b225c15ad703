// FP8 weights with float32 scales per 128 x 128 ("weight_scale_inv"), as V3 stores them.
#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>
#include <string>
#include <vector>

#include "model/generations/weight_reader.h"
#include "numerics/fp8_e4m3.h"
#include "tests/support/checkpoint_files.h"

namespace locket::model {
namespace {

using test_support::FileTensor;
using test_support::TempFolder;
using ::testing::HasSubstr;

constexpr std::int64_t kRows = 300;
constexpr std::int64_t kColumns = 200;

std::string codes() {
  std::string bytes(kRows * kColumns, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const auto code = static_cast<std::uint8_t>(i * 37 + i / 251);
    bytes[i] = static_cast<char>((code & 0x7F) == 0x7F ? 0x31 : code);
  }
  return bytes;
}

std::string float_bytes(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

// No powers of two: [3, 2] blocks, the last of which are partial.
const std::vector<float> kScales = {0.3f, 1.7f, 0.011f, 5.9f, 0.0007f, 33.0f};

FileTensor scale_tensor(const std::vector<float>& scales, std::vector<std::int64_t> shape = {3, 2},
                        const std::string& dtype = "F32") {
  return {"a.weight_scale_inv", dtype, std::move(shape), float_bytes(scales)};
}

class FloatScalesTest : public ::testing::Test {
 protected:
  WeightReader& open(FileTensor scale) {
    test_support::write_checkpoint(
        folder_,
        {.files = {{"model.safetensors",
                    {{"a.weight", "F8_E4M3", {kRows, kColumns}, codes()}, std::move(scale)}}}});
    auto opened = checkpoint::Checkpoint::open(folder_.path());
    if (!opened) throw std::runtime_error(opened.error().message);
    checkpoint_.push_back(std::move(*opened));
    reader_.emplace_back(checkpoint_.front(), LoadProgress());
    return reader_.front();
  }

  TempFolder folder_;
  std::vector<checkpoint::Checkpoint> checkpoint_;
  std::vector<WeightReader> reader_;
};

TEST_F(FloatScalesTest, MultiplyTheCodesOfTheirBlock) {
  const auto matrix = open(scale_tensor(kScales)).matrix("a", kRows, kColumns);
  ASSERT_TRUE(matrix) << matrix.error().message;
  EXPECT_EQ(matrix->format, kernels::WeightFormat::kFp8F32);
  const std::string bytes = codes();
  for (const std::size_t row : {0, 1, 127, 128, 191, 255, 256, 299}) {
    for (const std::size_t column : {0, 31, 127, 128, 199}) {
      const auto code = static_cast<std::uint8_t>(bytes[row * kColumns + column]);
      const float scale = kScales[row / 128 * 2 + column / 128];
      EXPECT_EQ(kernels::weight_at(*matrix, row, column), numerics::kFp8E4m3Values[code] * scale)
          << row << ", " << column;
    }
  }
  EXPECT_TRUE(checkpoint_.front().check_all_claimed());
}

// Blocks are always 128 x 128, also the last ones: 192 rows are never two blocks of 96.
TEST_F(FloatScalesTest, AnotherNumberOfBlocksIsRefused) {
  const auto matrix = open(scale_tensor({1.0f, 2.0f}, {1, 2})).matrix("a", kRows, kColumns);
  ASSERT_FALSE(matrix);
  EXPECT_EQ(matrix.error().code, ErrorCode::kBadCheckpoint);
  EXPECT_THAT(matrix.error().message, HasSubstr("a.weight_scale_inv"));
  EXPECT_THAT(matrix.error().message, HasSubstr("[3, 2]"));
}

TEST_F(FloatScalesTest, AnotherTypeOfScalesIsRefused) {
  FileTensor halves = scale_tensor({1.0f, 2.0f, 3.0f}, {3, 2}, "BF16");
  const auto matrix = open(std::move(halves)).matrix("a", kRows, kColumns);
  ASSERT_FALSE(matrix);
  EXPECT_THAT(matrix.error().message, HasSubstr("a.weight_scale_inv"));
}

TEST_F(FloatScalesTest, AScaleThatIsNoNumberIsRefused) {
  std::vector<float> scales = kScales;
  scales[3] = std::numeric_limits<float>::quiet_NaN();
  const auto matrix = open(scale_tensor(scales)).matrix("a", kRows, kColumns);
  ASSERT_FALSE(matrix);
  EXPECT_EQ(matrix.error().code, ErrorCode::kBadCheckpoint);
  EXPECT_THAT(matrix.error().message, HasSubstr("a.weight"));
}

TEST_F(FloatScalesTest, GroupsThatCutBlocksAreRefused) {
  WeightReader& reader = open(scale_tensor(kScales));
  const auto groups = reader.grouped_matrix("a", kRows, kColumns, 3);
  ASSERT_FALSE(groups);
  EXPECT_EQ(groups.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(groups.error().message, HasSubstr("a.weight"));
}

}  // namespace
}  // namespace locket::model
