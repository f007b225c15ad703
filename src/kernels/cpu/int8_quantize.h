// int8_matmul.h, quantize_int8, in vectors.
#pragma once

#include <span>

#include "kernels/cpu/instruction_sets.h"
#include "kernels/int8_matmul.h"

namespace locket::kernels::cpu {

using QuantizeInt8 = void (*)(std::span<const float> x, const Int8Row& row);

QuantizeInt8 int8_quantizer(InstructionSet set);

}  // namespace locket::kernels::cpu
