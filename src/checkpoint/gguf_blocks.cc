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

// 32 values: (codes[i] - zero) * scale, or codes[i] * scale + minimum.
struct CodedGroup {
  std::array<std::uint8_t, kSmall> codes = {};
  float scale = 0.0f;
  int zero = 0;
  float minimum = 0.0f;
};

// Of a small block.
CodedGroup small_group(GgufType type, const std::byte* block) {
  CodedGroup group = {.scale = half_at(block)};
  const bool has_minimum = type == GgufType::kQ41 || type == GgufType::kQ51;
  const bool has_fifth = type == GgufType::kQ50 || type == GgufType::kQ51;
  const std::byte* const fifth = block + (has_minimum ? 4 : 2);
  const std::byte* const codes = fifth + (has_fifth ? 4 : 0);
  for (std::size_t i = 0; i < kSmall; ++i) {
    int code = type == GgufType::kQ80 ? static_cast<std::int8_t>(codes[i]) + 128 : nibble(codes, i);
    if (has_fifth) code |= fifth_bit(fifth, i) << 4;
    group.codes[i] = static_cast<std::uint8_t>(code);
  }
  if (has_minimum) {
    group.minimum = half_at(block + 2);
  } else {
    group.zero = type == GgufType::kQ80 ? 128 : has_fifth ? 16 : 8;
  }
  return group;
}

// Group `group` of Q4_K or Q5_K: two share the bytes of their low four bits.
CodedGroup large_group(GgufType type, const std::byte* block, std::size_t group) {
  const bool has_fifth = type == GgufType::kQ5K;
  const std::byte* const fifth = block + 16;
  const std::byte* const codes = block + (has_fifth ? 48 : 16) + group / 2 * kSmall;
  const GroupScale packed = group_scale(block + 4, group);
  CodedGroup coded = {.scale = half_at(block) * static_cast<float>(packed.scale),
                      .minimum = -(half_at(block + 2) * static_cast<float>(packed.minimum))};
  for (std::size_t i = 0; i < kSmall; ++i) {
    int code = group % 2 == 0 ? low(codes + i) : high(codes + i);
    if (has_fifth) code |= (byte_at(fifth + i) >> group & 1) << 4;
    coded.codes[i] = static_cast<std::uint8_t>(code);
  }
  return coded;
}

CodedGroup coded_group(GgufType type, const std::byte* block, std::size_t group) {
  const bool is_large = gguf_block(type).values == kLarge;
  return is_large ? large_group(type, block, group) : small_group(type, block);
}

// Values of small blocks and of Q4_K and Q5_K.
template <GgufType kType>
void decode_groups(const std::byte* block, float* values) {
  for (std::size_t first = 0; first < gguf_block(kType).values; first += kSmall) {
    const CodedGroup group = coded_group(kType, block, first / kSmall);
    for (std::size_t i = 0; i < kSmall; ++i) {
      const float value = static_cast<float>(group.codes[i] - group.zero) * group.scale;
      values[first + i] = group.zero > 0 ? value : value + group.minimum;
    }
  }
}

using Decoder = void (*)(const std::byte* block, float* values);

Decoder decoder_of(GgufType type) {
  switch (type) {
    case GgufType::kQ40:
      return decode_groups<GgufType::kQ40>;
    case GgufType::kQ41:
      return decode_groups<GgufType::kQ41>;
    case GgufType::kQ50:
      return decode_groups<GgufType::kQ50>;
    case GgufType::kQ51:
      return decode_groups<GgufType::kQ51>;
    case GgufType::kQ80:
      return decode_groups<GgufType::kQ80>;
    case GgufType::kQ4K:
      return decode_groups<GgufType::kQ4K>;
    case GgufType::kQ5K:
      return decode_groups<GgufType::kQ5K>;
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

void decode_gguf(GgufType type, std::span<const std::byte> stored, std::span<float> values) {
  const GgufBlock block = gguf_block(type);
  const std::size_t blocks = values.size() / block.values;
  LOCKET_CHECK(values.size() % block.values == 0 && stored.size() == blocks * block.bytes);
  const Decoder decode = decoder_of(type);
  for (std::size_t i = 0; i < blocks; ++i) {
    decode(stored.data() + i * block.bytes, values.data() + i * block.values);
  }
}

unsigned gguf_code_bits(GgufType type) {
  switch (type) {
    case GgufType::kQ40:
    case GgufType::kQ41:
    case GgufType::kQ4K:
      return 4;
    case GgufType::kQ50:
    case GgufType::kQ51:
    case GgufType::kQ80:
    case GgufType::kQ5K:
      return 8;
    case GgufType::kF32:
    case GgufType::kF16:
    case GgufType::kBf16:
    case GgufType::kQ6K:
      return 0;
    case GgufType::kCount:
      break;
  }
  LOCKET_CHECK(false);
}

void decode_gguf_codes(GgufType type, std::span<const std::byte> stored, std::span<std::byte> codes,
                       std::span<float> scales) {
  const GgufBlock block = gguf_block(type);
  const unsigned bits = gguf_code_bits(type);
  const std::size_t groups = scales.size() / 2;
  const std::size_t groups_of_block = block.values / kSmall;
  LOCKET_CHECK(bits > 0 && codes.size() == groups * kSmall * bits / 8 &&
               stored.size() * groups_of_block == groups * block.bytes);
  std::byte* out = codes.data();
  for (std::size_t i = 0; i < groups; ++i) {
    const CodedGroup group =
        coded_group(type, stored.data() + i / groups_of_block * block.bytes, i % groups_of_block);
    scales[2 * i] = group.scale;
    // A half float times a small integer is exact, and so is the sum with such an offset.
    scales[2 * i + 1] =
        group.zero > 0 ? static_cast<float>(-group.zero) * group.scale : group.minimum;
    const std::size_t step = 8 / bits;
    for (std::size_t k = 0; k < kSmall; k += step) {
      const int upper = step == 2 ? group.codes[k + 1] << 4 : 0;
      *out++ = static_cast<std::byte>(group.codes[k] | upper);
    }
  }
}

}  // namespace locket::checkpoint
