#include <algorithm>
#include <cmath>

#include "kernels/reference/reference.h"

namespace locket::kernels::reference {

std::size_t ranks_from(const ScoreStretch& stretch, float least, std::uint64_t* ranks) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < stretch.scores.size(); ++i) {
    if (!(stretch.scores[i] >= least)) continue;
    ranks[count++] = entry_rank(stretch.scores[i], stretch.first + static_cast<std::int32_t>(i));
  }
  return count;
}

void block_maxima(std::span<const float> scores, std::size_t size, std::span<float> maxima) {
  for (std::size_t block = 0; block < maxima.size(); ++block) {
    float best = -HUGE_VALF;
    const std::size_t end = std::min(scores.size(), (block + 1) * size);
    for (std::size_t i = block * size; i < end; ++i) {
      if (scores[i] > best) best = scores[i];
    }
    maxima[block] = best;
  }
}

}  // namespace locket::kernels::reference
