// How rows of the memory are stored: as the quantizer's codes and scales (nothing is lost, the
// model quantizes them anyway), or as float32 in mode `plain`, which has no quantizers.
#pragma once

#include <cstddef>
#include <span>

namespace locket::kernels {

enum class RowFormat {
  kFp4Main,   // compressed rows: E2M1 packed, then one E4M3 scale per 16
  kFp4Index,  // index keys: E2M1 packed, then one E8M0 scale per 32
  kFp8,       // window rows: E4M3, then one E8M0 scale per 32
  kF32,
  kCount
};

// Bytes of a row of `width` values.
std::size_t row_bytes(RowFormat format, std::size_t width);

// values [width] -> bytes [row_bytes].
void encode_row(RowFormat format, std::span<const float> values, std::span<std::byte> bytes);
void decode_row(RowFormat format, std::span<const std::byte> bytes, std::span<float> values);

}  // namespace locket::kernels
