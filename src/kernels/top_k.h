// The k best of a stream of scored entries: higher score first, the lower index on equal scores.
// The result does not depend on how the stream is cut. Entries with score -infinity or NaN never
// enter.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace locket::kernels {

struct ScoredIndex {
  float score = 0.0f;
  std::int32_t index = 0;
};

// Not thread-safe. REQUIRES: every index is added at most once between two reset() calls.
class TopKSelector {
 public:
  void reset(std::size_t k);
  // Entry i has index first + i.
  void add(std::span<const float> scores, std::int32_t first);
  // The chosen indices, ascending.
  void take_ascending(std::vector<std::int32_t>& indices);

 private:
  void shrink();

  std::size_t k_ = 0;
  bool full_ = false;  // threshold_ is the k-th best so far
  ScoredIndex threshold_;
  std::vector<ScoredIndex> entries_;
};

}  // namespace locket::kernels
