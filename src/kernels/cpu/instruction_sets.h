// The instruction sets that this folder has kernels for, and the kernels of each.
#pragma once

#include "kernels/cpu/panel.h"

namespace locket::kernels::cpu {

enum class InstructionSet {
  kAvx2,    // with FMA
  kAvx512,  // F, BW, DQ, VL, CD
};

const PanelKernels& f32_panel_kernels(InstructionSet set);
// AVX-512 with BF16 and VBMI.
const PanelKernels& bf16_panel_kernels();

}  // namespace locket::kernels::cpu
