// The k best of a stream of scored entries: higher score first, the lower index on equal scores.
// The result does not depend on how the stream is cut or spread over selectors. Entries with score
// -infinity or NaN never enter.
//
// A selector keeps candidates and the score that an entry needs to become one; when it has several
// times k it keeps the k best and asks for more from then on. Of N scores in no order about
// k * ln(N / k) ever become candidates; where every score is better than those before, each costs a
// few steps.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace locket::kernels {

// An entry as one number: the better, the larger. Zeros of either sign are equal.
constexpr std::uint64_t entry_rank(float score, std::int32_t index) {
  const auto bits = std::bit_cast<std::uint32_t>(score + 0.0f);
  const std::uint32_t ordered = (bits >> 31) != 0 ? ~bits : bits | 0x80000000u;
  return std::uint64_t{ordered} << 32 | ~static_cast<std::uint32_t>(index);
}

constexpr std::int32_t entry_index(std::uint64_t rank) {
  return static_cast<std::int32_t>(~static_cast<std::uint32_t>(rank));
}

constexpr float entry_score(std::uint64_t rank) {
  const auto ordered = static_cast<std::uint32_t>(rank >> 32);
  return std::bit_cast<float>((ordered >> 31) != 0 ? ordered & 0x7FFFFFFFu : ~ordered);
}

// Scores of entries first, first + 1, ...
struct ScoreStretch {
  std::span<const float> scores;
  std::int32_t first = 0;
};

// Writes the ranks of the entries whose score is at least `least`, in order, and returns their
// number. `ranks` has room for all.
std::size_t ranks_from(const ScoreStretch& stretch, float least, std::uint64_t* ranks);

// maxima[b] = the largest score of scores [b * size, (b + 1) * size), -infinity where all are NaN.
// The last block may be short. maxima [ceil(scores / size)].
void block_maxima(std::span<const float> scores, std::size_t size, std::span<float> maxima);

// Not thread-safe. REQUIRES: every index is added at most once between two reset() calls.
class TopKSelector {
 public:
  void reset(std::size_t k);
  // Entry i has index first + i.
  void add(std::span<const float> scores, std::int32_t first);
  // What `other` would take. REQUIRES: it was reset for the same k.
  void merge(const TopKSelector& other);
  // The chosen indices, ascending.
  void take_ascending(std::vector<std::int32_t>& indices);

 private:
  void make_room();
  void shrink();

  std::size_t k_ = 0;
  std::vector<std::uint64_t> ranks_;  // of the candidates, the first count_
  std::size_t count_ = 0;
  std::uint64_t worst_ = 0;  // rank of the k-th best so far; 0: there are not k
};

}  // namespace locket::kernels
