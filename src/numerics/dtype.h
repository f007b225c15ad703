// The number types that checkpoints and traces store.
#pragma once

#include <cstddef>
#include <string_view>

namespace locket::numerics {

enum class Dtype {
  kF32,
  kF16,
  kBf16,
  kFp8E4m3,
  kFp8E5m2,
  kE8m0,
  kFp4E2m1,  // two codes a byte, low nibble first
  kI8,
  kU8,
  kI32,
  kI64,
  kBool,
  kCount
};

// The safetensors name: "F32", "BF16", "F8_E4M3", "F8_E8M0", "F4", "I8", ...
std::string_view dtype_name(Dtype dtype);

// Bits of one element: 4 for kFp4E2m1.
std::size_t bits_of(Dtype dtype);

}  // namespace locket::numerics
