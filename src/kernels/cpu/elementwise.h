// Row operations of one instruction set; the public headers say what they compute.
#pragma once

#include <span>

#include "kernels/cpu/instruction_sets.h"
#include "kernels/kernel_table.h"

namespace locket::kernels::cpu {

const ElementwiseKernels& elementwise_kernels(InstructionSet set);

}  // namespace locket::kernels::cpu
