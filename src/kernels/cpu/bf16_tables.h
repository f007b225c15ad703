// Lookup tables that turn FP8 and FP4 codes into bfloat16 pairs, one vector or two each.
#pragma once

#include <array>
#include <cstdint>

#include "numerics/bf16.h"
#include "numerics/fp4_e2m1.h"
#include "numerics/fp8_e4m3.h"

namespace locket::kernels::cpu {

struct alignas(64) ByteTable {
  std::array<std::uint8_t, 128> bytes;
};

// Byte 0 (low) or 1 (high) of the bfloat16 of every positive E4M3 code.
constexpr ByteTable fp8_table(unsigned byte) {
  ByteTable table{};
  for (unsigned code = 0; code < 128; ++code) {
    const float value = numerics::to_float(numerics::Fp8E4m3{static_cast<std::uint8_t>(code)});
    table.bytes[code] = static_cast<std::uint8_t>(numerics::to_bf16(value).bits >> (8 * byte));
  }
  return table;
}

struct alignas(64) WordTable {
  std::array<std::uint16_t, 32> words;
};

// The bfloat16 of every E2M1 code, twice: a lookup reads five bits, the fifth does not matter.
constexpr WordTable fp4_table() {
  WordTable table{};
  for (unsigned i = 0; i < 32; ++i) {
    const float value = numerics::to_float(numerics::Fp4E2m1{static_cast<std::uint8_t>(i % 16)});
    table.words[i] = numerics::to_bf16(value).bits;
  }
  return table;
}

// Where the two tables' bytes of one dword of codes go: pairs of codes 0, 1 or 2, 3.
constexpr ByteTable pair_order(unsigned first) {
  ByteTable order{};
  for (unsigned lane = 0; lane < 16; ++lane) {
    for (unsigned i = 0; i < 4; ++i) {
      const unsigned source = lane * 4 + first + i / 2;
      order.bytes[lane * 4 + i] = static_cast<std::uint8_t>(i % 2 == 0 ? source : source + 64);
    }
  }
  return order;
}

inline constexpr ByteTable kFp8Low = fp8_table(0);
inline constexpr ByteTable kFp8High = fp8_table(1);
inline constexpr ByteTable kFirstPair = pair_order(0);
inline constexpr ByteTable kSecondPair = pair_order(2);
inline constexpr WordTable kFp4 = fp4_table();

}  // namespace locket::kernels::cpu
