// The indexer of DeepSeek sparse attention (V3.2): every token leaves one small key; a position
// scores the keys of all earlier tokens with several small heads and its layer's attention reads
// the best ones only (the lower id on equal scores). DeepSeek-V3.2-Exp report, 2.1; model.py,
// Indexer, with the later correction: the rotation covers the first dims, in two halves.
//
// Keys pass a LayerNorm; where the memory is quantized, keys and queries pass a Hadamard transform
// and become E4M3 with one scale each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/weight_matrix.h"
#include "model/forward_context.h"
#include "model/step.h"
#include "tensor/float_matrix.h"

namespace locket::model {

struct DsaIndexerConfig {
  std::size_t heads = 0;
  std::size_t dim = 0;  // of a head and of a key; a power of two
  std::size_t rope_dim = 0;
  std::size_t topk = 0;
};

struct DsaIndexerWeights {
  kernels::WeightMatrix wq_b;          // [heads * dim, q_rank]
  kernels::WeightMatrix wk;            // [dim, hidden]
  std::vector<float> key_norm;         // [dim]
  std::vector<float> key_norm_bias;    // [dim]
  kernels::WeightMatrix head_weights;  // [heads, hidden]
};

// Inputs of one step: u [rows, hidden], the attention input; query_latent [rows, q_rank], normed;
// `key_stream`: where the keys lie.
struct DsaInput {
  const tensor::FloatMatrix& u;
  const tensor::FloatMatrix& query_latent;
  std::size_t key_stream = 0;
};

// Writes the keys of positions from write_from on and sets step.selection.
// REQUIRES: step.plain_rotary is [rows, rope_dim / 2].
void select_tokens(ForwardContext& context, const DsaIndexerConfig& config,
                   const DsaIndexerWeights& weights, const DsaInput& input, Step& step);

}  // namespace locket::model
