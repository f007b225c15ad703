#include "kernels/top_k.h"

#include <algorithm>
#include <cmath>

namespace locket::kernels {
namespace {

bool is_better(const ScoredIndex& a, const ScoredIndex& b) {
  return a.score > b.score || (a.score == b.score && a.index < b.index);
}

}  // namespace

void TopKSelector::reset(std::size_t k) {
  k_ = k;
  full_ = false;
  entries_.clear();
}

void TopKSelector::add(std::span<const float> scores, std::int32_t first) {
  if (k_ == 0) return;
  const std::size_t limit = std::max<std::size_t>(4 * k_, 64);
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const ScoredIndex entry{scores[i], first + static_cast<std::int32_t>(i)};
    if (!(entry.score > -HUGE_VALF)) continue;
    if (full_ && !is_better(entry, threshold_)) continue;
    entries_.push_back(entry);
    if (entries_.size() >= limit) shrink();
  }
}

void TopKSelector::take_ascending(std::vector<std::int32_t>& indices) {
  shrink();
  indices.clear();
  for (const ScoredIndex& entry : entries_) indices.push_back(entry.index);
  std::sort(indices.begin(), indices.end());
}

void TopKSelector::shrink() {
  if (entries_.size() <= k_) return;
  const auto last = entries_.begin() + static_cast<std::ptrdiff_t>(k_) - 1;
  std::nth_element(entries_.begin(), last, entries_.end(), is_better);
  threshold_ = *last;
  full_ = true;
  entries_.resize(k_);
}

}  // namespace locket::kernels
