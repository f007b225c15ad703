#include "kernels/row_codec.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "base/check.h"
#include "numerics/bf16.h"
#include "numerics/fp8_e4m3.h"
#include "numerics/group_scaled.h"

namespace locket::kernels {
namespace {

using numerics::Bf16;

// Of a kV4Fp8 row: the last group, whole or not.
std::size_t v4_tail(std::size_t width) { return width == 0 ? 0 : (width - 1) % kV4Fp8Group + 1; }

// Bytes of the codes; scales follow them, and behind those what stays bfloat16.
std::size_t code_bytes(RowFormat format, std::size_t width) {
  switch (format) {
    case RowFormat::kFp4Main:
    case RowFormat::kFp4Index:
      return width / 2;
    case RowFormat::kFp8:
    case RowFormat::kFp8Index:
      return width;
    case RowFormat::kMlaFp8:
      return width - std::min(width, kMlaFp8Tail);
    case RowFormat::kV4Fp8:
    case RowFormat::kV4Fp8F32:
      return width - v4_tail(width);
    case RowFormat::kF32:
      return width * sizeof(float);
    case RowFormat::kBf16:
      return width * sizeof(Bf16);
    case RowFormat::kCount:
      break;
  }
  LOCKET_CHECK(false);
}

std::size_t scale_bytes(RowFormat format, std::size_t width) {
  switch (format) {
    case RowFormat::kFp4Main:
      return width / numerics::kFp4MainGroupSize;
    case RowFormat::kFp4Index:
      return width / numerics::kFp4IndexGroupSize;
    case RowFormat::kFp8:
      return width / numerics::kFp8GroupSize;
    case RowFormat::kMlaFp8:
      return (code_bytes(format, width) + kMlaFp8Group - 1) / kMlaFp8Group * sizeof(float);
    case RowFormat::kFp8Index:
      return sizeof(float);
    case RowFormat::kV4Fp8:
    case RowFormat::kV4Fp8F32:
      return (code_bytes(format, width) / kV4Fp8Group + 7) / 8 * 8;
    case RowFormat::kF32:
    case RowFormat::kBf16:
      return 0;
    case RowFormat::kCount:
      break;
  }
  LOCKET_CHECK(false);
}

std::size_t tail_bytes(RowFormat format, std::size_t width) {
  if (format == RowFormat::kMlaFp8) return std::min(width, kMlaFp8Tail) * sizeof(Bf16);
  if (format == RowFormat::kV4Fp8) return v4_tail(width) * sizeof(Bf16);
  return format == RowFormat::kV4Fp8F32 ? v4_tail(width) * sizeof(float) : 0;
}

void encode_bf16(std::span<const float> values, std::byte* bytes) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Bf16 value = numerics::to_bf16(values[i]);
    std::memcpy(bytes + i * sizeof(Bf16), &value, sizeof(Bf16));
  }
}

void decode_bf16(const std::byte* bytes, std::span<float> values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    Bf16 value;
    std::memcpy(&value, bytes + i * sizeof(Bf16), sizeof(Bf16));
    values[i] = numerics::to_float(value);
  }
}

// Groups of `group` values, the last of which may be shorter, with float32 scales.
void encode_fp8_groups(std::span<const float> values, std::size_t group,
                       std::span<std::uint8_t> codes, std::uint8_t* scales) {
  for (std::size_t first = 0; first < values.size(); first += group) {
    const std::size_t count = std::min(group, values.size() - first);
    const float scale = numerics::to_float(
        numerics::quantize_fp8_group(values.subspan(first, count), codes.subspan(first, count)));
    std::memcpy(scales + first / group * sizeof(float), &scale, sizeof(float));
  }
}

void decode_fp8_groups(std::span<const std::uint8_t> codes, std::size_t group,
                       const std::uint8_t* scales, std::span<float> values) {
  for (std::size_t first = 0; first < values.size(); first += group) {
    float scale;
    std::memcpy(&scale, scales + first / group * sizeof(float), sizeof(float));
    const std::size_t last = std::min(first + group, values.size());
    for (std::size_t i = first; i < last; ++i) {
      values[i] = numerics::kFp8E4m3Values[codes[i]] * scale;
    }
  }
}

// Whole groups of a kV4Fp8 row, with E8M0 scales.
void encode_v4_groups(std::span<const float> values, std::span<std::uint8_t> codes,
                      std::span<std::uint8_t> scales) {
  std::ranges::fill(scales, std::uint8_t{0});
  for (std::size_t first = 0; first < values.size(); first += kV4Fp8Group) {
    scales[first / kV4Fp8Group] = numerics::quantize_fp8_group(values.subspan(first, kV4Fp8Group),
                                                               codes.subspan(first, kV4Fp8Group))
                                      .code;
  }
}

void decode_v4_groups(std::span<const std::uint8_t> codes, std::span<const std::uint8_t> scales,
                      std::span<float> values) {
  for (std::size_t first = 0; first < values.size(); first += kV4Fp8Group) {
    numerics::dequantize_fp8_group(codes.subspan(first, kV4Fp8Group),
                                   numerics::E8m0{scales[first / kV4Fp8Group]},
                                   values.subspan(first, kV4Fp8Group));
  }
}

}  // namespace

std::size_t row_bytes(RowFormat format, std::size_t width) {
  return code_bytes(format, width) + scale_bytes(format, width) + tail_bytes(format, width);
}

void encode_row(RowFormat format, std::span<const float> values, std::span<std::byte> bytes) {
  LOCKET_DCHECK(bytes.size() == row_bytes(format, values.size()));
  auto* codes = reinterpret_cast<std::uint8_t*>(bytes.data());
  const std::size_t code_count = code_bytes(format, values.size());
  const std::span code_span(codes, code_count);
  const std::span scale_span(codes + code_count, bytes.size() - code_count);
  switch (format) {
    case RowFormat::kFp4Main:
      return numerics::quantize_fp4_main(values, code_span, scale_span);
    case RowFormat::kFp4Index:
      return numerics::quantize_fp4_index(values, code_span, scale_span);
    case RowFormat::kFp8:
      return numerics::quantize_fp8(values, code_span, scale_span);
    case RowFormat::kF32:
      std::memcpy(bytes.data(), values.data(), bytes.size());
      return;
    case RowFormat::kBf16:
      return encode_bf16(values, bytes.data());
    case RowFormat::kMlaFp8:
      encode_fp8_groups(values.first(code_count), kMlaFp8Group, code_span, scale_span.data());
      return encode_bf16(values.subspan(code_count),
                         bytes.data() + bytes.size() - tail_bytes(format, values.size()));
    case RowFormat::kFp8Index:
      return encode_fp8_groups(values, values.size(), code_span, scale_span.data());
    case RowFormat::kV4Fp8:
    case RowFormat::kV4Fp8F32: {
      const auto scales = scale_span.first(scale_bytes(format, values.size()));
      encode_v4_groups(values.first(code_count), code_span, scales);
      const auto tail = bytes.subspan(code_count + scales.size());
      if (format == RowFormat::kV4Fp8) return encode_bf16(values.subspan(code_count), tail.data());
      std::memcpy(tail.data(), values.data() + code_count, tail.size());
      return;
    }
    case RowFormat::kCount:
      break;
  }
  LOCKET_CHECK(false);
}

void decode_row(RowFormat format, std::span<const std::byte> bytes, std::span<float> values) {
  LOCKET_DCHECK(bytes.size() == row_bytes(format, values.size()));
  const auto* codes = reinterpret_cast<const std::uint8_t*>(bytes.data());
  const std::size_t code_count = code_bytes(format, values.size());
  const std::span code_span(codes, code_count);
  const std::span scale_span(codes + code_count, bytes.size() - code_count);
  switch (format) {
    case RowFormat::kFp4Main:
      return numerics::dequantize_fp4_main(code_span, scale_span, values);
    case RowFormat::kFp4Index:
      return numerics::dequantize_fp4_index(code_span, scale_span, values);
    case RowFormat::kFp8:
      return numerics::dequantize_fp8(code_span, scale_span, values);
    case RowFormat::kF32:
      std::memcpy(values.data(), bytes.data(), bytes.size());
      return;
    case RowFormat::kBf16:
      return decode_bf16(bytes.data(), values);
    case RowFormat::kMlaFp8:
      decode_fp8_groups(code_span, kMlaFp8Group, scale_span.data(), values.first(code_count));
      return decode_bf16(bytes.data() + bytes.size() - tail_bytes(format, values.size()),
                         values.subspan(code_count));
    case RowFormat::kFp8Index:
      return decode_fp8_groups(code_span, values.size(), scale_span.data(), values);
    case RowFormat::kV4Fp8:
    case RowFormat::kV4Fp8F32: {
      const auto scales = scale_span.first(scale_bytes(format, values.size()));
      decode_v4_groups(code_span, scales, values.first(code_count));
      const auto tail = bytes.subspan(code_count + scales.size());
      if (format == RowFormat::kV4Fp8) return decode_bf16(tail.data(), values.subspan(code_count));
      std::memcpy(values.data() + code_count, tail.data(), tail.size());
      return;
    }
    case RowFormat::kCount:
      break;
  }
  LOCKET_CHECK(false);
}

}  // namespace locket::kernels
