// Lookup table that turns FP4 codes into bfloat16 pairs.
#pragma once

#include <array>
#include <cstdint>

#include "numerics/bf16.h"
#include "numerics/fp4_e2m1.h"

namespace locket::kernels::cpu {

struct alignas(64) ByteTable {
  std::array<std::uint8_t, 128> bytes;
};

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

inline constexpr WordTable kFp4 = fp4_table();

}  // namespace locket::kernels::cpu
