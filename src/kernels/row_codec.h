// How rows of the memory are stored: as the quantizer's codes and scales (nothing is lost, the
// model quantizes them anyway), as bfloat16 where a generation serves it so, or as float32 in mode
// `plain`, which has no quantizers. Any width that a format's groups do not divide is fine for
// kBf16, kMlaFp8, kFp8Index, kV4Fp8 and kF32: the last group is shorter. Thread-safe.
#pragma once

#include <cstddef>
#include <span>

namespace locket::kernels {

enum class RowFormat {
  kFp4Main,   // compressed rows: E2M1 packed, then one E4M3 scale per 16
  kFp4Index,  // index keys: E2M1 packed, then one E8M0 scale per 32
  kFp8,       // window rows: E4M3, then one E8M0 scale per 32
  kF32,
  kBf16,      // bfloat16
  kMlaFp8,    // V3.2 rows: all but the last 64 values E4M3, then one float32 scale (a power of two)
              // per 128 of them, then the last 64 as bfloat16
  kFp8Index,  // V3.2 index keys: E4M3, then one float32 scale, a power of two
  kV4Fp8,     // V4 rows: all but the last group of 64 E4M3, then one E8M0 scale per 64 of them,
              // zeros up to a multiple of 8 bytes, then the last group as bfloat16
  kV4Fp8F32,  // the same with the last group as float32: for comparison with outside code
  kCount
};

// Values at the end of a kMlaFp8 row that stay bfloat16, and how many of the others share a scale.
inline constexpr std::size_t kMlaFp8Tail = 64;
inline constexpr std::size_t kMlaFp8Group = 128;

// Values of a kV4Fp8 row that share a scale; the last group stays bfloat16 and may be shorter.
inline constexpr std::size_t kV4Fp8Group = 64;

// Bytes of a row of `width` values.
std::size_t row_bytes(RowFormat format, std::size_t width);

// values [width] -> bytes [row_bytes].
void encode_row(RowFormat format, std::span<const float> values, std::span<std::byte> bytes);
void decode_row(RowFormat format, std::span<const std::byte> bytes, std::span<float> values);

}  // namespace locket::kernels
