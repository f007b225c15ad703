// The sliding window of one layer: the newest positions' rows, kept encoded in a ring. During a
// step its positions read the rows as they are stored: those of earlier steps and its own newest
// from the ring, and what the step's own rows overwrite there from copies, so that a value never
// depends on where it was read from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/row_codec.h"
#include "model/step.h"
#include "tensor/float_matrix.h"

namespace locket::model {

struct WindowPlace {
  std::int64_t slots = 0;  // positions in the ring
  std::size_t ring = 0;    // its number in the layout
};

// Stored rows of positions first_position() ... ; owns the copies among them, the others belong to
// the sequence and stay as they are until its next step. Movable, not copyable.
class WindowRows {
 public:
  WindowRows() = default;
  WindowRows(const WindowRows&) = delete;
  WindowRows& operator=(const WindowRows&) = delete;
  WindowRows(WindowRows&&) = default;
  WindowRows& operator=(WindowRows&&) = default;
  ~WindowRows() = default;

  // REQUIRES: first position <= position < first position + rows.
  std::span<const std::byte> row(std::int64_t position) const {
    return rows_[static_cast<std::size_t>(position - first_position_)];
  }

 private:
  friend WindowRows update_window(const WindowPlace& place, const tensor::FloatMatrix& rows,
                                  const StepPart& part, kernels::RowFormat format);

  std::int64_t first_position_ = 0;
  std::vector<std::span<const std::byte>> rows_;
  std::vector<std::byte> copies_;
};

// Takes the step's rows [step.rows(), head_dim] (rotated, not quantized), writes those of `part` to
// its ring and returns everything that its positions can see.
WindowRows update_window(const WindowPlace& place, const tensor::FloatMatrix& rows,
                         const StepPart& part, kernels::RowFormat format);

}  // namespace locket::model
