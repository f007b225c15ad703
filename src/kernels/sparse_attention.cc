#include "kernels/sparse_attention.h"

namespace locket::kernels {

std::vector<AttentionRow> float_slots(std::span<const float> rows, std::size_t head_dim,
                                      std::span<const std::uint8_t> used) {
  std::vector<AttentionRow> slots(used.size());
  for (std::size_t slot = 0; slot < used.size(); ++slot) {
    if (used[slot] == 0) continue;
    slots[slot].bytes = std::as_bytes(rows.subspan(slot * head_dim, head_dim)).data();
  }
  return slots;
}

}  // namespace locket::kernels
