// The number formats of GGUF files: blocks of values that share scales, and how they become
// float32. The arithmetic is that of the published definitions (ggml, gguf-py): every product and
// sum is rounded to float32, in their order. Pure functions; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace locket::checkpoint {

// d, m: float16 scales of a block; q: codes.
enum class GgufType {
  kF32,
  kF16,
  kBf16,
  kQ40,  // 32 values: d * (q - 8), 4 bits
  kQ41,  // 32 values: d * q + m, 4 bits
  kQ50,  // 32 values: d * (q - 16), 5 bits
  kQ51,  // 32 values: d * q + m, 5 bits
  kQ80,  // 32 values: d * q, signed 8 bits
  kQ4K,  // 256 values in 8 groups: (d * scale) * q - (m * minimum), 4 bits, 6-bit scales
  kQ5K,  // the same with 5 bits
  kQ6K,  // 256 values in 16 groups: d * scale * (q - 32), 6 bits, 8-bit scales
  kCount
};

// By the number that stands in the file; nothing for formats that are not read.
std::optional<GgufType> gguf_type(std::uint32_t number);
// "Q4_K"; for numbers that are not read, too, as far as they are published.
std::string_view gguf_type_name(std::uint32_t number);

struct GgufBlock {
  std::size_t values = 0;
  std::size_t bytes = 0;
};
GgufBlock gguf_block(GgufType type);

// REQUIRES: values.size() is a multiple of the block's, and `stored` are their blocks.
void decode_gguf(GgufType type, std::span<const std::byte> stored, std::span<float> values);

}  // namespace locket::checkpoint
