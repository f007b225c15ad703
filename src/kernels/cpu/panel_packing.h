// Float32 rows into panels and packed activations (panel.h), with the instructions of every x86-64.
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "kernels/cpu/panel.h"

namespace locket::kernels::cpu {

void pack_f32_x(const float* x, std::size_t count, std::byte* out);
void pack_f32_rows(const RowBlock& block, std::byte* panel);

// Sixteen rows of 32 columns of a block; what lies outside the block is zero.
class RowTile {
 public:
  RowTile(const RowBlock& block, std::size_t first_row, std::size_t first_column);
  RowTile(const RowTile&) = delete;
  RowTile& operator=(const RowTile&) = delete;

  const float* row(std::size_t lane) const { return rows_[lane]; }

 private:
  std::array<const float*, kTileLanes> rows_;
  std::array<float, kTileLanes * kGroupColumns> copies_;  // of partial rows
};

}  // namespace locket::kernels::cpu
