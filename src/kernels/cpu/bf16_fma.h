// Panels of bfloat16 pairs times float32 rows by fused multiply-adds of float32: the same sums as
// by vdpbf16ps, which Intel's processors (up to Sapphire Rapids at least) do at half the speed.
// Needs what bf16_panel_kernels() needs.
#pragma once

#include "kernels/cpu/panel.h"

namespace locket::kernels::cpu {

// Whether this processor is faster so.
bool prefers_fma();

// For many tokens: direct_tokens is 0. x rows stand slice_row_bytes(group_bytes) apart.
const PanelKernels& bf16_fma_panel_kernels();

}  // namespace locket::kernels::cpu
