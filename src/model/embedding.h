// Token embedding and output head: the two places where ids and hidden states meet. Official
// model.py, Transformer.forward and ParallelHead.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/weight_matrix.h"
#include "model/forward_context.h"
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

struct OutputHeadWeights {
  std::vector<float> norm;     // [hidden]
  kernels::WeightMatrix head;  // [vocabulary, hidden] BF16
};

// Logits [tokens, vocabulary], float32, from collapsed hidden states [tokens, hidden].
tensor::FloatMatrix output_head(ForwardContext& context, const OutputHeadWeights& weights,
                                float norm_eps, const tensor::FloatMatrix& hidden);

}  // namespace locket::model
