// Scores of index keys for one query position: score[j] = sum over heads, ascending, of
// weight[h] * max(query[h] . key[j], 0). Official model.py, Indexer.
#pragma once

#include <cstddef>
#include <span>

namespace locket::kernels {

// kF32: dot products and sums in float32. kBf16: every one of the three operations rounds to
// bfloat16, as the official code does; only for comparison with it.
enum class IndexScoreRounding { kF32, kBf16 };

struct IndexScoreInput {
  std::size_t heads = 0;
  std::size_t dim = 0;
  std::span<const float> query;    // [heads, dim]
  std::span<const float> weights;  // [heads]
  std::span<const float> keys;     // [count, dim]
  IndexScoreRounding rounding = IndexScoreRounding::kF32;
};

// scores [count].
void index_scores(const IndexScoreInput& input, std::span<float> scores);

}  // namespace locket::kernels
