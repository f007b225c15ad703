#include "model/window.h"

#include <algorithm>

namespace locket::model {

WindowRows update_window(const WindowPlace& place, const tensor::FloatMatrix& rows,
                         const StepPart& part, kernels::RowFormat format) {
  const std::size_t bytes = kernels::row_bytes(format, rows.columns());
  const std::int64_t end = part.first_position + static_cast<std::int64_t>(part.count);
  WindowRows window;
  window.first_position_ = std::max(part.segment_start, part.first_position - place.slots + 1);
  // Older ones lose their slots to the step's last rows.
  const std::int64_t first_in_ring = std::max(window.first_position_, end - place.slots);
  window.copies_.resize(static_cast<std::size_t>(first_in_ring - window.first_position_) * bytes);
  const auto place_of = [&](std::int64_t position) {
    if (position >= first_in_ring) return part.memory->ring_slot(place.ring, position);
    const auto index = static_cast<std::size_t>(position - window.first_position_);
    return std::span(window.copies_).subspan(index * bytes, bytes);
  };
  for (std::int64_t position = window.first_position_; position < end; ++position) {
    window.rows_.push_back(place_of(position));
  }
  const std::int64_t last_copied = std::min(first_in_ring, part.first_position);
  for (std::int64_t position = window.first_position_; position < last_copied; ++position) {
    std::ranges::copy(part.memory->ring_slot(place.ring, position), place_of(position).begin());
  }
  for (std::size_t i = 0; i < part.count; ++i) {
    const std::size_t row = part.first_row + i;
    kernels::encode_row(format, rows.row(row), place_of(part.position(row)));
  }
  return window;
}

}  // namespace locket::model
