// The stream kernels of one instruction set; kernels/streams.h says what they compute.
#pragma once

#include "kernels/cpu/instruction_sets.h"
#include "kernels/kernel_table.h"

namespace locket::kernels::cpu {

const StreamKernels& stream_kernels(InstructionSet set);

}  // namespace locket::kernels::cpu
