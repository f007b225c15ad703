#include "roofline/weights.h"

#include <algorithm>
#include <cstring>
#include <random>

#include "kernels/fp8_tile.h"
#include "kernels/quantize.h"
#include "numerics/bf16.h"
#include "numerics/fp8_e4m3.h"

namespace locket::bench {
namespace {

using kernels::WeightFormat;
using kernels::WeightMatrix;

constexpr std::size_t kHidden = 5120;
constexpr std::size_t kExpertWidth = 2304;

// Bytes below `limit` with every eighth bit of a sign kept, a block of chance again and again.
void fill(std::span<std::byte> bytes, WeightFormat format) {
  std::vector<std::byte> block(std::min<std::size_t>(bytes.size(), (1U << 20) + 64));
  std::mt19937 engine(static_cast<unsigned>(bytes.size()));
  std::normal_distribution<float> normal(0.0F, 100.0F);
  for (std::size_t i = 0; i < block.size(); ++i) {
    if (format == WeightFormat::kFp4) block[i] = static_cast<std::byte>(engine());
    if (format == WeightFormat::kFp8) {
      const numerics::Fp8E4m3 code = numerics::to_fp8_e4m3(normal(engine));
      block[i] = std::byte{kernels::to_fp8_tile(code.code)};
    }
    if (format == WeightFormat::kBf16) {
      block[i] = i % 2 == 0 ? static_cast<std::byte>(engine())
                            : static_cast<std::byte>((engine() & 0x80U) | 0x3CU);
    }
  }
  for (std::size_t at = 0; at < bytes.size(); at += block.size()) {
    std::memcpy(bytes.data() + at, block.data(), std::min(block.size(), bytes.size() - at));
  }
}

}  // namespace

WeightMatrix random_weights(WeightFormat format, std::size_t rows, std::size_t columns) {
  WeightMatrix matrix = kernels::unpacked_matrix(format, rows, columns);
  fill(matrix.tiles.bytes(), format);
  for (std::size_t i = 0; i < matrix.scales.size(); ++i) {
    matrix.scales.data()[i] = static_cast<std::byte>(112 + i * 7 % 4);
  }
  return matrix;
}

RandomRows::RandomRows(std::size_t tokens, std::size_t columns)
    : columns_(columns), values_(tokens * columns) {
  std::mt19937 engine(7);
  std::normal_distribution<float> normal;
  for (float& value : values_) value = numerics::round_to_bf16(normal(engine));
  kernels::fake_quantize_fp8(values_);
}

kernels::ActivationRows RandomRows::first(std::size_t tokens) const {
  return {.data = values_.data(),
          .stride = columns_,
          .tokens = tokens,
          .values = kernels::ActivationValues::kBf16};
}

Expert random_expert(WeightFormat format) {
  return {.matrices = {random_weights(format, kExpertWidth, kHidden),
                       random_weights(format, kExpertWidth, kHidden),
                       random_weights(format, kHidden, kExpertWidth)}};
}

std::vector<WeightMatrix> random_dense_layer() {
  std::vector<WeightMatrix> layer;
  const auto add = [&](std::size_t rows, std::size_t columns) {
    layer.push_back(random_weights(WeightFormat::kFp8, rows, columns));
  };
  add(1280, kHidden);          // wq_a
  add(32768, 1280);            // wq_b
  add(512, kHidden);           // wkv
  add(8192, 4096);             // wo_a, all its groups
  add(kHidden, 8192);          // wo_b
  add(kExpertWidth, kHidden);  // shared expert
  add(kExpertWidth, kHidden);
  add(kHidden, kExpertWidth);
  return layer;
}

}  // namespace locket::bench
