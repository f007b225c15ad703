#include "model/embedding.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "kernels/rms_norm.h"
#include "model/linear.h"
#include "numerics/bf16.h"

namespace locket::model {

tensor::FloatMatrix embed(const EmbeddingWeights& weights, std::span<const std::int32_t> ids,
                          std::size_t stream_count) {
  tensor::FloatMatrix streams(ids.size(), stream_count * weights.hidden);
  for (std::size_t token = 0; token < ids.size(); ++token) {
    const std::size_t row_bytes = weights.hidden * 2;
    const auto offset = static_cast<std::size_t>(ids[token]) * row_bytes;
    LOCKET_CHECK(ids[token] >= 0 && offset + row_bytes <= weights.table.size());
    const auto first = streams.row(token).first(weights.hidden);
    for (std::size_t i = 0; i < weights.hidden; ++i) {
      numerics::Bf16 value;
      std::memcpy(&value.bits, weights.table.data() + offset + 2 * i, 2);
      first[i] = numerics::to_float(value);
    }
    for (std::size_t s = 1; s < stream_count; ++s) {
      std::ranges::copy(first, streams.row(token).subspan(s * weights.hidden).begin());
    }
  }
  return streams;
}

tensor::FloatMatrix output_head(ForwardContext& context, const OutputHeadWeights& weights,
                                float norm_eps, const tensor::FloatMatrix& hidden) {
  tensor::FloatMatrix normed = hidden;
  for (std::size_t token = 0; token < normed.rows(); ++token) {
    kernels::rms_norm(normed.row(token), weights.norm, norm_eps, context.numerics.rounding(),
                      normed.row(token));
  }
  tensor::FloatMatrix logits(hidden.rows(), weights.head.rows);
  linear(context, weights.head, normed, logits);
  return logits;
}

}  // namespace locket::model
