// The kernels of top_k.h for the instruction sets of this folder.
#pragma once

#include "kernels/cpu/instruction_sets.h"
#include "kernels/kernel_table.h"

namespace locket::kernels::cpu {

SelectionKernels selection_kernels(InstructionSet set);

}  // namespace locket::kernels::cpu
