#include "tests/support/kernel_data.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "numerics/bf16.h"

namespace locket::kernels {
namespace {

std::uint32_t exponent_of(Spread spread, RandomValues& random) {
  switch (spread) {
    case Spread::kUsual:
      return 120 + random.below(10);
    case Spread::kTiny:
      return 45 + random.below(36);
    case Spread::kHuge:
      return random.below(64) == 0 ? 254 : 170 + random.below(20);
    case Spread::kDenormal:
      return random.below(4) == 0 ? 127 : random.below(3);
    case Spread::kCount:
      break;
  }
  return 0;
}

std::uint32_t bits_of(Spread spread, RandomValues& random) {
  const std::uint32_t sign = random.below(2) << 31;
  if (random.below(8) == 0) return sign;
  return sign | exponent_of(spread, random) << 23 | random.below(1u << 23);
}

std::byte fp8_code(RandomValues& random) {
  const std::uint32_t code = random.below(256);
  return static_cast<std::byte>((code & 0x7Fu) == 0x7Fu ? code - 1 : code);
}

void append(std::vector<std::byte>& bytes, const void* data, std::size_t size) {
  const auto* from = static_cast<const std::byte*>(data);
  bytes.insert(bytes.end(), from, from + size);
}

}  // namespace

std::uint32_t RandomValues::below(std::uint32_t count) {
  return static_cast<std::uint32_t>(engine_()) % count;
}

float RandomValues::value(Spread spread) { return std::bit_cast<float>(bits_of(spread, *this)); }

float RandomValues::bf16_value(Spread spread) {
  return std::bit_cast<float>(bits_of(spread, *this) & 0xFFFF0000u);
}

std::vector<float> RandomValues::values(std::size_t count, Spread spread) {
  std::vector<float> result(count);
  for (float& x : result) x = value(spread);
  return result;
}

std::vector<float> RandomValues::bf16_values(std::size_t count, Spread spread) {
  std::vector<float> result(count);
  for (float& x : result) x = bf16_value(spread);
  return result;
}

std::uint8_t RandomValues::scale_code(Spread spread) {
  switch (spread) {
    case Spread::kUsual:
      return static_cast<std::uint8_t>(110 + below(8));
    case Spread::kTiny: {
      constexpr std::array<std::uint8_t, 12> kCodes = {0, 1, 2, 3, 9, 10, 11, 30, 50, 60, 70, 80};
      return kCodes[below(kCodes.size())];
    }
    case Spread::kHuge: {
      constexpr std::array<std::uint8_t, 8> kCodes = {180, 190, 200, 245, 246, 247, 252, 254};
      return below(40) == 0 ? kCodes[below(kCodes.size())]
                            : static_cast<std::uint8_t>(170 + below(20));
    }
    case Spread::kDenormal:
      return static_cast<std::uint8_t>(below(2) == 0 ? below(12) : 127);
    case Spread::kCount:
      break;
  }
  return 0;
}

float RandomValues::f32_scale(Spread spread) {
  const std::uint32_t sign = below(8) == 0 ? 0x80000000u : 0;
  if (spread != Spread::kUsual && below(40) == 0) return std::bit_cast<float>(sign);
  return std::bit_cast<float>(sign | std::uint32_t{scale_code(spread)} << 23 | below(1u << 23));
}

StoredMatrix RandomMatrix::stored() const {
  return {.format = format, .rows = rows, .columns = columns, .values = values, .scales = scales};
}

WeightMatrix RandomMatrix::packed() const { return std::move(pack_weights(stored()).value()); }

RandomMatrix random_matrix(WeightFormat format, std::size_t rows, std::size_t columns,
                           Spread spread, RandomValues& random) {
  RandomMatrix matrix{
      .format = format, .rows = rows, .columns = columns, .values = {}, .scales = {}};
  for (std::size_t i = 0; i < rows * columns; ++i) {
    if (format == WeightFormat::kF32) {
      const float value = random.value(spread);
      append(matrix.values, &value, sizeof(value));
    } else if (format == WeightFormat::kBf16) {
      const numerics::Bf16 value = numerics::to_bf16(random.bf16_value(spread));
      append(matrix.values, &value.bits, sizeof(value.bits));
    } else if (format == WeightFormat::kFp8 || format == WeightFormat::kFp8F32) {
      matrix.values.push_back(fp8_code(random));
    } else if (i % 2 == 0 || format == WeightFormat::kAffine8) {
      matrix.values.push_back(static_cast<std::byte>(random.below(256)));
    }
  }
  const std::size_t scale_bytes = stored_scale_bytes(format, rows, columns);
  while (matrix.scales.size() < scale_bytes) {
    if (format == WeightFormat::kFp8F32 || is_affine(format)) {
      const float scale = random.f32_scale(spread);
      append(matrix.scales, &scale, sizeof(scale));
    } else {
      matrix.scales.push_back(static_cast<std::byte>(random.scale_code(spread)));
    }
  }
  return matrix;
}

bool computes_denormals() {
  const volatile float smallest_normal = 0x1p-126f;
  const volatile float half = smallest_normal * 0.5f;
  return half != 0.0f && half * 2.0f == smallest_normal;
}

bool is_same(float a, float b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

::testing::AssertionResult same_bits(std::span<const float> actual,
                                     std::span<const float> expected) {
  if (actual.size() != expected.size()) {
    return ::testing::AssertionFailure() << actual.size() << " values, not " << expected.size();
  }
  std::size_t different = 0;
  std::size_t first = 0;
  for (std::size_t i = actual.size(); i-- > 0;) {
    if (is_same(actual[i], expected[i])) continue;
    ++different;
    first = i;
  }
  if (different == 0) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure()
         << different << " of " << actual.size() << " differ, the first at " << first << ": "
         << std::hexfloat << actual[first] << ", not " << expected[first];
}

std::vector<const KernelTable*> fast_tables() {
  const auto& all = available_kernels();
  return {all.begin() + 1, all.end()};
}

std::string table_name(const ::testing::TestParamInfo<const KernelTable*>& info) {
  return std::string(info.param->name);
}

const char* format_name(WeightFormat format) {
  switch (format) {
    case WeightFormat::kBf16:
      return "bf16";
    case WeightFormat::kFp8:
      return "fp8";
    case WeightFormat::kFp4:
      return "fp4";
    case WeightFormat::kF32:
      return "f32";
    case WeightFormat::kFp8F32:
      return "fp8 with float32 scales";
    case WeightFormat::kAffine4:
      return "4 bits, scale and offset";
    case WeightFormat::kAffine8:
      return "8 bits, scale and offset";
    case WeightFormat::kCount:
      break;
  }
  return "?";
}

}  // namespace locket::kernels
