#include "model/window.h"

#include <algorithm>
#include <vector>

namespace locket::model {

WindowRows update_window(const WindowPlace& place, const tensor::FloatMatrix& rows,
                         const Step& step) {
  const std::int64_t oldest = std::max(step.segment_start, step.first_position - place.slots + 1);
  const auto earlier = static_cast<std::size_t>(step.first_position - oldest);
  tensor::FloatMatrix seen(earlier + step.count, rows.columns());
  for (std::size_t i = 0; i < earlier; ++i) {
    decode_row(step.formats.window,
               step.memory.ring_slot(place.ring, oldest + static_cast<std::int64_t>(i)),
               seen.row(i));
  }
  // A step longer than the ring overwrites its own slots; the newest rows are the ones that stay.
  std::vector<std::byte> encoded(row_bytes(step.formats.window, rows.columns()));
  for (std::size_t i = 0; i < step.count; ++i) {
    encode_row(step.formats.window, rows.row(i), encoded);
    decode_row(step.formats.window, encoded, seen.row(earlier + i));
    const auto slot = step.memory.ring_slot(place.ring, step.position(i));
    std::copy(encoded.begin(), encoded.end(), slot.begin());
  }
  return {oldest, std::move(seen)};
}

}  // namespace locket::model
