#include "checkpoint/gguf_blocks.h"

#include <array>
#include <bit>
#include <cstring>

#include "base/check.h"
#include "numerics/bf16.h"

namespace locket::checkpoint {
namespace {

// Names by number in the file; numbers without one were withdrawn.
constexpr std::array<std::string_view, 40> kNames = {
    "F32",   "F16",        "Q4_0",       "Q4_1",       "Q4_2",     "Q4_3",     "Q5_0",
    "Q5_1",  "Q8_0",       "Q8_1",       "Q2_K",       "Q3_K",     "Q4_K",     "Q5_K",
    "Q6_K",  "Q8_K",       "IQ2_XXS",    "IQ2_XS",     "IQ3_XXS",  "IQ1_S",    "IQ4_NL",
    "IQ3_S", "IQ2_S",      "IQ4_XS",     "I8",         "I16",      "I32",      "I64",
    "F64",   "IQ1_M",      "BF16",       "Q4_0_4_4",   "Q4_0_4_8", "Q4_0_8_8", "TQ1_0",
    "TQ2_0", "IQ4_NL_4_4", "IQ4_NL_4_8", "IQ4_NL_8_8", "MXFP4"};

constexpr std::size_t kSmall = 32;   // values of a block
constexpr std::size_t kLarge = 256;  // values of a K block

std::uint8_t byte_at(const std::byte* at) { return std::to_integer<std::uint8_t>(*at); }

float half_at(const std::byte* at) {
  const auto bits = static_cast<std::uint32_t>(byte_at(at) | byte_at(at + 1) << 8);
  const std::uint32_t sign = (bits & 0x8000u) << 16;
  const std::uint32_t exponent = bits >> 10 & 0x1Fu;
  const std::uint32_t mantissa = bits & 0x3FFu;
  if (exponent == 0) {  // zero and denormals: mantissa x 2^-24
    const float value = static_cast<float>(mantissa) * 0x1p-24f;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) | sign);
  }
  const std::uint32_t wide = exponent == 0x1Fu ? 0xFFu : exponent + (127 - 15);
  return std::bit_cast<float>(sign | wide << 23 | mantissa << 13);
}

float signed_at(const std::byte* at) { return static_cast<float>(static_cast<std::int8_t>(*at)); }

int low(const std::byte* at) { return byte_at(at) & 0xF; }
int high(const std::byte* at) { return byte_at(at) >> 4; }

// Value i of a small block: the low nibbles come first.
int nibble(const std::byte* codes, std::size_t i) {
  return i < kSmall / 2 ? low(codes + i) : high(codes + i - kSmall / 2);
}

int fifth_bit(const std::byte* bits, std::size_t i) { return byte_at(bits + i / 8) >> (i % 8) & 1; }

void decode_q4_0(const std::byte* block, float* values) {
  const float d = half_at(block);
  for (std::size_t i = 0; i < kSmall; ++i) {
    values[i] = static_cast<float>(nibble(block + 2, i) - 8) * d;
  }
}

void decode_q4_1(const std::byte* block, float* values) {
  const float d = half_at(block);
  const float m = half_at(block + 2);
  for (std::size_t i = 0; i < kSmall; ++i) {
    values[i] = static_cast<float>(nibble(block + 4, i)) * d + m;
  }
}

void decode_q5_0(const std::byte* block, float* values) {
  const float d = half_at(block);
  for (std::size_t i = 0; i < kSmall; ++i) {
    const int code = nibble(block + 6, i) | fifth_bit(block + 2, i) << 4;
    values[i] = static_cast<float>(code - 16) * d;
  }
}

void decode_q5_1(const std::byte* block, float* values) {
  const float d = half_at(block);
  const float m = half_at(block + 2);
  for (std::size_t i = 0; i < kSmall; ++i) {
    const int code = nibble(block + 8, i) | fifth_bit(block + 4, i) << 4;
    values[i] = static_cast<float>(code) * d + m;
  }
}

void decode_q8_0(const std::byte* block, float* values) {
  const float d = half_at(block);
  for (std::size_t i = 0; i < kSmall; ++i) values[i] = signed_at(block + 2 + i) * d;
}

struct GroupScale {
  int scale = 0;
  int minimum = 0;
};

// Six-bit scale and minimum of group `group` out of 12 bytes: those of groups 4 to 7 have their
// upper two bits where the others leave theirs free.
GroupScale group_scale(const std::byte* packed, std::size_t group) {
  if (group < 4) return {byte_at(packed + group) & 63, byte_at(packed + group + 4) & 63};
  return {low(packed + group + 4) | byte_at(packed + group - 4) >> 6 << 4,
          high(packed + group + 4) | byte_at(packed + group) >> 6 << 4};
}

// Q4_K and Q5_K: 8 groups of 32; two share the bytes of their low four bits.
void decode_with_minima(const std::byte* block, const std::byte* codes, const std::byte* fifth,
                        float* values) {
  const float d = half_at(block);
  const float minimum = half_at(block + 2);
  for (std::size_t group = 0; group < kLarge / 32; ++group) {
    const GroupScale packed = group_scale(block + 4, group);
    const float scale = d * static_cast<float>(packed.scale);
    const float offset = minimum * static_cast<float>(packed.minimum);
    for (std::size_t i = 0; i < 32; ++i) {
      const std::byte* const at = codes + group / 2 * 32 + i;
      int code = group % 2 == 0 ? low(at) : high(at);
      if (fifth != nullptr) code |= (byte_at(fifth + i) >> group & 1) << 4;
      values[group * 32 + i] = scale * static_cast<float>(code) - offset;
    }
  }
}

void decode_q4_k(const std::byte* block, float* values) {
  decode_with_minima(block, block + 16, nullptr, values);
}

void decode_q5_k(const std::byte* block, float* values) {
  decode_with_minima(block, block + 48, block + 16, values);
}

// Per half of 128 values: 64 bytes of low four bits, 32 bytes of high two, 8 scales of 16 values.
void decode_q6_k(const std::byte* block, float* values) {
  const std::byte* const high_bits = block + 128;
  const std::byte* const scales = block + 192;
  const float d = half_at(block + 208);
  for (std::size_t i = 0; i < kLarge; ++i) {
    const std::size_t half = i / 128;
    const std::size_t quarter = i % 128 / 32;
    const std::size_t at = i % 32;
    const std::byte* const low_bits = block + half * 64 + quarter % 2 * 32 + at;
    const int upper = byte_at(high_bits + half * 32 + at) >> (2 * quarter) & 3;
    const int code = (quarter < 2 ? low(low_bits) : high(low_bits)) | upper << 4;
    const float scale = d * signed_at(scales + i / 16);
    values[i] = scale * static_cast<float>(code - 32);
  }
}

using Decoder = void (*)(const std::byte* block, float* values);

Decoder decoder_of(GgufType type) {
  switch (type) {
    case GgufType::kQ40:
      return decode_q4_0;
    case GgufType::kQ41:
      return decode_q4_1;
    case GgufType::kQ50:
      return decode_q5_0;
    case GgufType::kQ51:
      return decode_q5_1;
    case GgufType::kQ80:
      return decode_q8_0;
    case GgufType::kQ4K:
      return decode_q4_k;
    case GgufType::kQ5K:
      return decode_q5_k;
    case GgufType::kQ6K:
      return decode_q6_k;
    case GgufType::kF32:
      return [](const std::byte* block, float* value) { std::memcpy(value, block, sizeof(float)); };
    case GgufType::kF16:
      return [](const std::byte* block, float* value) { *value = half_at(block); };
    case GgufType::kBf16:
      return [](const std::byte* block, float* value) {
        numerics::Bf16 stored;
        std::memcpy(&stored.bits, block, sizeof(stored.bits));
        *value = numerics::to_float(stored);
      };
    case GgufType::kCount:
      break;
  }
  LOCKET_CHECK(false);
}

}  // namespace

std::optional<GgufType> gguf_type(std::uint32_t number) {
  const std::string_view name = gguf_type_name(number);
  constexpr std::array<std::pair<std::string_view, GgufType>, 11> kRead = {
      {{"F32", GgufType::kF32},
       {"F16", GgufType::kF16},
       {"BF16", GgufType::kBf16},
       {"Q4_0", GgufType::kQ40},
       {"Q4_1", GgufType::kQ41},
       {"Q5_0", GgufType::kQ50},
       {"Q5_1", GgufType::kQ51},
       {"Q8_0", GgufType::kQ80},
       {"Q4_K", GgufType::kQ4K},
       {"Q5_K", GgufType::kQ5K},
       {"Q6_K", GgufType::kQ6K}}};
  for (const auto& [known, type] : kRead) {
    if (known == name) return type;
  }
  return std::nullopt;
}

std::string_view gguf_type_name(std::uint32_t number) {
  return number < kNames.size() ? kNames[number] : "unknown";
}

GgufBlock gguf_block(GgufType type) {
  switch (type) {
    case GgufType::kF32:
      return {1, 4};
    case GgufType::kF16:
    case GgufType::kBf16:
      return {1, 2};
    case GgufType::kQ40:
      return {kSmall, 18};
    case GgufType::kQ41:
      return {kSmall, 20};
    case GgufType::kQ50:
      return {kSmall, 22};
    case GgufType::kQ51:
      return {kSmall, 24};
    case GgufType::kQ80:
      return {kSmall, 34};
    case GgufType::kQ4K:
      return {kLarge, 144};
    case GgufType::kQ5K:
      return {kLarge, 176};
    case GgufType::kQ6K:
      return {kLarge, 210};
    case GgufType::kCount:
      break;
  }
  LOCKET_CHECK(false);
}

void decode_gguf(GgufType type, std::span<const std::byte> stored, std::span<float> values) {
  const GgufBlock block = gguf_block(type);
  const std::size_t blocks = values.size() / block.values;
  LOCKET_CHECK(values.size() % block.values == 0 && stored.size() == blocks * block.bytes);
  const Decoder decode = decoder_of(type);
  for (std::size_t i = 0; i < blocks; ++i) {
    decode(stored.data() + i * block.bytes, values.data() + i * block.values);
  }
}

}  // namespace locket::checkpoint
