#include "model/embedding.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "kernels/largest_product.h"
#include "kernels/rms_norm.h"
#include "model/linear.h"
#include "numerics/bf16.h"

namespace locket::model {
namespace {

tensor::FloatMatrix normed_rows(const ForwardContext& context, const OutputHeadWeights& weights,
                                float norm_eps, const tensor::FloatMatrix& hidden) {
  tensor::FloatMatrix normed = hidden;
  for (std::size_t token = 0; token < normed.rows(); ++token) {
    kernels::rms_norm(normed.row(token), weights.norm, norm_eps, context.numerics.rounding(),
                      normed.row(token));
  }
  return normed;
}

}  // namespace

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

tensor::FloatMatrix embed(const kernels::WeightMatrix& table, std::span<const std::int32_t> ids) {
  tensor::FloatMatrix rows(ids.size(), table.columns);
  for (std::size_t token = 0; token < ids.size(); ++token) {
    const auto id = static_cast<std::size_t>(ids[token]);
    LOCKET_CHECK(ids[token] >= 0 && id < table.rows);
    for (std::size_t i = 0; i < table.columns; ++i) {
      rows.row(token)[i] = kernels::weight_at(table, id, i);
    }
  }
  return rows;
}

tensor::FloatMatrix output_head(ForwardContext& context, const OutputHeadWeights& weights,
                                float norm_eps, const tensor::FloatMatrix& hidden) {
  tensor::FloatMatrix logits(hidden.rows(), weights.head.rows);
  linear(context, weights.head, normed_rows(context, weights, norm_eps, hidden), logits);
  return logits;
}

std::vector<LargestLogit> largest_logits(ForwardContext& context, const OutputHeadWeights& weights,
                                         float norm_eps, const tensor::FloatMatrix& hidden) {
  if (!weights.copy || hidden.rows() == 0 || hidden.rows() > kernels::kMostCoarseRows) return {};
  const tensor::FloatMatrix normed = normed_rows(context, weights, norm_eps, hidden);
  const kernels::WeightMatrix& head = weights.head;
  std::vector<LargestLogit> logits;
  for (const kernels::LargestProduct& largest :
       kernels::largest_products(head, *weights.copy,
                                 {.data = normed.values().data(),
                                 .stride = normed.columns(),
                                 .tokens = normed.rows(),
                                 .values = context.numerics.activation_values()},
                                 context.workers)) {
    const bool is_found = largest.row < head.rows;
    logits.push_back({.token = is_found ? static_cast<std::int32_t>(largest.row) : -1,
                      .broken_count = largest.broken});
    context.work.matmul += (head.rows + largest.computed) * head.columns;
  }
  return logits;
}

std::uint64_t head_copy_bytes(std::size_t vocabulary, std::size_t hidden) {
  return hidden > kernels::kMostCoarseColumns ? 0 : kernels::coarse_bytes(vocabulary, hidden);
}

}  // namespace locket::model
