// Questions about all values of a row, which decide between kernels.
#pragma once

#include <cstddef>
#include <span>

#include "kernels/cpu/instruction_sets.h"
#include "kernels/cpu/scale_range.h"

namespace locket::kernels::cpu {

struct ValueScan {
  ExponentSpan (*exponent_span)(std::span<const float> values);
  // Whether every value is a bfloat16 value.
  bool (*holds_bf16)(std::span<const float> values);
};

const ValueScan& value_scan(InstructionSet set);

}  // namespace locket::kernels::cpu
