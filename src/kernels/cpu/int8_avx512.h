// The parts of the int8 products that the kernels with and without tiles share: AVX-512 with VNNI
// and VBMI.
#pragma once

#include "kernels/cpu/int8_kernels.h"

namespace locket::kernels::cpu {

inline constexpr std::size_t kInt8DirectTokens = 8;

void multiply_int8_rows(const Int8RowsProduct& product);

// As Int8Kernels::decode; weights (2w << shift), as they are or with 96 added.
bool decode_int8_signed(const std::byte* tiles, const std::byte* scales, std::byte* panel,
                        float* factors);
bool decode_int8_unsigned(const std::byte* tiles, const std::byte* scales, std::byte* panel,
                          float* factors);

}  // namespace locket::kernels::cpu
