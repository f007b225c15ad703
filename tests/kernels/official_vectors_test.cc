// Single operations against the vectors of the vendor's own code, for every table of kernels. Sums
// run in another order there, so the last bit of a bfloat16 result may differ; how many elements do
// is printed.
#include <bit>
#include <cmath>
#include <cstdint>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <span>
#include <vector>

#include "kernels/kernel_table.h"
#include "numerics/bf16.h"
#include "numerics/group_scaled.h"
#include "tests/support/kernel_data.h"
#include "tests/support/oracle_data.h"

namespace locket::kernels {
namespace {

using test_support::OracleFile;
using test_support::OracleTensor;

const OracleFile& vectors() {
  static const OracleFile file(test_support::oracle_path("official/quantizers.safetensors"));
  return file;
}

// Steps of bfloat16 between two bfloat16 values; -0 and +0 are the same.
std::int32_t bf16_steps(float a, float b) {
  const auto position = [](float value) {
    const std::int32_t bits = numerics::to_bf16(value).bits;
    return bits < 0x8000 ? bits : 0x8000 - bits;
  };
  return std::abs(position(a) - position(b));
}

struct Comparison {
  std::size_t count = 0;
  std::size_t different = 0;
  std::int32_t worst_steps = 0;

  void add(std::span<const float> actual, std::span<const float> expected) {
    ASSERT_EQ(actual.size(), expected.size());
    for (std::size_t i = 0; i < actual.size(); ++i) {
      ++count;
      const std::int32_t steps = bf16_steps(actual[i], expected[i]);
      different += steps != 0 ? 1u : 0u;
      worst_steps = std::max(worst_steps, steps);
    }
  }

  void print(std::string_view what) const {
    test_support::print_figures(
        fmt::format("{}: {} of {} elements equal, at most {} bfloat16 steps apart", what,
                    count - different, count, worst_steps));
  }
};

class OfficialVectorsTest : public ::testing::TestWithParam<const KernelTable*> {};

std::vector<float> official_product(const KernelTable& table, const std::string& name,
                                    WeightFormat format) {
  const OracleTensor& x = vectors().at(name + ".x");
  const OracleTensor& weight = vectors().at(name + ".weight");
  const OracleTensor& scale = vectors().at(name + ".scale");
  auto packed = pack_weights({.format = format,
                              .rows = weight.rows(),
                              .columns = x.width(),
                              .values = std::as_bytes(std::span(weight.bytes)),
                              .scales = std::as_bytes(std::span(scale.bytes))});
  EXPECT_TRUE(packed.has_value());
  std::vector<float> activations = x.floats;
  table.elementwise.fake_quantize_fp8(activations);
  std::vector<float> out(x.rows() * weight.rows());
  const ActivationRows rows{.data = activations.data(),
                            .stride = x.width(),
                            .tokens = x.rows(),
                            .values = ActivationValues::kBf16};
  table.matmul_groups(*packed, rows, out.data(), weight.rows(), 0, packed->row_groups());
  for (float& value : out) value = numerics::round_to_bf16(value);
  return out;
}

TEST_P(OfficialVectorsTest, MatrixProductsAreWithinOneStepOfBfloat16) {
  for (const auto& [prefix, format] :
       {std::pair{"gemm8.", WeightFormat::kFp8}, std::pair{"gemm4.", WeightFormat::kFp4}}) {
    Comparison comparison;
    for (int i = 0; i < 4; ++i) {
      const std::string name = prefix + std::to_string(i);
      comparison.add(official_product(*GetParam(), name, format), vectors().at(name + ".y").floats);
    }
    EXPECT_LE(comparison.worst_steps, 1);
    comparison.print(fmt::format("{} {}*", GetParam()->name, prefix));
  }
}

struct Attention {
  std::vector<float> rows;  // [slots, head_dim], gathered
  std::vector<std::uint8_t> used;
};

Attention gather(const OracleTensor& rows, std::span<const std::int32_t> indices) {
  Attention result;
  for (const std::int32_t index : indices) {
    result.used.push_back(index >= 0 ? 1 : 0);
    const std::size_t row = index >= 0 ? static_cast<std::size_t>(index) : 0;
    for (std::size_t i = 0; i < rows.width(); ++i) {
      result.rows.push_back(index >= 0 ? rows.floats[row * rows.width() + i] : 0.0f);
    }
  }
  return result;
}

std::vector<float> official_attention(const KernelTable& table, const std::string& name) {
  const OracleTensor& q = vectors().at(name + ".q");  // [positions, heads, head_dim]
  const OracleTensor& rows = vectors().at(name + ".rows");
  const OracleTensor& indices = vectors().at(name + ".indices");
  const std::size_t head_dim = rows.width();
  std::vector<float> out(q.floats.size());
  for (std::size_t position = 0; position < q.rows(); ++position) {
    const Attention gathered = gather(
        rows, std::span(indices.integers).subspan(position * indices.width(), indices.width()));
    const std::vector<AttentionRow> slots = float_slots(gathered.rows, head_dim, gathered.used);
    const AttentionInput input{
        .heads = q.width() / head_dim,
        .head_dim = head_dim,
        .scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(head_dim))),
        .query = std::span(q.floats).subspan(position * q.width(), q.width()),
        .rows = slots,
        .sink = vectors().at(name + ".sink").floats,
        .rounding = Rounding::kBf16};
    table.sparse_attention(input, std::span(out).subspan(position * q.width(), q.width()));
  }
  return out;
}

TEST_P(OfficialVectorsTest, AttentionIsWithinOneStepOfBfloat16) {
  Comparison comparison;
  for (int i = 0; i < 3; ++i) {
    const std::string name = "attn." + std::to_string(i);
    comparison.add(official_attention(*GetParam(), name), vectors().at(name + ".y").floats);
  }
  EXPECT_LE(comparison.worst_steps, 1);
  comparison.print(fmt::format("{} attn.*", GetParam()->name));
}

TEST_P(OfficialVectorsTest, RotationHasTheOfficialBits) {
  for (const std::string name :
       {"window", "compressed", "micro_compressed", "odd_window", "odd_compressed"}) {
    const std::string prefix = "rope." + name;
    const OracleTensor& x = vectors().at(prefix + ".x");
    const OracleTensor& cos = vectors().at(prefix + ".cos");
    const OracleTensor& sin = vectors().at(prefix + ".sin");
    std::vector<float> rotated = x.floats;
    std::vector<float> inverse = x.floats;
    for (std::size_t row = 0; row < x.rows(); ++row) {
      const auto c = std::span(cos.floats).subspan(row * cos.width(), cos.width());
      const auto s = std::span(sin.floats).subspan(row * sin.width(), sin.width());
      const auto part = [&](std::vector<float>& values) {
        return std::span(values).subspan(row * x.width(), x.width());
      };
      const ElementwiseKernels& kernels = GetParam()->elementwise;
      kernels.rotate_pairs(part(rotated), c, s, RotaryDirection::kForward, Rounding::kBf16);
      kernels.rotate_pairs(part(inverse), c, s, RotaryDirection::kInverse, Rounding::kBf16);
    }
    EXPECT_TRUE(same_bits(rotated, vectors().at(prefix + ".y").floats)) << name;
    EXPECT_TRUE(same_bits(inverse, vectors().at(prefix + ".inverse_y").floats)) << name;
  }
}

TEST_P(OfficialVectorsTest, NormIsWithinOneStepOfBfloat16) {
  const OracleTensor& x = vectors().at("rmsnorm.x");
  const std::vector<float>& weight = vectors().at("rmsnorm.weight").floats;
  std::vector<float> out(x.floats.size());
  for (std::size_t row = 0; row < x.rows(); ++row) {
    GetParam()->elementwise.rms_norm(std::span(x.floats).subspan(row * x.width(), x.width()),
                                     weight, 1e-20f, Rounding::kBf16,
                                     std::span(out).subspan(row * x.width(), x.width()));
  }
  Comparison comparison;
  comparison.add(out, vectors().at("rmsnorm.y").floats);
  EXPECT_LE(comparison.worst_steps, 1);
  comparison.print(fmt::format("{} rmsnorm", GetParam()->name));
}

TEST_P(OfficialVectorsTest, FakeQuantizerHasTheOfficialBits) {
  std::vector<float> values = vectors().at("fp8.x").floats;
  GetParam()->elementwise.fake_quantize_fp8(values);
  EXPECT_TRUE(same_bits(values, vectors().at("fp8.y").floats));
}

INSTANTIATE_TEST_SUITE_P(Tables, OfficialVectorsTest, ::testing::ValuesIn(available_kernels()),
                         table_name);

}  // namespace
}  // namespace locket::kernels
