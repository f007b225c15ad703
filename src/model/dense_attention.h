// Attention over every earlier position, with keys and values of their own: grouped-query or
// multi-head attention as Llama has it. Query head h reads KV head h / (heads / kv_heads). The
// rotation covers the whole head, in two halves; keys are stored rotated. DeepSeek LLM (V1).
//
// A token's row in the memory: for each KV head its key, then its value
// [kv_heads, 2, head_dim]. What is read comes from there, also for the position's own row, so that
// computed, shared and restored rows give the same bits.
#pragma once

#include <cstddef>

#include "kernels/weight_matrix.h"
#include "model/forward_context.h"
#include "model/step.h"
#include "tensor/float_matrix.h"

namespace locket::model {

struct DenseAttentionConfig {
  std::size_t heads = 0;
  std::size_t kv_heads = 0;  // divides heads
  std::size_t head_dim = 0;  // even
  std::size_t stream = 0;    // the layer's rows

  // Values of a token's row.
  std::size_t row_width() const { return kv_heads * 2 * head_dim; }
};

struct DenseAttentionWeights {
  kernels::WeightMatrix query;   // [heads * head_dim, hidden]
  kernels::WeightMatrix key;     // [kv_heads * head_dim, hidden]
  kernels::WeightMatrix value;   // [kv_heads * head_dim, hidden]
  kernels::WeightMatrix output;  // [hidden, heads * head_dim]
};

// u [rows, hidden] -> [rows, hidden]. Writes the rows of positions from write_from on, and waits
// for those that are still on their way; a part whose rows cannot be had fails. REQUIRES:
// step.plain_rotary is [rows, head_dim / 2]; step.formats.rows is kBf16 or kF32, whose rows may be
// cut anywhere.
tensor::FloatMatrix dense_attention(ForwardContext& context, const DenseAttentionConfig& config,
                                    const DenseAttentionWeights& weights,
                                    const tensor::FloatMatrix& u, Step& step);

}  // namespace locket::model
