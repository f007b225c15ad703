// The sliding window of one layer: the newest positions' rows, kept encoded in a ring. During a
// step the rows that its positions can see lie decoded side by side: those of earlier steps come
// from the ring, its own pass through the encoding, so that a value never depends on where it was
// read from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "model/step.h"
#include "tensor/float_matrix.h"

namespace locket::model {

struct WindowPlace {
  std::int64_t slots = 0;  // positions in the ring
  std::size_t ring = 0;    // its number in the layout
};

// Decoded rows of positions first_position() ... ; owns them.
class WindowRows {
 public:
  WindowRows() = default;
  WindowRows(std::int64_t first_position, tensor::FloatMatrix rows)
      : first_position_(first_position), rows_(std::move(rows)) {}

  // REQUIRES: first position <= position < first position + rows.
  std::span<const float> row(std::int64_t position) const {
    return rows_.row(static_cast<std::size_t>(position - first_position_));
  }
  // The last `count` rows, [count, head_dim].
  std::span<const float> newest(std::size_t count) const {
    return rows_.values().last(count * rows_.columns());
  }

 private:
  std::int64_t first_position_ = 0;
  tensor::FloatMatrix rows_;
};

// Takes the step's rows [step.rows(), head_dim] (rotated, not quantized), writes those of `part` to
// its ring and returns everything that its positions can see.
WindowRows update_window(const WindowPlace& place, const tensor::FloatMatrix& rows,
                         const StepPart& part, RowFormat format);

}  // namespace locket::model
