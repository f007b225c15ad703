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
constexpr GgufBlock gguf_block(GgufType type) {
  switch (type) {
    case GgufType::kF32:
      return {1, 4};
    case GgufType::kF16:
    case GgufType::kBf16:
      return {1, 2};
    case GgufType::kQ40:
      return {32, 18};
    case GgufType::kQ41:
      return {32, 20};
    case GgufType::kQ50:
      return {32, 22};
    case GgufType::kQ51:
      return {32, 24};
    case GgufType::kQ80:
      return {32, 34};
    case GgufType::kQ4K:
      return {256, 144};
    case GgufType::kQ5K:
      return {256, 176};
    case GgufType::kQ6K:
      return {256, 210};
    case GgufType::kCount:
      break;
  }
  return {};
}

// Bits of a code, 4 or 8, where every 32 values of a row are code * scale + offset, codes without a
// sign; 0 for plain values and for Q6_K, whose scales are for 16 values. All K and small blocks are
// groups of 32 in this sense: what they subtract from a code becomes the offset, exactly.
unsigned gguf_code_bits(GgufType type);

// The same values as decode_gguf(), but for the sign of a zero, as codes [values] (of 4 bits: two a
// byte, the first in the low half) and scales [values / 32, 2]: scale, offset.
// REQUIRES: gguf_code_bits(type) > 0; the sizes fit, as for decode_gguf().
void decode_gguf_codes(GgufType type, std::span<const std::byte> stored, std::span<std::byte> codes,
                       std::span<float> scales);

// REQUIRES: values.size() is a multiple of the block's, and `stored` are their blocks.
void decode_gguf(GgufType type, std::span<const std::byte> stored, std::span<float> values);

}  // namespace locket::checkpoint
