#include "kernels/index_scores.h"

#include <algorithm>

#include "kernels/reference/reference.h"
#include "kernels/rounding.h"
#include "kernels/sum_order.h"

namespace locket::kernels::reference {

void index_scores(const IndexScoreInput& input, std::span<float> scores) {
  const Rounding rounding =
      input.rounding == IndexScoreRounding::kBf16 ? Rounding::kBf16 : Rounding::kNone;
  for (std::size_t j = 0; j < scores.size(); ++j) {
    const float* key = input.keys.data() + j * input.dim;
    float score = 0.0f;
    for (std::size_t h = 0; h < input.heads; ++h) {
      const float* query = input.query.data() + h * input.dim;
      const float dot = ordered_dot(
          input.dim, [&](std::size_t k) { return query[k]; },
          [&](std::size_t k) { return key[k]; });
      const float positive = std::max(round_value(dot, rounding), 0.0f);
      score += round_value(input.weights[h] * positive, rounding);
    }
    scores[j] = round_value(score, rounding);
  }
}

}  // namespace locket::kernels::reference
