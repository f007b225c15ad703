#include "kernels/row_codec.h"

#include <cstdint>
#include <cstring>

#include "base/check.h"
#include "numerics/group_scaled.h"

namespace locket::kernels {
namespace {

// Bytes of the codes; scales follow them.
std::size_t code_bytes(RowFormat format, std::size_t width) {
  switch (format) {
    case RowFormat::kFp4Main:
    case RowFormat::kFp4Index:
      return width / 2;
    case RowFormat::kFp8:
      return width;
    case RowFormat::kF32:
      return width * sizeof(float);
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
    case RowFormat::kF32:
      return 0;
    case RowFormat::kCount:
      break;
  }
  LOCKET_CHECK(false);
}

}  // namespace

std::size_t row_bytes(RowFormat format, std::size_t width) {
  return code_bytes(format, width) + scale_bytes(format, width);
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
    case RowFormat::kCount:
      break;
  }
  LOCKET_CHECK(false);
}

}  // namespace locket::kernels
