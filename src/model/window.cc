#include "model/window.h"

#include <algorithm>
#include <vector>

namespace locket::model {

WindowRows update_window(const WindowPlace& place, const tensor::FloatMatrix& rows,
                         const StepPart& part, RowFormat format) {
  const std::int64_t oldest = std::max(part.segment_start, part.first_position - place.slots + 1);
  const auto earlier = static_cast<std::size_t>(part.first_position - oldest);
  tensor::FloatMatrix seen(earlier + part.count, rows.columns());
  for (std::size_t i = 0; i < earlier; ++i) {
    decode_row(format, part.memory->ring_slot(place.ring, oldest + static_cast<std::int64_t>(i)),
               seen.row(i));
  }
  // A step longer than the ring overwrites its own slots; the newest rows are the ones that stay.
  std::vector<std::byte> encoded(row_bytes(format, rows.columns()));
  for (std::size_t i = 0; i < part.count; ++i) {
    const std::size_t row = part.first_row + i;
    encode_row(format, rows.row(row), encoded);
    decode_row(format, encoded, seen.row(earlier + i));
    const auto slot = part.memory->ring_slot(place.ring, part.position(row));
    std::copy(encoded.begin(), encoded.end(), slot.begin());
  }
  return {oldest, std::move(seen)};
}

}  // namespace locket::model
