#include "kernels/top_k.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "kernels/kernel_table.h"

namespace locket::kernels {
namespace {

// Scores that are looked at between two looks at the room.
constexpr std::size_t kSlice = 256;

std::size_t capacity_of(std::size_t k) { return std::max<std::size_t>(4 * k, 64) + kSlice; }

}  // namespace

std::size_t ranks_from(const ScoreStretch& stretch, float least, std::uint64_t* ranks) {
  return active_kernels().selection.ranks_from(stretch, least, ranks);
}

void block_maxima(std::span<const float> scores, std::size_t size, std::span<float> maxima) {
  active_kernels().selection.block_maxima(scores, size, maxima);
}

void TopKSelector::reset(std::size_t k) {
  k_ = k;
  count_ = 0;
  worst_ = 0;
}

void TopKSelector::add(std::span<const float> scores, std::int32_t first) {
  if (k_ == 0) return;
  while (!scores.empty()) {
    make_room();
    const std::size_t count = std::min(scores.size(), kSlice);
    float least = std::numeric_limits<float>::lowest();
    if (worst_ != 0) {
      least = entry_score(worst_);
      // Behind the k-th best, an equal score does not do.
      if (first > entry_index(worst_)) least = std::nextafter(least, HUGE_VALF);
    }
    count_ +=
        ranks_from({.scores = scores.first(count), .first = first}, least, ranks_.data() + count_);
    scores = scores.subspan(count);
    first += static_cast<std::int32_t>(count);
  }
}

void TopKSelector::merge(const TopKSelector& other) {
  for (const std::uint64_t rank : std::span(other.ranks_).first(other.count_)) {
    if (rank <= worst_) continue;
    make_room();
    ranks_[count_++] = rank;
  }
}

void TopKSelector::take_ascending(std::vector<std::int32_t>& indices) {
  shrink();
  indices.clear();
  for (const std::uint64_t rank : std::span(ranks_).first(count_)) {
    indices.push_back(entry_index(rank));
  }
  std::sort(indices.begin(), indices.end());
}

// For one more slice.
void TopKSelector::make_room() {
  if (ranks_.size() < capacity_of(k_)) ranks_.resize(capacity_of(k_));
  if (ranks_.size() - count_ < kSlice) shrink();
}

void TopKSelector::shrink() {
  if (count_ <= k_) return;
  const auto begin = ranks_.begin();
  const auto last = begin + static_cast<std::ptrdiff_t>(k_) - 1;
  std::nth_element(begin, last, begin + static_cast<std::ptrdiff_t>(count_), std::greater<>());
  worst_ = *last;
  count_ = k_;
}

}  // namespace locket::kernels
