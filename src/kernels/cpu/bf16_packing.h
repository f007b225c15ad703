// Rows of bfloat16-valued floats into panels and packed activations (panel.h): pairs (k, k + 4).
// With the instructions of bf16_panel_kernels().
#pragma once

#include <cstddef>

#include "kernels/cpu/panel.h"

namespace locket::kernels::cpu {

void pack_bf16_x(const float* x, std::size_t count, std::byte* out);
void pack_bf16_rows(const RowBlock& block, std::byte* panel);

}  // namespace locket::kernels::cpu
