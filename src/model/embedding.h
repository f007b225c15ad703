// Token embedding and output head: the two places where ids and hidden states meet. Official
// model.py, Transformer.forward and ParallelHead.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kernels/coarse_matrix.h"
#include "kernels/weight_matrix.h"
#include "model/forward_context.h"
#include "model/largest_logit.h"
#include "tensor/aligned_buffer.h"
#include "tensor/float_matrix.h"

namespace locket::model {

struct EmbeddingWeights {
  tensor::AlignedBuffer table;  // [vocabulary, hidden] BF16
  std::size_t hidden = 0;
};

// Streams [tokens, S * hidden]: the embedding, S times. REQUIRES: ids in the vocabulary.
tensor::FloatMatrix embed(const EmbeddingWeights& weights, std::span<const std::int32_t> ids,
                          std::size_t stream_count);

// One stream [tokens, hidden] from a packed matrix [vocabulary, hidden]: where head and embedding
// are one, it is held once. REQUIRES: ids in the vocabulary.
tensor::FloatMatrix embed(const kernels::WeightMatrix& table, std::span<const std::int32_t> ids);

struct OutputHeadWeights {
  std::vector<float> norm;                         // [hidden]
  kernels::WeightMatrix head;                      // [vocabulary, hidden] BF16
  std::optional<kernels::CoarseMatrix> copy = {};  // of the head, for largest_logits()
};

// Logits [tokens, vocabulary], float32, from collapsed hidden states [tokens, hidden].
tensor::FloatMatrix output_head(ForwardContext& context, const OutputHeadWeights& weights,
                                float norm_eps, const tensor::FloatMatrix& hidden);

// The largest of the same logits of every row. Nothing if there is no copy of the head, or so many
// rows that the whole head takes no longer.
std::vector<LargestLogit> largest_logits(ForwardContext& context, const OutputHeadWeights& weights,
                                         float norm_eps, const tensor::FloatMatrix& hidden);

// Memory that a copy of a head takes; 0: there can be none.
std::uint64_t head_copy_bytes(std::size_t vocabulary, std::size_t hidden);

}  // namespace locket::model
