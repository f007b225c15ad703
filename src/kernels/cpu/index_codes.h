// The table of index_scan.h that turns a code and a shift into a number.
#pragma once

#include <cstdint>

#include "kernels/cpu/index_scan.h"
#include "numerics/fp4_e2m1.h"

namespace locket::kernels::cpu {

// offset + 2 * value * 2^shift: from -96 to 96 above the offset.
constexpr CodeTable code_table(int offset) {
  CodeTable table{};
  for (unsigned i = 0; i < table.bytes.size(); ++i) {
    const float value = numerics::to_float(numerics::Fp4E2m1{static_cast<std::uint8_t>(i % 16)});
    const int number = static_cast<int>(2.0f * value) * (1 << (i / 16));
    table.bytes[i] = static_cast<std::uint8_t>(offset + number);
  }
  return table;
}

}  // namespace locket::kernels::cpu
