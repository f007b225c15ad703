#include "model/engram.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <vector>

#include "numerics/bf16.h"
#include "numerics/e8m0.h"
#include "numerics/fp8_e4m3.h"
#include "tests/model/mechanism_inputs.h"
#include "tests/support/checkpoint_files.h"

namespace locket::model {
namespace {

using test_support::CheckpointText;
using test_support::TempFolder;

double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

// Two streams of 32; the gathered rows [32] are the value and, times `key_factor`, both keys.
EngramWeights gate_weights(float key_factor) {
  tensor::FloatMatrix wkv(96, 32);
  for (std::size_t i = 0; i < 32; ++i) {
    wkv.row(i)[i] = key_factor;
    wkv.row(32 + i)[i] = -key_factor;
    wkv.row(64 + i)[i] = 1.0f;
  }
  return {.wkv = weight_matrix(wkv), .query_key = std::vector<float>(64, 1.0f)};
}

TEST(EngramTest, AddsTheValueThroughAGatePerStream) {
  TestContext test(NumericsMode::kWide);
  const EngramWeights weights = gate_weights(3.0f);
  const tensor::FloatMatrix rows = random_matrix(1, 2, 32);
  const tensor::FloatMatrix before = random_matrix(2, 2, 64);
  tensor::FloatMatrix streams = before;
  engram_forward(test.context, weights, 1e-20f, rows, streams);
  for (std::size_t token = 0; token < 2; ++token) {
    for (std::size_t stream = 0; stream < 2; ++stream) {
      const auto x = before.row(token).subspan(stream * 32, 32);
      const auto key = rows.row(token);
      double dot = 0.0;
      double x_squares = 0.0;
      double key_squares = 0.0;
      for (std::size_t i = 0; i < 32; ++i) {
        dot += static_cast<double>(x[i]) * static_cast<double>(key[i]);
        x_squares += static_cast<double>(x[i]) * static_cast<double>(x[i]);
        key_squares += static_cast<double>(key[i]) * static_cast<double>(key[i]);
      }
      // The factor of the key falls out; its sign is that of the stream. 32 * 32^-0.5 = 32^0.5.
      dot *= (stream == 0 ? 1.0 : -1.0) * std::sqrt(32.0) / std::sqrt(x_squares * key_squares);
      const double gate = sigmoid(std::copysign(std::sqrt(std::fabs(dot)), dot));
      for (std::size_t i = 0; i < 32; ++i) {
        EXPECT_NEAR(streams.row(token)[stream * 32 + i],
                    static_cast<double>(x[i]) + gate * static_cast<double>(key[i]), 1e-5);
      }
    }
  }
}

TEST(EngramTest, QueryAndKeyWeightsAppearAsTheirProduct) {
  TestContext test(NumericsMode::kWide);
  EngramWeights weights = gate_weights(1.0f);
  const tensor::FloatMatrix rows = random_matrix(1, 1, 32);
  tensor::FloatMatrix plain = random_matrix(2, 1, 64);
  tensor::FloatMatrix weighted = plain;
  engram_forward(test.context, weights, 1e-20f, rows, plain);
  for (float& value : weights.query_key) value = -1.0f;
  engram_forward(test.context, weights, 1e-20f, rows, weighted);
  // sigmoid(-g) = 1 - sigmoid(g): what the two add is the value together.
  const tensor::FloatMatrix before = random_matrix(2, 1, 64);
  for (std::size_t i = 0; i < 64; ++i) {
    EXPECT_NEAR(plain.row(0)[i] + weighted.row(0)[i] - 2.0f * before.row(0)[i], rows.row(0)[i % 32],
                1e-6);
  }
}

// |dot| has a floor of 1e-6, so the gate keeps away from one half by 1e-3 / 4, on the side of dot's
// sign; zero counts as positive.
TEST(EngramTest, TheGateHasAFloor) {
  TestContext test(NumericsMode::kWide);
  const EngramWeights weights = gate_weights(0.0f);
  const tensor::FloatMatrix rows = random_matrix(1, 1, 32);
  tensor::FloatMatrix streams(1, 64);
  engram_forward(test.context, weights, 1e-20f, rows, streams);
  const auto gate = static_cast<float>(sigmoid(1e-3));
  for (std::size_t i = 0; i < 32; ++i) EXPECT_FLOAT_EQ(streams.row(0)[i], gate * rows.row(0)[i]);
  EXPECT_GT(gate, 0.5f);
}

TEST(EngramTest, ATinyDotKeepsItsSign) {
  TestContext test(NumericsMode::kWide);
  const EngramWeights weights = gate_weights(1.0f);
  // x and key are almost orthogonal: the dot is 2^-40 of their lengths, plus or minus.
  tensor::FloatMatrix rows(1, 32);
  rows.row(0)[0] = 1.0f;
  tensor::FloatMatrix streams(1, 64);
  streams.row(0)[0] = streams.row(0)[32] = 0x1p-40f;
  streams.row(0)[1] = streams.row(0)[33] = 1.0f;
  engram_forward(test.context, weights, 1e-20f, rows, streams);
  EXPECT_FLOAT_EQ(streams.row(0)[0], static_cast<float>(sigmoid(1e-3)));
  EXPECT_FLOAT_EQ(streams.row(0)[32], static_cast<float>(sigmoid(-1e-3)));
}

// A table [5, 64] in FP8 with scales, and the same values in BF16.
struct TableFiles {
  TableFiles() {
    std::string codes;
    std::string scales;
    std::string halves;
    for (int row = 0; row < 5; ++row) {
      scales += {static_cast<char>(120 + row), static_cast<char>(127)};
      for (int i = 0; i < 64; ++i) {
        const auto code = static_cast<std::uint8_t>((row * 64 + i) * 7 % 256);
        const auto valid = static_cast<std::uint8_t>((code & 0x7F) == 0x7F ? 0x7E : code);
        codes.push_back(static_cast<char>(valid));
        const auto scale = numerics::E8m0{static_cast<std::uint8_t>(i < 32 ? 120 + row : 127)};
        const float value =
            numerics::to_float(numerics::Fp8E4m3{valid}) * numerics::to_float(scale);
        values.push_back(value);
        const std::uint16_t bits = numerics::to_bf16(value).bits;
        halves.append(reinterpret_cast<const char*>(&bits), 2);
      }
    }
    test_support::write_checkpoint(folder, {.files = {{"model.safetensors",
                                                       {{"t.weight", "F8_E4M3", {5, 64}, codes},
                                                        {"t.scale", "F8_E8M0", {5, 2}, scales},
                                                        {"b.weight", "BF16", {5, 64}, halves}}}}});
  }

  TempFolder folder;
  std::vector<float> values;  // [5, 64]
};

void expect_rows(const EngramTable& table, const TableFiles& files) {
  EXPECT_EQ(table.head_dim(), 64U);
  for (std::int64_t row = 0; row < 5; ++row) {
    std::vector<float> read(64);
    ASSERT_TRUE(table.read_row(row, read));
    const auto expected = std::span(files.values).subspan(static_cast<std::size_t>(row) * 64, 64);
    EXPECT_TRUE(std::ranges::equal(read, expected)) << row;
  }
}

TEST(EngramTableTest, RowsAreTheSameFromMemoryAndFromTheFile) {
  const TableFiles files;
  auto checkpoint = checkpoint::Checkpoint::open(files.folder.path());
  ASSERT_TRUE(checkpoint) << checkpoint.error().message;
  for (const bool is_quantized : {true, false}) {
    const auto weight = *checkpoint->find(is_quantized ? "t.weight" : "b.weight");
    const auto scale = is_quantized ? checkpoint->find("t.scale") : std::nullopt;
    for (const std::uint64_t limit :
         {std::uint64_t{0}, weight.byte_count() - 1, weight.byte_count()}) {
      const auto table = EngramTable::open(weight, scale, limit);
      ASSERT_TRUE(table);
      expect_rows(*table, files);
    }
  }
}

TEST(EngramTableTest, AFileThatBecameShortIsAnError) {
  const TableFiles files;
  auto checkpoint = checkpoint::Checkpoint::open(files.folder.path());
  ASSERT_TRUE(checkpoint);
  const auto table =
      EngramTable::open(*checkpoint->find("t.weight"), checkpoint->find("t.scale"), 0);
  ASSERT_TRUE(table);
  std::filesystem::resize_file(files.folder / "model.safetensors", 300);
  std::vector<float> row(64);
  const Status status = table->read_row(4, row);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kIo);
  EXPECT_NE(status.error().message.find("t.weight"), std::string::npos) << status.error().message;
}

}  // namespace
}  // namespace locket::model
