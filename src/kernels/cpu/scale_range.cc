#include "kernels/cpu/scale_range.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "numerics/fp4_e2m1.h"
#include "numerics/fp8_e4m3.h"

namespace locket::kernels::cpu {
namespace {

// Codes are multiples of 2^-low_bits and smaller than 2^high_bits.
struct CodeSpan {
  unsigned low_bits;
  unsigned high_bits;
};

CodeSpan code_span(WeightFormat format) {
  if (decoded_shift(format) > 0) return {.low_bits = 9, .high_bits = 9};
  LOCKET_DCHECK(format == WeightFormat::kFp4);
  return {.low_bits = 1, .high_bits = 3};
}

}  // namespace

ScaleRange normal_scales(WeightFormat format) {
  const CodeSpan codes = code_span(format);
  return {.first = std::max(codes.low_bits, decoded_shift(format)) + 1,
          .last = 255 - codes.high_bits};
}

ScaleRange scales_after_sum(WeightFormat format, ExponentSpan span, MantissaBits mantissa) {
  const bool is_f32 = format == WeightFormat::kFp8F32;
  const ScaleRange normal =
      is_f32 ? ScaleRange{.first = decoded_shift(format) + 1, .last = 254} : normal_scales(format);
  if (span.lowest > span.highest) return normal;  // only zeros
  const CodeSpan codes = code_span(format);
  // The smallest bit of a product is 2^(lowest - 127 - fraction); times the scale 2^(code - 127) it
  // must not be below 2^-126. The 32 products of a group are below 2^(highest - 126 + high + 5).
  const unsigned fraction = static_cast<unsigned>(mantissa) + codes.low_bits;
  const unsigned growth = codes.high_bits + 5;
  if (span.lowest < fraction + 1 || span.highest + growth + decoded_shift(format) > 253) return {};
  if (is_f32) return normal;
  const unsigned first = fraction + 128 - std::min(span.lowest, fraction + 128);
  const unsigned last = 380 - growth - span.highest;
  return {.first = std::max(normal.first, first), .last = std::min(normal.last, last)};
}

float scaled_weight(float value, std::uint8_t code) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits & 0x80000000u;
  if ((bits & 0x7FFFFFFFu) == 0) return value;
  const int exponent = static_cast<int>((bits >> 23) & 0xFFu) + static_cast<int>(code) - 127;
  if (exponent <= 0) return std::bit_cast<float>(sign);
  if (exponent >= 255) return std::bit_cast<float>(sign | 0x7F800000u);
  return std::bit_cast<float>((bits & 0x807FFFFFu) | static_cast<std::uint32_t>(exponent) << 23);
}

float code_value(WeightFormat format, const std::byte* tile, std::size_t row, std::size_t column) {
  if (decoded_shift(format) > 0) {
    const auto byte = std::to_integer<std::uint8_t>(tile[fp8_tile_place(row, column)]);
    return numerics::to_float(numerics::Fp8E4m3{from_fp8_tile(byte)});
  }
  const std::size_t eight = column / 8;
  const std::size_t place = column % 8;
  LOCKET_DCHECK(format == WeightFormat::kFp4);
  const auto byte = std::to_integer<std::uint8_t>(tile[(eight * 16 + row) * 4 + place / 2]);
  return numerics::to_float(place % 2 == 0 ? numerics::even_fp4(byte) : numerics::odd_fp4(byte));
}

}  // namespace locket::kernels::cpu
